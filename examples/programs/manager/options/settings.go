// SPDX-License-Identifier: Apache-2.0

package options

import (
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// setting is a flag. Its default is the value of the field.
type setting struct {
	name, usage string
	// field returns a pointer to the field with the value.
	field func(*MCServer) any
	// check returns why the value is out of bounds, or "". Nil means that every value is valid.
	check func(s *MCServer, field any) string
	// reach sets what the controllers get of the value. Nil means that the program itself reads the
	// field.
	reach func(*MCServer, *controllers.Config)
}

// commonSettings are the flags of every program.
var commonSettings = []setting{
	{
		name: "target-kubeconfig", field: func(s *MCServer) any { return &s.TargetKubeconfig },
		usage: `kubeconfig of the target cluster, which machines join; "none": no target cluster; empty: the cluster that the manager runs in`,
	},
	{
		name: "control-kubeconfig", field: func(s *MCServer) any { return &s.ControlKubeconfig }, check: checkControl,
		usage: `kubeconfig of the control cluster, which has the machine objects; "inClusterConfig": the cluster that the manager runs in; empty: the target cluster`,
	},
	{
		name: "namespace", field: func(s *MCServer) any { return &s.Namespace }, check: checkNamespace, reach: func(s *MCServer, c *controllers.Config) { c.Namespace = s.Namespace },
		usage: "namespace of the machine objects and their secrets",
	},
	{
		name: "shard", field: func(s *MCServer) any { return &s.Shard }, check: checkShard, reach: func(s *MCServer, c *controllers.Config) { c.Shard = s.Shard },
		usage: "act only on objects whose label " + v1alpha1.ShardLabelKey + " has this value, with a lease for the shard; empty: only objects without the label",
	},
	{
		name: "concurrent-syncs", field: func(s *MCServer) any { return &s.ConcurrentSyncs }, check: positiveOnly, reach: func(s *MCServer, c *controllers.Config) { c.Workers = s.ConcurrentSyncs },
		usage: "number of workers for each kind of object",
	},
	{
		name: "min-resync-period", field: func(s *MCServer) any { return &s.MinResyncPeriod }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) { c.Resync = s.MinResyncPeriod },
		usage: "minimum time between two reconciliations of an unchanged object; the time used is between one and two times this; 0: never",
	},
	{
		name: "kube-api-qps", field: func(s *MCServer) any { return &s.KubeAPIQPS }, check: positiveOnly,
		usage: "requests per second to an API server, for each client",
	},
	{
		name: "kube-api-burst", field: func(s *MCServer) any { return &s.KubeAPIBurst }, check: notNegative,
		usage: "burst of requests to an API server, for each client",
	},
	{
		name: "address", field: func(s *MCServer) any { return &s.Address }, check: checkAddress,
		usage: "IP address of health checks and metrics; use 0.0.0.0 or :: in a pod with probes",
	},
	{
		name: "port", field: func(s *MCServer) any { return &s.Port }, check: checkPort,
		usage: "port of health checks and metrics",
	},
	{
		name: "metrics-per-machine", field: func(s *MCServer) any { return &s.MetricsPerMachine },
		usage: "add the series of each machine to /metrics, as in MCM; 1,000 machines have several thousand series",
	},
	{
		name: "tls-cert-file", field: func(s *MCServer) any { return &s.TLSCertFile },
		usage: "PEM certificate for HTTPS on --port; metrics then need a bearer token that the control cluster authorizes; a changed file is reloaded",
	},
	{
		name: "tls-private-key-file", field: func(s *MCServer) any { return &s.TLSPrivateKeyFile }, check: checkTLS,
		usage: "PEM key of the certificate",
	},
	{
		name: "profiling", field: func(s *MCServer) any { return &s.Profiling },
		usage: "serve /debug/pprof/ on 127.0.0.1 at --profiling-port",
	},
	{
		name: "contention-profiling", field: func(s *MCServer) any { return &s.ContentionProfiling }, check: checkContention,
		usage: "profile blocking and mutexes as well; needs --profiling",
	},
	{
		name: "profiling-port", field: func(s *MCServer) any { return &s.ProfilingPort }, check: checkProfilingPort,
		usage: "port of the profiles",
	},
}

