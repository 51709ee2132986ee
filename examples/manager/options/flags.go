// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"

	"github.com/machinist-dev/machinist/examples/controllers"
)

// AddFlags adds the flags to fs. Their defaults are the values of s. A nil fs is ignored.
func (s *MCServer) AddFlags(fs *pflag.FlagSet) {
	if fs == nil {
		return
	}
	s.addCommonFlags(fs)
	if s.program != machineControllerManager {
		s.addMachineFlags(fs)
	}
	if s.program != machineController {
		s.addSetFlags(fs)
	}
	s.addIneffective(fs)
	s.addRefused(fs)
}

// addCommonFlags adds the flags of every program.
func (s *MCServer) addCommonFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.TargetKubeconfig, "target-kubeconfig", s.TargetKubeconfig, `kubeconfig of the target cluster, which machines join; "none": no target cluster; empty: the cluster that the manager runs in`)
	fs.StringVar(&s.ControlKubeconfig, "control-kubeconfig", s.ControlKubeconfig, `kubeconfig of the control cluster, which has the machine objects; "inClusterConfig": the cluster that the manager runs in; empty: the target cluster`)
	fs.StringVar(&s.Namespace, "namespace", s.Namespace, "namespace of the machine objects and their secrets")
	fs.StringVar(&s.Shard, "shard", s.Shard, "act only on objects whose label "+controllers.ShardLabel+" has this value, with a lease for the shard; empty: only objects without the label")
	fs.IntVar(&s.ConcurrentSyncs, "concurrent-syncs", s.ConcurrentSyncs, "number of workers for each kind of object")
	fs.DurationVar(&s.MinResyncPeriod, "min-resync-period", s.MinResyncPeriod, "minimum time between two reconciliations of an unchanged object; the time used is between one and two times this; 0: never")
	fs.Float32Var(&s.KubeAPIQPS, "kube-api-qps", s.KubeAPIQPS, "requests per second to an API server, for each client")
	fs.IntVar(&s.KubeAPIBurst, "kube-api-burst", s.KubeAPIBurst, "burst of requests to an API server, for each client")
	fs.StringVar(&s.Address, "address", s.Address, "IP address of health checks and metrics; use 0.0.0.0 or :: in a pod with probes")
	fs.IntVar(&s.Port, "port", s.Port, "port of health checks and metrics")
	fs.BoolVar(&s.MetricsPerMachine, "metrics-per-machine", s.MetricsPerMachine, "add the series of each machine to /metrics, as in MCM; 1,000 machines have several thousand series")
	fs.StringVar(&s.TLSCertFile, "tls-cert-file", s.TLSCertFile, "PEM certificate for HTTPS on --port; metrics then need a bearer token that the control cluster authorizes; a changed file is reloaded")
	fs.StringVar(&s.TLSPrivateKeyFile, "tls-private-key-file", s.TLSPrivateKeyFile, "PEM key of the certificate")
	fs.BoolVar(&s.Profiling, "profiling", s.Profiling, "serve /debug/pprof/ on 127.0.0.1 at --profiling-port")
	fs.BoolVar(&s.ContentionProfiling, "contention-profiling", s.ContentionProfiling, "profile blocking and mutexes as well; needs --profiling")
	fs.IntVar(&s.ProfilingPort, "profiling-port", s.ProfilingPort, "port of the profiles")
	s.LeaderElection.addFlags(fs)
	fs.IntVarP(&s.Verbosity, "v", "v", s.Verbosity, "log verbosity; 0: actions and errors; 2: also waits; 4: also each decision")
	fs.StringVar(&s.LoggingFormat, "logging-format", s.LoggingFormat, "text or json")
	fs.DurationVar(&s.FreezeTimeout, "machine-safety-apiserver-statuscheck-timeout", s.FreezeTimeout, "time without an answer of an API server after which no machine is created, failed or replaced; 0: 30 seconds")
	fs.DurationVar(&s.FreezePeriod, "machine-safety-apiserver-statuscheck-period", s.FreezePeriod, "time between two probes of the API servers while they answer; at least the timeout; 0: 1 minute")
}

