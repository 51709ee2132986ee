// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/spf13/pflag"

	"github.com/machinist-dev/machinist/examples/controllers"
)

// AddFlags adds the flags to a set; what s holds by then are their defaults. A
// nil set is ignored.
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
	fs.StringVar(&s.TargetKubeconfig, "target-kubeconfig", s.TargetKubeconfig, `file that leads to the cluster which machines join; "none" is no cluster, empty the one that the manager runs in`)
	fs.StringVar(&s.ControlKubeconfig, "control-kubeconfig", s.ControlKubeconfig, `file that leads to the cluster of the machine objects; "inClusterConfig" is the one that the manager runs in, empty the target cluster`)
	fs.StringVar(&s.Namespace, "namespace", s.Namespace, "namespace of the machine objects and their secrets")
	fs.StringVar(&s.Shard, "shard", s.Shard, "act only on objects whose label "+controllers.ShardLabel+" has this value, and under a lease of the shard; empty is only on objects without the label")
	fs.IntVar(&s.ConcurrentSyncs, "concurrent-syncs", s.ConcurrentSyncs, "how many objects of a kind are worked on at a time")
	fs.DurationVar(&s.MinResyncPeriod, "min-resync-period", s.MinResyncPeriod, "everything is looked at again after one to two times this long; 0 is never")
	fs.Float32Var(&s.KubeAPIQPS, "kube-api-qps", s.KubeAPIQPS, "requests a second to an API server, for each client")
	fs.IntVar(&s.KubeAPIBurst, "kube-api-burst", s.KubeAPIBurst, "requests at once to an API server, for each client")
	fs.StringVar(&s.Address, "address", s.Address, "IP address of health checks and metrics; a pod whose kubelet probes it needs 0.0.0.0 or ::")
	fs.IntVar(&s.Port, "port", s.Port, "port of health checks and metrics")
	fs.BoolVar(&s.MetricsPerMachine, "metrics-per-machine", s.MetricsPerMachine, "add series for each machine to /metrics, as MCM has them; a thousand machines are several thousand series")
	fs.StringVar(&s.TLSCertFile, "tls-cert-file", s.TLSCertFile, "certificate of the port, PEM; it then serves HTTPS, and metrics only for bearer tokens that the control cluster lets get them; read again when it changes")
	fs.StringVar(&s.TLSPrivateKeyFile, "tls-private-key-file", s.TLSPrivateKeyFile, "key of the certificate, PEM")
	fs.BoolVar(&s.Profiling, "profiling", s.Profiling, "serve profiles of the process under /debug/pprof/ on 127.0.0.1 at --profiling-port")
	fs.BoolVar(&s.ContentionProfiling, "contention-profiling", s.ContentionProfiling, "also profile blocking and mutexes; needs --profiling")
	fs.IntVar(&s.ProfilingPort, "profiling-port", s.ProfilingPort, "port of the profiles")
	s.LeaderElection.addFlags(fs)
	fs.IntVarP(&s.Verbosity, "v", "v", s.Verbosity, "how much is logged: 0 what is done and what goes wrong, 2 also what waits, 4 every look")
	fs.StringVar(&s.LoggingFormat, "logging-format", s.LoggingFormat, "text or json")
	fs.DurationVar(&s.FreezeTimeout, "machine-safety-apiserver-statuscheck-timeout", s.FreezeTimeout, "how long an API server may fail to answer until nothing is created, failed or replaced any more; 0 is 30 seconds")
	fs.DurationVar(&s.FreezePeriod, "machine-safety-apiserver-statuscheck-period", s.FreezePeriod, "how often the API servers are probed while they answer; at least the timeout, 0 is 1 minute")
}

