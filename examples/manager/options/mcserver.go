// SPDX-License-Identifier: Apache-2.0

package options

import (
	"time"

	"github.com/machinist-dev/machinist/examples/controllers"
)

// None is the value of --target-kubeconfig for machines without a cluster to
// join.
const None = "none"

// InCluster is the value of --control-kubeconfig for the service account of the
// pod that the manager runs in.
const InCluster = "inClusterConfig"

// MCServer is how a manager is configured. Make one with [NewMCServer]: the zero
// value has no port, no workers and no rate.
type MCServer struct {
	MachineControllerConfiguration

	// ControlKubeconfig is the file that leads to the cluster of the machine
	// objects; [InCluster] is the service account of the pod. Empty means the
	// target cluster.
	ControlKubeconfig string
	// TargetKubeconfig is the file that leads to the cluster which machines join;
	// [None] is no cluster. Empty means the one that the manager runs in.
	TargetKubeconfig string

	program     program
	ineffective []string // flags that were given and do nothing
}

// program says which controllers a process runs, and so which flags it has.
type program int

const (
	everything program = iota
	machineController
	machineControllerManager
)

// LeaseName returns the name of the lease: two managers of one shard have the same, and those
// of two shards never.
func (s *MCServer) LeaseName() string {
	if s.Shard == "" {
		return s.LeaderElection.ResourceName
	}
	return s.LeaderElection.ResourceName + "-" + s.Shard
}

// Part returns which controllers run.
func (s *MCServer) Part() controllers.Part {
	switch s.program {
	case machineController:
		return controllers.Machines
	case machineControllerManager:
		return controllers.Sets
	default:
		return controllers.All
	}
}

// MachineControllerConfiguration is how the controllers are configured.
type MachineControllerConfiguration struct {
	// Namespace of the machine objects and their secrets.
	Namespace string
	// Shard is the value of the label machinist.dev/shard of the objects that are acted
	// upon. Empty means those without the label.
	Shard string
	// ConcurrentSyncs is how many objects of a kind are worked on at a time.
	ConcurrentSyncs int
	// MinResyncPeriod is how often, at the most, everything is looked at again
	// although nothing has changed. Zero means never.
	MinResyncPeriod time.Duration
	// KubeAPIQPS and KubeAPIBurst bound the requests of each client. MCM has 20 and 30, with which
	// machines wait for requests; the API server bounds all clients by priority and fairness.
	KubeAPIQPS   float32
	KubeAPIBurst int
	// Address and Port of health checks and metrics. By default only the host itself can ask;
	// MCM listens on all addresses.
	Address string
	Port    int
	// TLSCertFile and TLSPrivateKeyFile make the port serve HTTPS, and metrics only for bearer
	// tokens that the control cluster lets get them. Both are read again when they change. Empty
	// means plain HTTP without tokens. One without the other is invalid.
	TLSCertFile, TLSPrivateKeyFile string
	// Profiling serves profiles of the process on 127.0.0.1 at ProfilingPort, ContentionProfiling
	// with those of blocking and of mutexes.
	Profiling, ContentionProfiling bool
	ProfilingPort                  int

	// MetricsPerMachine adds series for each machine to /metrics.
	MetricsPerMachine bool

	// CreationTimeout, HealthTimeout and DrainTimeout are those of machines that
	// state none. Zero means for ever.
	CreationTimeout, HealthTimeout, DrainTimeout time.Duration
	// InPlaceUpdateTimeout and PreserveTimeout are those of machines that state
	// none: how long an update in place may take, and for how long a machine is
	// preserved. Zero means for ever.
	InPlaceUpdateTimeout, PreserveTimeout time.Duration
	// PVDetachTimeout is how long volumes may take to be detached from a drained
	// Node, before its VM is deleted nevertheless. Zero means for ever.
	PVDetachTimeout time.Duration
	// PVReattachTimeout is how long the volumes of the pods of a drained Node may take to be
	// attached to other Nodes; the pods with volumes then go one after the other. Zero, the
	// default, means that this is not waited for. The reference system waits for 90 seconds.
	PVReattachTimeout time.Duration
	// MaxReplacements is how many machines of a deployment may be failed for bad
	// health and not yet replaced, at a time. Zero means none. The reference system
	// has no such flag, and allows one.
	MaxReplacements int
	// NodeConditions are the conditions, separated by commas, that make a Node
	// unhealthy unless they are False.
	NodeConditions string
	// ResourceExhaustedRetry is how long to wait after the provider had no room.
	// Zero means 10 minutes.
	ResourceExhaustedRetry time.Duration
	// SettleTime is how long the provider may take to show a VM that it has made.
	// Zero means not at all.
	SettleTime time.Duration
	// OrphanVMsPeriod is how often VMs are looked for that nobody owns, and
	// OrphanVMsGrace for how long one has to be seen before it is deleted.
	OrphanVMsPeriod, OrphanVMsGrace time.Duration
	// HoldPercent is how many percent of the machines of a deployment, a zone or the
	// namespace have to fail within 5 minutes so that none of them is replaced, for an hour
	// at most. Zero is off: each is replaced.
	HoldPercent int
	// OvershootUp is how many machines above its limit freeze a set that creates machines,
	// and OvershootDown how many fewer than those unfreeze it. OvershootPeriod is how often
	// all sets are looked at. Zero means 1 minute.
	OvershootUp, OvershootDown int32
	OvershootPeriod            time.Duration

	// FreezeTimeout is how long an API server may fail to answer until nothing is created,
	// failed or replaced any more, and FreezePeriod the time between two probes while the API
	// servers answer. Zero means 30 seconds and 1 minute.
	FreezeTimeout, FreezePeriod time.Duration

	// HoldAutoscaler keeps the cluster autoscaler from removing Nodes of a deployment
	// while it is rolled out.
	HoldAutoscaler bool
	// TokenGroups are the groups, separated by commas, that the bootstrap token of a
	// machine puts it into besides system:bootstrappers.
	TokenGroups string

	// LeaderElection says who of several managers works.
	LeaderElection LeaderElection

	// Verbosity of the log: 0 is what is done and what goes wrong, from 2 on also
	// what waits, from 4 on every look.
	Verbosity int
	// LoggingFormat is text or json.
	LoggingFormat string
}

