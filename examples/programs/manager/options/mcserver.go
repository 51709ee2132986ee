// SPDX-License-Identifier: Apache-2.0

package options

import (
	"time"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/examples/controllers"
)

// None is the value of --target-kubeconfig for machines that join no cluster.
const None = "none"

// InCluster is the value of --control-kubeconfig for the cluster and the service account of the pod
// that the manager runs in.
const InCluster = "inClusterConfig"

// MCServer is the configuration of a manager. Make one with [NewMCServer]: the zero value has no
// port, no workers and no rate, and is invalid.
type MCServer struct {
	MachineControllerConfiguration

	// ControlKubeconfig is the kubeconfig of the control cluster, which has the machine objects.
	// [InCluster] is the cluster of the pod. Empty means the target cluster.
	ControlKubeconfig string
	// TargetKubeconfig is the kubeconfig of the target cluster, which machines join. [None] means
	// no target cluster. Empty means the cluster that the manager runs in.
	TargetKubeconfig string

	program     program
	ineffective []string // flags that were given and do nothing
}

// program is the set of controllers that a process runs. It selects the flags.
type program int

const (
	everything program = iota
	machineController
	machineControllerManager
)

// LeaseNames returns the names of the leases, one for each part that the program runs. A program
// acts while it holds all of them, so that each part has one leader, whichever programs run it. The
// lease of sets has the name of that of machines with "-manager" at its end. Each shard has its own
// leases.
func (s *MCServer) LeaseNames() []string {
	names := []string{s.LeaderElection.ResourceName}
	if s.program == everything {
		names = append(names, s.LeaderElection.ResourceName+"-manager")
	}
	if s.Shard != "" {
		for i := range names {
			names[i] += "-" + s.Shard
		}
	}
	return names
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

// MachineControllerConfiguration is the configuration of the controllers.
type MachineControllerConfiguration struct {
	// Namespace is the namespace of the machine objects and their secrets.
	Namespace string
	// Shard selects the objects whose label machinist.dev/shard has this value. Empty selects the
	// objects without the label.
	Shard string
	// ConcurrentSyncs is the number of workers for each kind of object.
	ConcurrentSyncs int
	// MinResyncPeriod is the minimum time between two reconciliations of an unchanged object. Zero
	// means never.
	MinResyncPeriod time.Duration
	// KubeAPIQPS and KubeAPIBurst limit the requests per second of each client. MCM has 20 and 30,
	// with which machines wait for requests. The API server limits all clients by priority and
	// fairness.
	KubeAPIQPS   float32
	KubeAPIBurst int
	// Address and Port are those of health checks and metrics. The default address is 127.0.0.1.
	// MCM listens on all addresses.
	Address string
	Port    int
	// TLSCertFile and TLSPrivateKeyFile make the port serve HTTPS. Metrics then need a bearer token
	// that the control cluster authorizes. Changed files are reloaded. Empty means plain HTTP
	// without tokens. One without the other is invalid.
	TLSCertFile, TLSPrivateKeyFile string
	// Profiling serves profiles on 127.0.0.1 at ProfilingPort. ContentionProfiling adds blocking
	// and mutexes.
	Profiling, ContentionProfiling bool
	ProfilingPort                  int

	// MetricsPerMachine adds the series of each machine to /metrics.
	MetricsPerMachine bool

	// CreationTimeout, HealthTimeout and DrainTimeout apply to machines that do not set their own.
	// Zero means no limit.
	CreationTimeout, HealthTimeout, DrainTimeout time.Duration
	// InPlaceUpdateTimeout bounds an in-place update, and PreserveTimeout how long a machine is
	// preserved, for machines that do not set their own. Zero means no limit.
	InPlaceUpdateTimeout, PreserveTimeout time.Duration
	// PVDetachTimeout is the time for the volumes of a drained Node to be detached. Then its VM is
	// deleted. Zero means no limit.
	PVDetachTimeout time.Duration
	// PVReattachTimeout is the time for a volume of an evicted pod to be attached to another Node
	// before the next pod with volumes is evicted. Zero, the default, means no wait. MCM waits 90
	// seconds.
	PVReattachTimeout time.Duration
	// MaxReplacements is the number of machines of a deployment that may be failed for bad health
	// and not yet replaced. Zero means none. MCM has no such flag and allows one.
	MaxReplacements int
	// NodeConditions are comma-separated node conditions. A Node is unhealthy unless each is False.
	NodeConditions string
	// ResourceExhaustedRetry is the time between two attempts when the provider has no capacity.
	// Zero means 10 minutes.
	ResourceExhaustedRetry time.Duration
	// DriverTimeouts are the deadlines of driver calls. Zero means 10 minutes.
	DriverTimeouts driver.Timeouts
	// SettleTime is the time until the provider lists a VM that it has created. Zero means at once.
	SettleTime time.Duration
	// OrphanVMsPeriod is the time between two searches for orphan VMs. OrphanVMsGrace is the time
	// that a VM has to be an orphan before it is deleted. Zero means 15 and 10 minutes.
	OrphanVMsPeriod, OrphanVMsGrace time.Duration
	// HoldPercent is the percentage of the machines of a deployment, a zone or the namespace that
	// have to fail within 5 minutes so that replacements stop, for an hour at most. Zero means that
	// replacements never stop.
	HoldPercent int
	// OvershootUp is the number of machines above its limit at which a set is frozen. OvershootDown
	// is how many machines below that number it is unfrozen. OvershootPeriod is the time between
	// two checks of all sets. Zero means 1 minute.
	OvershootUp, OvershootDown int32
	OvershootPeriod            time.Duration

	// FreezeTimeout is the time without an answer of an API server after which no machine is
	// created, failed or replaced. FreezePeriod is the time between two probes of the API servers
	// while they answer. Zero means 30 seconds and 1 minute.
	FreezeTimeout, FreezePeriod time.Duration

	// HoldAutoscaler annotates Nodes during a rollout, so that the cluster autoscaler does not
	// remove them.
	HoldAutoscaler bool
	// TokenGroups are the comma-separated extra groups of the bootstrap token of a machine, besides
	// system:bootstrappers.
	TokenGroups string

	// LeaderElection configures the lease.
	LeaderElection LeaderElection

	// Verbosity of the log: 0 logs actions and errors, 2 also waits, 4 also each decision.
	Verbosity int
	// LoggingFormat is text or json.
	LoggingFormat string
}

// LeaderElection is the configuration of the lease.
type LeaderElection struct {
	// LeaderElect enables the lease. Without it the manager acts at once.
	LeaderElect bool
	// LeaseDuration is the time after the last renewal at which another manager takes the lease.
	LeaseDuration time.Duration
	// RenewDeadline is the time that the leader tries to renew the lease before it exits.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two attempts to acquire or renew the lease.
	RetryPeriod time.Duration
	// ResourceLock is the type of the lock. Only "leases" exists.
	ResourceLock string
	// ResourceName is the name of the lease. A program of all controllers has a second one: see
	// [MCServer.LeaseNames].
	ResourceName string
	// ResourceNamespace is the namespace of the lease. Empty means the namespace of the machine
	// objects. A lease is deleted with its namespace, and then the manager exits.
	ResourceNamespace string
}

// NewMCServer returns the defaults of a machine-controller. A provider project builds that program
// with its driver.
func NewMCServer() *MCServer { return newServer(machineController) }

// NewMCMServer returns the defaults of a machine-controller-manager. It runs the controllers of
// sets and deployments, without a driver. It differs from [NewMCServer] in the port, the number of
// workers and the lease.
func NewMCMServer() *MCServer {
	s := newServer(machineControllerManager)
	s.ConcurrentSyncs, s.Port, s.ProfilingPort, s.LeaderElection.ResourceName = 10, 10258, 10268, "machine-controller-manager"
	return s
}

// NewManagerServer returns the defaults of one program that runs all controllers. It has the port
// of a machine-controller, the leases of both programs, and accepts the flags of both.
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
		DriverTimeouts:         driver.Timeouts{Default: driver.DefaultTimeout},
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