// addMachineFlags adds the flags of the controllers of machines.
func (s *MCServer) addMachineFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&s.CreationTimeout, "machine-creation-timeout", s.CreationTimeout, "how long a machine may take to join; 0 is for ever")
	fs.DurationVar(&s.HealthTimeout, "machine-health-timeout", s.HealthTimeout, "how long a machine may be unhealthy; 0 is for ever")
	fs.DurationVar(&s.DrainTimeout, "machine-drain-timeout", s.DrainTimeout, "how long a drain respects budgets and grace; 0 is for ever")
	fs.DurationVar(&s.InPlaceUpdateTimeout, "machine-inplace-update-timeout", s.InPlaceUpdateTimeout, "how long an update in place may take; 0 is for ever")
	fs.DurationVar(&s.PreserveTimeout, "machine-preserve-timeout", s.PreserveTimeout, "for how long a machine is preserved; 0 is for ever")
	fs.DurationVar(&s.PVDetachTimeout, "machine-pv-detach-timeout", s.PVDetachTimeout, "how long volumes may take to be detached from a drained node, before its VM is deleted nevertheless; 0 is for ever")
	fs.DurationVar(&s.PVReattachTimeout, "machine-pv-reattach-timeout", s.PVReattachTimeout, "how long a volume may take to be attached to another node before the next pod with volumes is evicted; 0 is not waiting, and evicting all at once")
	fs.IntVar(&s.MaxReplacements, "machine-max-replacements", s.MaxReplacements, "how many machines of a deployment may be failed for bad health and not yet replaced, at a time; 0 is none")
	fs.StringVar(&s.NodeConditions, "node-conditions", s.NodeConditions, "conditions, separated by commas, that make a node unhealthy unless they are False")
	fs.DurationVar(&s.ResourceExhaustedRetry, "resource-exhausted-retry", s.ResourceExhaustedRetry, "how long to wait after the provider had no room; 0 is 10 minutes")
	fs.DurationVar(&s.SettleTime, "machine-settle-time", s.SettleTime, "how long the provider may take to show a VM that it has made; 0 is not at all")
	fs.DurationVar(&s.OrphanVMsPeriod, "machine-safety-orphan-vms-period", s.OrphanVMsPeriod, "how often VMs are looked for that nobody owns; 0 is 15 minutes")
	fs.DurationVar(&s.OrphanVMsGrace, "machine-safety-orphan-vms-grace", s.OrphanVMsGrace, "for how long a VM has to be without owner before it is deleted; 0 is 10 minutes")
	fs.IntVar(&s.HoldPercent, "machine-safety-hold-percent", s.HoldPercent, "how many percent of the machines of a deployment, a zone or the namespace have to fail within 5 minutes so that none of them is replaced, for an hour at most; 3 machines are always replaced, and 0 is off")
	fs.StringVar(&s.TokenGroups, "bootstrap-token-auth-extra-groups", s.TokenGroups, `groups, separated by commas, that the bootstrap token of a machine puts it into besides system:bootstrappers; each begins with "system:bootstrappers:"`)
}

// addSetFlags adds the flags of the controllers of sets and deployments.
func (s *MCServer) addSetFlags(fs *pflag.FlagSet) {
	fs.DurationVar(&s.OvershootPeriod, "machine-safety-overshooting-period", s.OvershootPeriod, "how often machine sets are looked at that may have too many machines; 0 is 1 minute")
	fs.Int32Var(&s.OvershootUp, "safety-up", s.OvershootUp, "a machine set that creates machines is frozen at so many machines above its limit")
	fs.Int32Var(&s.OvershootDown, "safety-down", s.OvershootDown, "a frozen machine set is unfrozen at so many machines below the number that freezes it")
	fs.BoolVar(&s.HoldAutoscaler, "autoscaler-scaledown-annotation-during-rollout", s.HoldAutoscaler, "keep the cluster autoscaler from removing nodes of a machine deployment while it is rolled out")
}

func (l *LeaderElection) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&l.LeaderElect, "leader-elect", l.LeaderElect, "agree with other managers on the one that works")
	fs.DurationVar(&l.LeaseDuration, "leader-elect-lease-duration", l.LeaseDuration, "how long the others wait for a leader that is silent")
	fs.DurationVar(&l.RenewDeadline, "leader-elect-renew-deadline", l.RenewDeadline, "how long a leader tries to renew its lease before it ends")
	fs.DurationVar(&l.RetryPeriod, "leader-elect-retry-period", l.RetryPeriod, "how often the lease is looked at")
	fs.StringVar(&l.ResourceLock, "leader-elect-resource-lock", l.ResourceLock, "kind of the lock: leases")
	fs.StringVar(&l.ResourceName, "leader-elect-resource-name", l.ResourceName, "name of the lease; the role of the manager has to allow it")
	fs.StringVar(&l.ResourceNamespace, "leader-elect-resource-namespace", l.ResourceNamespace, "namespace of the lease; empty is that of the machine objects, with which it would be deleted")
}
