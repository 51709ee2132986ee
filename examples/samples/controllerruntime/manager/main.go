// SPDX-License-Identifier: Apache-2.0

// Command manager runs the machine controllers over controller-runtime and a simulated cloud. A provider has
// the same program with another driver. The roles are those of examples/programs/manager/manifests.
package main

import (
	"errors"
	"flag"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/machinist-dev/machinist/examples/rigs/cloud"
	"github.com/machinist-dev/machinist/examples/samples/controllerruntime"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/safety"
)

func main() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	cfg := controllerruntime.Config{Policy: machine.DefaultPolicy(), Orphans: safety.DefaultPolicy()}
	o := ctrl.Options{LeaderElection: true, LeaderElectionID: "machine-controller"}
	o.LeaderElectionReleaseOnCancel, o.GracefulShutdownTimeout = true, new(time.Duration(-1)) // when no pass runs any more
	o.Controller.MaxConcurrentReconciles = 50                                                 // they wait for the provider
	address := flag.String("simulated-cloud", "", "URL of the simulated cloud")
	flag.StringVar(&cfg.Namespace, "namespace", "default", "namespace of the machine objects")
	flag.StringVar(&o.LeaderElectionNamespace, "leader-elect-resource-namespace", "", "namespace of the lease")
	o.LeaseDuration = flag.Duration("leader-elect-lease-duration", 15*time.Second, "time after which another process takes the lease")
	o.RenewDeadline = flag.Duration("leader-elect-renew-deadline", 10*time.Second, "time without a renewal after which this process ends")
	o.RetryPeriod = flag.Duration("leader-elect-retry-period", 2*time.Second, "time between two attempts")
	flag.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", ":8081", "address of health checks")
	flag.StringVar(&o.Metrics.BindAddress, "metrics-bind-address", ":8080", "address of metrics, or 0")
	flag.DurationVar(&cfg.Policy.Settle, "machine-settle-time", 30*time.Second, "time until the provider lists a new VM")
	flag.DurationVar(&cfg.Orphans.Period, "machine-safety-orphan-vms-period", cfg.Orphans.Period, "time between two searches for orphan VMs")
	flag.DurationVar(&cfg.Orphans.Grace, "machine-safety-orphan-vms-grace", cfg.Orphans.Grace, "time that a VM has to be an orphan before it is deleted")
	flag.Parse()

	driver, err := cloud.Dial(*address)
	exit(err)
	ctx := ctrl.SetupSignalHandler()
	cfg.Driver, cfg.Target = driver, ctrl.GetConfigOrDie()
	o.Cache = cache.Options{DefaultNamespaces: map[string]cache.Config{cfg.Namespace: {}}, DefaultTransform: cache.TransformStripManagedFields()}
	mgr, err := ctrl.NewManager(cfg.Target, o)
	exit(err)
	exit(errors.Join(controllerruntime.Add(ctx, mgr, cfg), mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)))
	exit(mgr.Start(ctx))
}

func exit(err error) {
	if err != nil {
		slog.Error("ended", "err", err)
		os.Exit(1)
	}
}