// leaseSettings are the flags of the lease, of every program.
var leaseSettings = []setting{
	{
		name: "leader-elect", field: func(s *MCServer) any { return &s.LeaderElection.LeaderElect },
		usage: "use a lease so that one of several managers acts",
	},
	{
		name: "leader-elect-lease-duration", field: func(s *MCServer) any { return &s.LeaderElection.LeaseDuration }, check: checkLease,
		usage: "time after the last renewal at which another manager takes the lease",
	},
	{
		name: "leader-elect-renew-deadline", field: func(s *MCServer) any { return &s.LeaderElection.RenewDeadline }, check: checkRenew,
		usage: "time that the leader tries to renew the lease before it exits",
	},
	{
		name: "leader-elect-retry-period", field: func(s *MCServer) any { return &s.LeaderElection.RetryPeriod }, check: checkRetry,
		usage: "time between two attempts to acquire or renew the lease",
	},
	{
		name: "leader-elect-resource-lock", field: func(s *MCServer) any { return &s.LeaderElection.ResourceLock }, check: checkLock,
		usage: "type of the lock: leases",
	},
	{
		name: "leader-elect-resource-name", field: func(s *MCServer) any { return &s.LeaderElection.ResourceName }, check: checkLeaseName,
		usage: "name of the lease; the manager also holds the lease with this name and -manager, which is that of the machine-controller-manager; the Role has to contain the names",
	},
	{
		name: "leader-elect-resource-namespace", field: func(s *MCServer) any { return &s.LeaderElection.ResourceNamespace }, check: checkLeaseNamespace,
		usage: "namespace of the lease; empty: the namespace of the machine objects, whose deletion then ends the manager",
	},
}

// otherSettings are the flags of the log and of the probes, of every program.
var otherSettings = []setting{
	{
		name: "v", field: func(s *MCServer) any { return &s.Verbosity }, check: notNegative,
		usage: "log verbosity; 0: actions and errors; 2: also waits; 4: also each decision",
	},
	{
		name: "logging-format", field: func(s *MCServer) any { return &s.LoggingFormat }, check: checkFormat,
		usage: "text or json",
	},
	{
		name: "machine-safety-apiserver-statuscheck-timeout", field: func(s *MCServer) any { return &s.FreezeTimeout }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) { c.Freeze.Timeout = s.FreezeTimeout },
		usage: "time without an answer of an API server after which no machine is created, failed or replaced; 0: 30 seconds",
	},
	{
		name: "machine-safety-apiserver-statuscheck-period", field: func(s *MCServer) any { return &s.FreezePeriod }, check: checkFreezePeriod, reach: func(s *MCServer, c *controllers.Config) { c.Freeze.Period = s.FreezePeriod },
		usage: "time between two probes of the API servers while they answer; at least the timeout; 0: 1 minute",
	},
}