// addMachineFlags adds the flags of the controllers of machines.
func (s *MCServer) addMachineFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&s.CreationTimeout, "machine-creation-timeout", s.CreationTimeout, "time for a machine to join the cluster; 0: no limit")
	fs.DurationVar(&s.HealthTimeout, "machine-health-timeout", s.HealthTimeout, "time that a machine may be unhealthy before it fails; 0: no limit")
	fs.DurationVar(&s.DrainTimeout, "machine-drain-timeout", s.DrainTimeout, "time that a drain respects disruption budgets and grace periods; 0: no limit")
	fs.DurationVar(&s.InPlaceUpdateTimeout, "machine-inplace-update-timeout", s.InPlaceUpdateTimeout, "time for an in-place update; 0: no limit")
	fs.DurationVar(&s.PreserveTimeout, "machine-preserve-timeout", s.PreserveTimeout, "time that a machine is preserved; 0: no limit")
	fs.DurationVar(&s.PVDetachTimeout, "machine-pv-detach-timeout", s.PVDetachTimeout, "time for the volumes of a drained node to be detached; then its VM is deleted; 0: no limit")
	fs.DurationVar(&s.PVReattachTimeout, "machine-pv-reattach-timeout", s.PVReattachTimeout, "time for a volume to be attached to another node before the next pod with volumes is evicted; 0: no wait, pods with volumes are evicted together")
	fs.IntVar(&s.MaxReplacements, "machine-max-replacements", s.MaxReplacements, "number of machines of a deployment that may be failed for bad health and not yet replaced; 0: none")
	fs.StringVar(&s.NodeConditions, "node-conditions", s.NodeConditions, "comma-separated node conditions; a node is unhealthy unless each is False")
	fs.DurationVar(&s.ResourceExhaustedRetry, "resource-exhausted-retry", s.ResourceExhaustedRetry, "time between two attempts when the provider has no capacity; 0: 10 minutes")
	fs.DurationVar(&s.SettleTime, "machine-settle-time", s.SettleTime, "time until the provider lists a VM that it has created; 0: at once")
	fs.DurationVar(&s.OrphanVMsPeriod, "machine-safety-orphan-vms-period", s.OrphanVMsPeriod, "time between two searches for orphan VMs; 0: 15 minutes")
	fs.DurationVar(&s.OrphanVMsGrace, "machine-safety-orphan-vms-grace", s.OrphanVMsGrace, "time that a VM has to be an orphan before it is deleted; 0: 10 minutes")
	fs.IntVar(&s.HoldPercent, "machine-safety-hold-percent", s.HoldPercent, "percentage of the machines of a deployment, a zone or the namespace that have to fail within 5 minutes so that replacements stop, for an hour at most; 3 machines are always replaced; 0: off")
	fs.StringVar(&s.TokenGroups, "bootstrap-token-auth-extra-groups", s.TokenGroups, `comma-separated extra groups of the bootstrap token of a machine, besides system:bootstrappers; each begins with "system:bootstrappers:"`)
}

// addSetFlags adds the flags of the controllers of sets and deployments.
func (s *MCServer) addSetFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&s.OvershootPeriod, "machine-safety-overshooting-period", s.OvershootPeriod, "time between two checks of machine sets for too many machines; 0: 1 minute")
	fs.Int32Var(&s.OvershootUp, "safety-up", s.OvershootUp, "number of machines above its limit at which a machine set is frozen")
	fs.Int32Var(&s.OvershootDown, "safety-down", s.OvershootDown, "number of machines below the freezing number at which a machine set is unfrozen")
	fs.BoolVar(&s.HoldAutoscaler, "autoscaler-scaledown-annotation-during-rollout", s.HoldAutoscaler, "annotate nodes during a rollout, so that the cluster autoscaler does not remove them")
}

func (l *LeaderElection) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&l.LeaderElect, "leader-elect", l.LeaderElect, "use a lease so that one of several managers acts")
	fs.DurationVar(&l.LeaseDuration, "leader-elect-lease-duration", l.LeaseDuration, "time after the last renewal at which another manager takes the lease")
	fs.DurationVar(&l.RenewDeadline, "leader-elect-renew-deadline", l.RenewDeadline, "time that the leader tries to renew the lease before it exits")
	fs.DurationVar(&l.RetryPeriod, "leader-elect-retry-period", l.RetryPeriod, "time between two attempts to acquire or renew the lease")
	fs.StringVar(&l.ResourceLock, "leader-elect-resource-lock", l.ResourceLock, "type of the lock: leases")
	fs.StringVar(&l.ResourceName, "leader-elect-resource-name", l.ResourceName, "name of the lease; the Role of the manager has to contain it")
	fs.StringVar(&l.ResourceNamespace, "leader-elect-resource-namespace", l.ResourceNamespace, "namespace of the lease; empty: the namespace of the machine objects, whose deletion then ends the manager")
}
