// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	_ "github.com/machinist-dev/machinist/examples/internal/cachemutation" // no test modifies a cache
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestMain disables the pause of client-go between errors, which reads a clock of the process, and its log.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // client-go has no option for it
	klog.SetLogger(logr.Discard())
	m.Run()
}

const shop = "shop"

// world is a cluster in memory with the controllers, simulated Nodes and a simulated cloud.
type world struct {
	t        *testing.T
	cluster  *draintest.Cluster
	machines versioned.Interface
	core     kubernetes.Interface
	cloud    *drivertest.Cloud
	kubelets *hollow.Nodes
	policy   machine.Policy
	pods     int // of the workload
	budget   bool
	stopped  context.CancelFunc // the controllers

	mu    sync.Mutex
	notes map[string]string // the last decision without actions, by kind and key
}

// newWorld returns the world of a test in a bubble.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, policy: machine.DefaultPolicy(), pods: 2, notes: map[string]string{}}
	w.cluster, w.machines = newCluster()
	w.core = w.cluster.Client()
	w.cloud = drivertest.NewCloud(drivertest.CloudOptions{Provider: "simulated", Seed: 1, BootTime: 6 * time.Second})
	w.kubelets = &hollow.Nodes{Client: w.core, VMs: hollow.VMsOf(w.cloud), JoinAfter: 2 * time.Second, LeaseInterval: 5 * time.Second, StatusInterval: time.Hour}
	return w
}

func newCluster() (*draintest.Cluster, versioned.Interface) {
	cluster, machines := machinetest.New(draintest.Options{Seed: 1, Clock: clock.RealClock{}})
	return cluster, machines
}

// run runs the world until the end of the test.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	w.t.Cleanup(running.Wait)
	w.t.Cleanup(cancel)
	w.stopped = cancel
	running.Go(func() { w.cluster.Run(ctx) })
	running.Go(func() { w.play(ctx) })
	running.Go(func() {
		random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // repeatable by intent
		var mu sync.Mutex
		err := controllers.Run(ctx, controllers.Config{
			Machines: w.machines, Control: w.core, Target: w.core, Driver: w.cloud, Policy: w.policy, Workers: 1, Observe: w.note,
			Random: func() float64 {
				mu.Lock()
				defer mu.Unlock()
				return random.Float64()
			},
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			w.t.Error(err)
		}
	})
}

