// SPDX-License-Identifier: Apache-2.0

package alerts_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

const (
	namespace = "default"
	pool      = "pool"
	// every is the time between two scrapes.
	every = 30 * time.Second
)

// scrape is what /metrics said at a time.
type scrape struct {
	at   time.Time
	text []byte
}

// fleet is the controllers at work over clusters in memory and a simulated cloud, in the virtual
// time of synctest.
type fleet struct {
	*testing.T
	cloud    *drivertest.Cloud
	machines versioned.Interface
	target   *draintest.Cluster
	nodes    *hollow.Nodes
	lifespan *hollow.Lifecycle
	metrics  *metrics.Metrics
	workers  int
	leads    bool
	scrapes  []scrape
}

// play runs a story with a fleet, and returns what was scraped meanwhile. The story begins with
// controllers that have nothing to do.
func play(t *testing.T, options drivertest.CloudOptions, workers int, tell func(*fleet)) (scrapes []scrape) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{T: t, cloud: drivertest.NewCloud(options), workers: workers, leads: true, metrics: metrics.New(metrics.Options{PerMachine: true})}
		var control *draintest.Cluster
		control, f.machines = machinetest.New(draintest.Options{})
		f.target = draintest.New(draintest.Options{NodeVolumes: true})
		client := f.target.Client()
		f.nodes = &hollow.Nodes{Client: client, Clock: clock.RealClock{}, VMs: hollow.VMsOf(f.cloud)}
		f.lifespan = &hollow.Lifecycle{Client: client, Clock: clock.RealClock{}}
		f.metrics.Lease(func() (bool, time.Time) { return f.leads, time.Now() })
		_, err := control.Client().CoreV1().Secrets(namespace).Create(t.Context(), f.cloud.Secret(namespace, "secret"), metav1.CreateOptions{})
		require.NoError(t, err)
		for _, name := range []string{"small", "large"} {
			class := f.cloud.MachineClass(namespace, name)
			class.SecretRef.Namespace, class.SecretRef.Name = namespace, "secret"
			_, err = f.machines.MachineV1alpha1().MachineClasses(namespace).Create(t.Context(), class, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- controllers.Run(ctx, f.config(control)) }()
		defer func() {
			cancel()
			require.NoError(t, <-done)
			scrapes = f.scrapes
		}()
		f.pass(time.Minute)
		tell(f)
	})
	return scrapes
}

// config is that of the manager.
func (f *fleet) config(control *draintest.Cluster) controllers.Config {
	return controllers.Config{
		Machines: f.machines, Control: control.Client(), Target: f.target.Client(), Driver: f.metrics.Driver(f.driver()), Workers: f.workers,
		Policy: machine.DefaultPolicy(), Orphans: safety.DefaultPolicy(), Guard: safety.DefaultGuardPolicy(),
		Observe: f.metrics.Decided, Drains: f.metrics.Drains(), QueueMetrics: f.metrics.Queues(), Started: f.metrics.Watch,
		Probed: f.metrics.Probed, Collected: f.metrics.Collected,
	}
}

// driver is that of the cloud. It panics for a machine of the name "cursed".
func (f *fleet) driver() driver.Driver { return cursed{f.cloud} }

type cursed struct{ *drivertest.Cloud }

// CreateMachine implements [driver.Driver].
func (c cursed) CreateMachine(ctx context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	if r.Machine.Name == "cursed" {
		panic("cursed")
	}
	return c.Cloud.CreateMachine(ctx, r)
}

// pass lets time pass, and scrapes.
func (f *fleet) pass(d time.Duration) {
	f.Helper()
	const tick = 5 * time.Second
	for end := time.Now().Add(d); time.Now().Before(end); {
		for range every / tick {
			_ = f.nodes.Step(f.Context()) // repeated at the next step
			_ = f.lifespan.Step(f.Context())
			f.target.Tick()
			time.Sleep(tick)
		}
		synctest.Wait()
		f.scrape()
	}
}

func (f *fleet) scrape() {
	f.Helper()
	answer := httptest.NewRecorder()
	f.metrics.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(f.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(f, http.StatusOK, answer.Code)
	f.scrapes = append(f.scrapes, scrape{time.Now(), answer.Body.Bytes()})
}

// deploy makes a deployment of so many machines, with a progress deadline of ten minutes.
func (f *fleet) deploy(replicas int32) {
	f.Helper()
	labels, one, none, deadline := map[string]string{"pool": pool}, intstr.FromInt32(1), intstr.FromInt32(0), int32(600)
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pool}}
	d.Spec.Replicas, d.Spec.Selector, d.Spec.ProgressDeadlineSeconds = replicas, &metav1.LabelSelector{MatchLabels: labels}, &deadline
	d.Spec.Strategy.Type = v1alpha1.RollingUpdateMachineDeploymentStrategyType
	d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{
		UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &one, MaxUnavailable: &none},
	}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}
	_, err := f.machines.MachineV1alpha1().MachineDeployments(namespace).Create(f.Context(), d, metav1.CreateOptions{})
	require.NoError(f, err)
}

// change changes the deployment.
func (f *fleet) change(edit func(*v1alpha1.MachineDeployment)) {
	f.Helper()
	api := f.machines.MachineV1alpha1().MachineDeployments(namespace)
	for range 5 {
		d, err := api.Get(f.Context(), pool, metav1.GetOptions{})
		require.NoError(f, err)
		edit(d)
		if _, err = api.Update(f.Context(), d, metav1.UpdateOptions{}); err == nil {
			return
		}
	}
	f.Fatal("conflicts")
}

// all are the machines now, which may not be none.
func (f *fleet) all() []v1alpha1.Machine {
	f.Helper()
	list, err := f.machines.MachineV1alpha1().Machines(namespace).List(f.Context(), metav1.ListOptions{})
	require.NoError(f, err)
	require.NotEmpty(f, list.Items)
	return list.Items
}

// remove deletes a machine.
func (f *fleet) remove(name string) {
	f.Helper()
	require.NoError(f, f.machines.MachineV1alpha1().Machines(namespace).Delete(f.Context(), name, metav1.DeleteOptions{}))
}

// create makes a machine without a set.
func (f *fleet) create(name string) {
	f.Helper()
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	m.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}
	_, err := f.machines.MachineV1alpha1().Machines(namespace).Create(f.Context(), m, metav1.CreateOptions{})
	require.NoError(f, err)
}

// running requires that so many machines run.
func (f *fleet) running(n int) {
	f.Helper()
	phases := ""
	count := 0
	for _, m := range f.all() {
		phases += fmt.Sprintf(" %s %s", m.Name, m.Status.CurrentStatus.Phase)
		if m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
			count++
		}
	}
	require.Equal(f, n, count, phases)
}
