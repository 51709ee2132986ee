// SPDX-License-Identifier: Apache-2.0

package machinesalone_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/programs/manager/app"
	"github.com/machinist-dev/machinist/examples/programs/manager/install"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Run(m, controlplane.Options{}, func(c *controlplane.ControlPlane) { plane = c }))
}

const namespace = "alone"

// world is a cluster, a cloud, and the kubelets of its VMs.
type world struct {
	*testing.T
	client   kubernetes.Interface
	machines versioned.Interface
	dynamic  dynamic.Interface
	cloud    *drivertest.Cloud
	file     string // the kubeconfig
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, cloud: drivertest.NewCloud(drivertest.CloudOptions{BootTime: 200 * time.Millisecond}), file: filepath.Join(t.TempDir(), "kubeconfig")}
	config := plane.Config()
	text, err := controlplane.Kubeconfig(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(w.file, text, 0o600))
	w.client, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	w.machines, err = versioned.NewForConfig(config)
	require.NoError(t, err)
	w.dynamic, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	_, err = w.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)

	nodes := &hollow.Nodes{Client: w.client, VMs: hollow.VMsOf(w.cloud), VMInterval: 200 * time.Millisecond}
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = nodes.Run(ctx) // fails only without a client
	}()
	t.Cleanup(func() { end(); <-ended })
	return w
}

// define installs two of the four kinds.
func (w *world) define() {
	w.Helper()
	all, err := manifests.Definitions()
	require.NoError(w, err)
	definitions := w.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	defined := 0
	for _, o := range all {
		if strings.HasPrefix(o.GetName(), "machines.") || strings.HasPrefix(o.GetName(), "machineclasses.") {
			_, err := definitions.Create(w.Context(), o, metav1.CreateOptions{})
			require.NoError(w, err)
			defined++
		}
	}
	require.Equal(w, 2, defined)
}

// start runs a machine-controller. The channel has its result.
func (w *world) start(ctx context.Context) <-chan error {
	w.Helper()
	s := options.NewMCServer()
	s.Namespace, s.TargetKubeconfig, s.SettleTime = namespace, w.file, time.Second
	port, err := controlplane.FreePort(ctx)
	require.NoError(w, err)
	s.Port = port
	result := make(chan error, 1)
	go func() { result <- app.RunContext(ctx, s, w.cloud) }()
	return result
}

// running creates a machine and waits until it runs.
func (w *world) running(name string) {
	w.Helper()
	api := w.machines.MachineV1alpha1().Machines(namespace)
	require.Eventually(w, func() bool { // the definition is served soon
		_, err := api.Create(w.Context(), &v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}},
		}, metav1.CreateOptions{})
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	require.Eventually(w, func() bool {
		m, err := api.Get(w.Context(), name, metav1.GetOptions{})
		return err == nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning
	}, time.Minute, 100*time.Millisecond, name)
}

// asked returns the requests of the machine-controller about sets and deployments.
func (w *world) asked() (all []string) {
	w.Helper()
	requests, err := plane.Requests()
	require.NoError(w, err)
	of := 0
	for _, r := range requests {
		if !strings.HasPrefix(r.UserAgent, "machinist/") {
			continue
		}
		of++
		if r.Resource == "machinesets" || r.Resource == "machinedeployments" {
			all = append(all, fmt.Sprint(r.Verb, " ", r.Resource))
		}
	}
	require.NotZero(w, of)
	return all
}

func TestMachinesAlone_TwoKindsServed_RunsAndEndsWhenSetsAreInstalled(t *testing.T) {
	slog.SetDefault(slog.New(slog.NewTextHandler(t.Output(), nil)))
	w := newWorld(t)
	w.define()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	result := w.start(ctx)
	api := w.machines.MachineV1alpha1()
	_, err := w.client.CoreV1().Secrets(namespace).Create(ctx, w.cloud.Secret(namespace, "small"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := api.MachineClasses(namespace).Create(ctx, w.cloud.MachineClass(namespace, "small"), metav1.CreateOptions{})
		return err == nil
	}, time.Minute, 100*time.Millisecond)
	w.running("a")
	require.NoError(t, api.Machines(namespace).Delete(ctx, "a", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return len(w.cloud.Snapshot().VMs) == 0 }, time.Minute, 100*time.Millisecond)
	require.Empty(t, w.asked())

	require.NoError(t, install.Definitions(ctx, w.dynamic))
	select {
	case err = <-result:
		require.ErrorIs(t, err, app.ErrSetsServed)
	case <-time.After(time.Minute):
		t.Fatal("the machine-controller runs on without sets")
	}
	result = w.start(ctx)
	w.running("b")
	require.Eventually(t, func() bool { return len(w.asked()) > 0 }, time.Minute, 100*time.Millisecond, "the next process reads sets")
	stop()
	require.NoError(t, <-result)
}
