// SPDX-License-Identifier: Apache-2.0

// Package integration is the integration test framework of MCM: the checks of package apptest, in a ginkgo suite with MCM's environment.
package integration

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/examples/programs/manager/apptest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Tracker finds the resources that machines have left in the cloud.
type Tracker interface {
	// IsOrphanedResourcesAvailable reports whether there are such resources. It may delete them.
	IsOrphanedResourcesAvailable() bool
	// InitializeResourcesTracker is called before the first machine is created. The data is that of the Secrets of the
	// class. The name is TARGET_CLUSTER_NAME.
	InitializeResourcesTracker(machineClass *v1alpha1.MachineClass, secretData map[string][]byte, clusterName string) error
}

// Framework has the nodes of a ginkgo suite. [New] returns one.
type Framework struct {
	// ControlCluster and TargetCluster are those of CONTROL_KUBECONFIG and TARGET_KUBECONFIG. Nil until SetupBeforeSuite.
	ControlCluster, TargetCluster *Cluster

	tracker           Tracker
	timeout, interval time.Duration
	suite             *apptest.Suite
}

// New returns a framework. Intervals are the timeout of a wait and the time between two looks, in seconds. Zero or
// less means the defaults, 300 and 2.
func New(tracker Tracker, intervals ...int64) *Framework {
	f := &Framework{tracker: tracker}
	for i, into := range []*time.Duration{&f.timeout, &f.interval} {
		if i < len(intervals) {
			*into = time.Duration(intervals[i]) * time.Second
		}
	}
	return f
}

// SetupBeforeSuite is for ginkgo.BeforeSuite. It reads the environment, starts the machine controller of the project
// and the controllers of sets, and creates the classes. It fails with the name of the variable that is missing or
// wrong, or with the end of the log of a controller that has ended.
func (f *Framework) SetupBeforeSuite() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fail(f.setUp(ctx))
}

func (f *Framework) setUp(ctx context.Context) error {
	if f.tracker == nil {
		return errNoTracker
	}
	e, err := readEnvironment()
	if err != nil {
		return err
	}
	if f.ControlCluster, err = NewCluster(e.options.ControlKubeconfig); err != nil {
		return wrong(controlKubeconfig, err)
	}
	if f.TargetCluster, err = NewCluster(e.options.TargetKubeconfig); err != nil {
		return wrong(targetKubeconfig, err)
	}
	if err := e.complete(ctx, f.ControlCluster); err != nil {
		return err
	}
	e.options.Timeout, e.options.Interval, e.options.Orphans = f.timeout, f.interval, f.orphans(e.cluster)
	f.suite, err = apptest.Open(ctx, e.options)
	return err
}

// orphans returns the search of the tracker, which is initialized by the first call.
func (f *Framework) orphans(cluster string) func(context.Context, *v1alpha1.MachineClass, *corev1.Secret) ([]string, error) {
	initialized := false
	return func(_ context.Context, class *v1alpha1.MachineClass, secret *corev1.Secret) ([]string, error) {
		if !initialized {
			initialized = true
			return nil, f.tracker.InitializeResourcesTracker(class, secret.Data, cluster)
		}
		if f.tracker.IsOrphanedResourcesAvailable() {
			return []string{"the tracker reports resources"}, nil
		}
		return nil, nil
	}
}

// BeforeEachCheck declares a ginkgo.BeforeEach, or is called in one: the controllers run, and all Nodes are ready.
func (f *Framework) BeforeEachCheck() {
	check := func(ctx context.Context) { fail(f.suite.Healthy(ctx)) }
	if !ginkgo.CurrentSpecReport().StartTime.IsZero() {
		check(context.Background())
		return
	}
	ginkgo.BeforeEach(func(ctx ginkgo.SpecContext) { check(ctx) })
}

// ControllerTests declares a ginkgo.It for each check, in a container whose specs run in order.
func (f *Framework) ControllerTests() {
	ginkgo.Describe("machine controllers", ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
		for _, c := range apptest.Checks() {
			ginkgo.It(c.Name, func(ctx ginkgo.SpecContext) { fail(f.suite.Check(ctx, c)) })
		}
	})
}

// Cleanup is for ginkgo.AfterSuite. It deletes what the checks have created, ends the controllers, and restores the
// Deployment of the seed and the definitions. It does so after each failure. After a failure of SetupBeforeSuite there is nothing to do.
func (f *Framework) Cleanup() {
	fail(f.suite.Close(context.Background()))
}

// fail ends the node that runs if there is an error.
func fail(err error) {
	if err != nil {
		ginkgo.Fail(err.Error(), 1)
	}
}