// machineSettings are the flags of the controllers of machines.
var machineSettings = []setting{
	{
		name: "machine-creation-timeout", field: func(s *MCServer) any { return &s.CreationTimeout }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) { c.Policy.CreationTimeout = s.CreationTimeout },
		usage: "time for a machine to join the cluster; 0: no limit",
	},
	{
		name: "machine-health-timeout", field: func(s *MCServer) any { return &s.HealthTimeout }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) { c.Policy.HealthTimeout = s.HealthTimeout },
		usage: "time that a machine may be unhealthy before it fails; 0: no limit",
	},
	{
		name: "machine-drain-timeout", field: func(s *MCServer) any { return &s.DrainTimeout }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) { c.Policy.DrainTimeout = s.DrainTimeout },
		usage: "time that a drain respects disruption budgets and grace periods; 0: no limit",
	},
	{
		name: "machine-inplace-update-timeout", field: func(s *MCServer) any { return &s.InPlaceUpdateTimeout }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) { c.Policy.InPlaceTimeout = s.InPlaceUpdateTimeout },
		usage: "time for an in-place update; 0: no limit",
	},
	{
		name: "machine-preserve-timeout", field: func(s *MCServer) any { return &s.PreserveTimeout }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) { c.Policy.PreserveTimeout = s.PreserveTimeout },
		usage: "time that a machine is preserved; 0: no limit",
	},
	{
		name: "machine-pv-detach-timeout", field: func(s *MCServer) any { return &s.PVDetachTimeout }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) { c.Policy.DetachTimeout = s.PVDetachTimeout },
		usage: "time for the volumes of a drained node to be detached; then its VM is deleted; 0: no limit",
	},
	{
		name: "machine-pv-reattach-timeout", field: func(s *MCServer) any { return &s.PVReattachTimeout }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) { c.Policy.ReattachTimeout = s.PVReattachTimeout },
		usage: "time for a volume to be attached to another node before the next pod with volumes is evicted; 0: no wait, pods with volumes are evicted together",
	},
	{
		name: "machine-max-replacements", field: func(s *MCServer) any { return &s.MaxReplacements }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) { c.Policy.MaxReplacements = s.MaxReplacements },
		usage: "number of machines of a deployment that may be failed for bad health and not yet replaced; 0: none",
	},
	{
		name: "node-conditions", field: func(s *MCServer) any { return &s.NodeConditions }, reach: func(s *MCServer, c *controllers.Config) {
			c.Policy.HealthConditions = machine.ParseHealthConditions(s.NodeConditions)
		},
		usage: "comma-separated node conditions; a node is unhealthy unless each is False",
	},
	{
		name: "resource-exhausted-retry", field: func(s *MCServer) any { return &s.ResourceExhaustedRetry }, check: notNegative, reach: reachCapacity,
		usage: "time between two attempts when the provider has no capacity; 0: 10 minutes",
	},
	{
		name: "machine-driver-timeout", field: func(s *MCServer) any { return &s.DriverTimeouts }, check: checkTimeouts,
		usage: "deadline of a driver call, also by operation, as in 10m,CreateMachine=20m; the machine of a call that continues is left alone until it ends; 0: 10 minutes",
	},
	{
		name: "machine-settle-time", field: func(s *MCServer) any { return &s.SettleTime }, check: notNegative, reach: reachSettle,
		usage: "time until the provider lists a VM that it has created; 0: at once",
	},
	{
		name: "machine-safety-orphan-vms-period", field: func(s *MCServer) any { return &s.OrphanVMsPeriod }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) {
			c.Orphans.Period = positive(s.OrphanVMsPeriod, c.Orphans.Period)
		},
		usage: "time between two searches for orphan VMs; 0: 15 minutes",
	},
	{
		name: "machine-safety-orphan-vms-grace", field: func(s *MCServer) any { return &s.OrphanVMsGrace }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) {
			c.Orphans.Grace = positive(s.OrphanVMsGrace, c.Orphans.Grace)
		},
		usage: "time that a VM has to be an orphan before it is deleted; 0: 10 minutes",
	},
	{
		name: "machine-safety-hold-percent", field: func(s *MCServer) any { return &s.HoldPercent }, check: checkPercent, reach: reachGuard,
		usage: "percentage of the machines of a deployment, a zone or the namespace that have to fail within 5 minutes so that replacements stop, for an hour at most; 3 machines are always replaced; 0: off",
	},
	{
		name: "bootstrap-token-auth-extra-groups", field: func(s *MCServer) any { return &s.TokenGroups }, check: checkGroups, reach: func(s *MCServer, c *controllers.Config) { c.TokenGroups = groupsOf(s.TokenGroups) },
		usage: `comma-separated extra groups of the bootstrap token of a machine, besides system:bootstrappers; each begins with "system:bootstrappers:"`,
	},
}

// setSettings are the flags of the controllers of sets and deployments.
var setSettings = []setting{
	{
		name: "machine-safety-overshooting-period", field: func(s *MCServer) any { return &s.OvershootPeriod }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) {
			c.Overshoot.Period = positive(s.OvershootPeriod, c.Overshoot.Period)
		},
		usage: "time between two checks of machine sets for too many machines; 0: 1 minute",
	},
	{
		name: "safety-up", field: func(s *MCServer) any { return &s.OvershootUp }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) { c.Overshoot.Up = s.OvershootUp },
		usage: "number of machines above its limit at which a machine set is frozen",
	},
	{
		name: "safety-down", field: func(s *MCServer) any { return &s.OvershootDown }, check: notNegative, reach: func(s *MCServer, c *controllers.Config) { c.Overshoot.Down = s.OvershootDown },
		usage: "number of machines below the freezing number at which a machine set is unfrozen",
	},
	{
		name: "autoscaler-scaledown-annotation-during-rollout", field: func(s *MCServer) any { return &s.HoldAutoscaler }, reach: func(s *MCServer, c *controllers.Config) { c.Deployments.HoldAutoscaler = s.HoldAutoscaler },
		usage: "annotate nodes during a rollout, so that the cluster autoscaler does not remove them",
	},
}