// LeaderElection says how managers agree on the one that works.
type LeaderElection struct {
	// LeaderElect is whether they do. A manager without it works at once.
	LeaderElect bool
	// LeaseDuration is how long the others wait for a leader that is silent.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew its lease before it ends.
	RenewDeadline time.Duration
	// RetryPeriod is how often the lease is looked at.
	RetryPeriod time.Duration
	// ResourceLock is the kind of the lock; only "leases" exists.
	ResourceLock string
	// ResourceName is the name of the lease.
	ResourceName string
	// ResourceNamespace is the namespace of the lease. Empty means that of the machine
	// objects. A lease goes with its namespace, and the manager with its lease.
	ResourceNamespace string
}

// NewMCServer returns the defaults of a machine-controller, which a provider project builds
// with its driver.
func NewMCServer() *MCServer { return newServer(machineController) }

// NewMCMServer returns the defaults of a machine-controller-manager, which runs the
// controllers of sets and deployments and needs no driver: the port, the number of workers and
// the lease are others than those of [NewMCServer].
func NewMCMServer() *MCServer {
	s := newServer(machineControllerManager)
	s.ConcurrentSyncs, s.Port, s.ProfilingPort, s.LeaderElection.ResourceName = 10, 10258, 10268, "machine-controller-manager"
	return s
}

// NewManagerServer returns the defaults of one process that runs all controllers. It has the
// port and the lease of a machine-controller, and takes the flags of both programs.
func NewManagerServer() *MCServer { return newServer(everything) }

func newServer(of program) *MCServer {
	return &MCServer{program: of, MachineControllerConfiguration: MachineControllerConfiguration{
		Namespace:       "default",
		ConcurrentSyncs: 50,
		MinResyncPeriod: 12 * time.Hour,
		KubeAPIQPS:      100,
		KubeAPIBurst:    200,
		Address:         "127.0.0.1",
		Port:            10259,
		ProfilingPort:   10269,

		CreationTimeout:        20 * time.Minute,
		HealthTimeout:          10 * time.Minute,
		DrainTimeout:           2 * time.Hour,
		InPlaceUpdateTimeout:   20 * time.Minute,
		PreserveTimeout:        96 * time.Hour,
		PVDetachTimeout:        2 * time.Minute,
		MaxReplacements:        1,
		NodeConditions:         "KernelDeadlock,ReadonlyFilesystem,DiskPressure,NetworkUnavailable",
		ResourceExhaustedRetry: 10 * time.Minute,
		SettleTime:             30 * time.Second,
		OrphanVMsPeriod:        15 * time.Minute,
		OrphanVMsGrace:         10 * time.Minute,
		HoldPercent:            50,
		OvershootUp:            2,
		OvershootDown:          1,
		OvershootPeriod:        time.Minute,
		FreezeTimeout:          30 * time.Second,
		FreezePeriod:           time.Minute,
		HoldAutoscaler:         true,

		LeaderElection: LeaderElection{
			LeaderElect:   true,
			LeaseDuration: 15 * time.Second,
			RenewDeadline: 10 * time.Second,
			RetryPeriod:   2 * time.Second,
			ResourceLock:  "leases",
			ResourceName:  "machine-controller",
		},
		LoggingFormat: "text",
	}}
}