// play moves the Nodes and the workload.
func (w *world) play(ctx context.Context) {
	workload := &hollow.Workload{Client: w.core, Namespace: "default", Name: "web", Replicas: w.pods, GraceSeconds: 3, Budget: w.budget}
	replicas, scheduler, lifecycle := &hollow.Replicas{Client: w.core}, &hollow.Scheduler{Client: w.core}, &hollow.Lifecycle{Client: w.core, Grace: 40 * time.Second}
	for ctx.Err() == nil {
		for _, step := range []func(context.Context) error{workload.Step, replicas.Step, scheduler.Step, w.kubelets.Step, lifecycle.Step} {
			_ = step(ctx) // the next step repeats it
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (w *world) note(n controllers.Note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notes[n.Kind+"/"+n.Key] = n.Text; n.Acts || n.Err != nil {
		delete(w.notes, n.Kind+"/"+n.Key)
	}
}

// create creates objects.
func (w *world) create(objects ...runtime.Object) {
	w.t.Helper()
	ctx, api, o := w.t.Context(), w.machines.MachineV1alpha1(), metav1.CreateOptions{}
	for _, object := range objects {
		var err error
		switch object := object.(type) {
		case *v1alpha1.MachineClass:
			_, err = api.MachineClasses(shop).Create(ctx, object, o)
		case *v1alpha1.MachineDeployment:
			_, err = api.MachineDeployments(shop).Create(ctx, object, o)
		case *v1alpha1.MachineSet:
			_, err = api.MachineSets(shop).Create(ctx, object, o)
		case *v1alpha1.Machine:
			_, err = api.Machines(shop).Create(ctx, object, o)
		case *corev1.Secret:
			_, err = w.core.CoreV1().Secrets(shop).Create(ctx, object, o)
		default:
			w.t.Fatalf("%T", object)
		}
		require.NoError(w.t, err)
	}
}

// patch changes the deployment workers.
func (w *world) patch(json string) {
	w.t.Helper()
	_, err := w.machines.MachineV1alpha1().MachineDeployments(shop).Patch(w.t.Context(), "workers", types.MergePatchType, []byte(json), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// patchMachine changes a machine.
func (w *world) patchMachine(name, json string) {
	w.t.Helper()
	_, err := w.machines.MachineV1alpha1().Machines(shop).Patch(w.t.Context(), name, types.MergePatchType, []byte(json), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// fleet returns the machines in the order of their names.
func (w *world) fleet() []v1alpha1.Machine {
	w.t.Helper()
	list, err := w.machines.MachineV1alpha1().Machines(shop).List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	slices.SortFunc(list.Items, func(a, b v1alpha1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// sleep lets the world run for a time, until all its goroutines wait.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func class(name string) *v1alpha1.MachineClass {
	c := &v1alpha1.MachineClass{Provider: "simulated", SecretRef: &corev1.SecretReference{Namespace: shop, Name: name}}
	c.Namespace, c.Name, c.ProviderSpec.Raw = shop, name, []byte(`{"size":"small"}`)
	return c
}

func secret(name string) *corev1.Secret {
	s := &corev1.Secret{Data: map[string][]byte{machine.UserDataKey: []byte("#!/bin/sh\n")}}
	s.Namespace, s.Name = shop, name
	return s
}

// workers returns a deployment of the class small that replaces its machines one after the other.
func workers(replicas int32) *v1alpha1.MachineDeployment {
	labels, one, none := map[string]string{"pool": "workers"}, intstr.FromInt32(1), intstr.FromInt32(0)
	d := &v1alpha1.MachineDeployment{}
	d.Namespace, d.Name = shop, "workers"
	d.Spec.Replicas, d.Spec.Selector, d.Spec.Template.Labels = replicas, &metav1.LabelSelector{MatchLabels: labels}, labels
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}
	d.Spec.Strategy.Type = v1alpha1.RollingUpdateMachineDeploymentStrategyType
	d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &one, MaxUnavailable: &none}}
	return d
}

// lists returns lists of all objects that decisions read, as kubectl get prints them.
func (w *world) lists() []runtime.Object {
	ctx, api, core, o, all := w.t.Context(), w.machines.MachineV1alpha1(), w.core.CoreV1(), metav1.ListOptions{}, metav1.NamespaceAll
	var lists []runtime.Object
	add := func(list runtime.Object, err error) {
		require.NoError(w.t, err)
		lists = append(lists, list)
	}
	add(as(api.MachineDeployments(all).List(ctx, o)))
	add(as(api.MachineSets(all).List(ctx, o)))
	add(as(api.Machines(all).List(ctx, o)))
	add(as(api.MachineClasses(all).List(ctx, o)))
	add(as(core.Secrets(all).List(ctx, o)))
	add(as(core.Nodes().List(ctx, o)))
	add(as(core.Pods(all).List(ctx, o)))
	add(as(w.core.PolicyV1().PodDisruptionBudgets(all).List(ctx, o)))
	add(as(w.core.StorageV1().VolumeAttachments().List(ctx, o)))
	add(as(core.PersistentVolumeClaims(all).List(ctx, o)))
	return lists
}

func as[T runtime.Object](list T, err error) (runtime.Object, error) { return list, err }

// dump returns the lists as YAML documents.
func (w *world) dump() []byte {
	kinds := runtime.NewScheme()
	require.NoError(w.t, errors.Join(scheme.AddToScheme(kinds), v1alpha1.AddToScheme(kinds)))
	var b bytes.Buffer
	for _, list := range w.lists() {
		list = list.DeepCopyObject()
		found, _, err := kinds.ObjectKinds(list)
		require.NoError(w.t, err)
		list.GetObjectKind().SetGroupVersionKind(found[0])
		require.NoError(w.t, meta.EachListItem(list, func(o runtime.Object) error {
			found, _, err := kinds.ObjectKinds(o)
			if err == nil {
				o.GetObjectKind().SetGroupVersionKind(found[0])
			}
			return err
		}))
		text, err := yaml.Marshal(list)
		require.NoError(w.t, err)
		b.WriteString("---\n")
		b.Write(text)
	}
	return b.Bytes()
}

// subjects returns the names of all objects that can be explained.
func (w *world) subjects() (names []string) {
	for _, list := range w.lists() {
		require.NoError(w.t, meta.EachListItem(list, func(o runtime.Object) error {
			m, err := meta.Accessor(o)
			switch kind := o.(type) {
			case *v1alpha1.MachineDeployment:
				names = append(names, "machinedeployment/"+shop+"/"+kind.Name)
			case *v1alpha1.MachineSet:
				names = append(names, "machineset/"+shop+"/"+kind.Name)
			case *v1alpha1.Machine:
				names = append(names, "machine/"+shop+"/"+kind.Name)
			case *v1alpha1.MachineClass:
				names = append(names, "machineclass/"+shop+"/"+kind.Name)
			case *corev1.Node:
				names = append(names, "node/"+m.GetName())
			}
			return err
		}))
	}
	return names
}

// live returns the view of the cluster, at the time of the bubble.
func (w *world) live() *explain.View {
	v, err := explain.Live(w.t.Context(), explain.Clients{Machines: w.machines, Control: w.core, Target: w.core}, "")
	require.NoError(w.t, err)
	w.t.Cleanup(v.Close)
	v.Machines, v.Assumed = w.policy, false
	return v
}

// told returns the last decisions of the controllers that had no action, by kind and key.
func (w *world) told() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.notes)
}
