// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
	"github.com/machinist-dev/machinist/safety/runner"
)

// shardWorld has one object of each kind with the same labels, and the controllers of a shard.
// Tests call the passes.
type shardWorld struct {
	cfg     Config
	caches  *caches
	clients *fake.Clientset
	listed  int // calls of ListMachines
}

// countingDriver counts the listings of VMs.
type countingDriver struct {
	driver.Driver
	listed *int
}

func (d countingDriver) ListMachines(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	*d.listed++
	return nil, errors.New("not now")
}

func newShardWorld(t *testing.T, shard string, with map[string]string) *shardWorld {
	t.Helper()
	w := &shardWorld{}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), Labels: with, ResourceVersion: "1"}
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	template := v1alpha1.MachineTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels}, Spec: v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "class"}},
	}
	set := &v1alpha1.MachineSet{ObjectMeta: meta("set"), Spec: v1alpha1.MachineSetSpec{Replicas: 1, Selector: selector, Template: template}}
	d := &v1alpha1.MachineDeployment{ObjectMeta: meta("deployment"), Spec: v1alpha1.MachineDeploymentSpec{
		Replicas: 1, Selector: selector, Template: template, Strategy: v1alpha1.MachineDeploymentStrategy{Type: v1alpha1.RecreateMachineDeploymentStrategyType},
	}}
	class := &v1alpha1.MachineClass{ObjectMeta: meta("class")}
	m := &v1alpha1.Machine{ObjectMeta: meta("machine"), Spec: template.Spec}
	w.clients = fake.NewSimpleClientset(set, d, class, m)
	w.cfg = Config{
		Shard: shard, Machines: w.clients, Control: kubefake.NewClientset(), Driver: countingDriver{drivertest.NewCloud(drivertest.CloudOptions{}), &w.listed},
		Overshoot: safety.DefaultOvershootPolicy(), Observe: func(n Note) { t.Log(n.Kind, n.Text, n.Err) },
	}
	require.NoError(t, w.cfg.complete())
	w.caches = newCaches(&w.cfg)
	return w
}

// pass makes a pass, which has to succeed.
func pass(t *testing.T, l *loop, name string) {
	t.Helper()
	_, err := l.pass(t.Context(), types.NamespacedName{Namespace: "n", Name: name})
	require.NoError(t, err)
}

// loop returns the loop of a kind. No loop runs.
func (w *shardWorld) loop(t *testing.T, kind string) *loop {
	t.Helper()
	if len(w.cfg.loops) == 0 {
		require.NoError(t, newLoops(&w.cfg, w.caches))
	}
	return w.cfg.loops[slices.IndexFunc(w.cfg.loops, func(l *loop) bool { return l.kind == kind })]
}

// made returns a result, which cannot fail before the informers have started.
func made[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// only returns the loop of a concern. Those of others do not run.
func only(cfg *Config, c *caches, concern runner.Concern) *loop {
	all := made(newConcerns(cfg, c)).loops
	for of, l := range all {
		if of != concern {
			l.queue.ShutDown()
		}
	}
	return all[concern]
}

// fill puts the objects into the caches before the controllers start.
func (w *shardWorld) fill(t *testing.T, more ...*v1alpha1.Machine) {
	t.Helper()
	ctx, api, informers := t.Context(), w.clients.MachineV1alpha1(), w.caches.machines.Machine().V1alpha1()
	add := func(i cache.SharedIndexInformer, o any, err error) {
		require.NoError(t, err)
		require.NoError(t, i.GetIndexer().Add(o))
	}
	m, err := api.Machines("n").Get(ctx, "machine", metav1.GetOptions{})
	add(informers.Machines().Informer(), m, err)
	set, err := api.MachineSets("n").Get(ctx, "set", metav1.GetOptions{})
	add(informers.MachineSets().Informer(), set, err)
	d, err := api.MachineDeployments("n").Get(ctx, "deployment", metav1.GetOptions{})
	add(informers.MachineDeployments().Informer(), d, err)
	class, err := api.MachineClasses("n").Get(ctx, "class", metav1.GetOptions{})
	add(informers.MachineClasses().Informer(), class, err)
	for _, m := range more {
		add(informers.Machines().Informer(), m, nil)
	}
	w.clients.ClearActions()
}

// writes returns the number of write requests.
func (w *shardWorld) writes() (n int) {
	for _, a := range w.clients.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, a.GetVerb()) {
			n++
		}
	}
	return n
}

// TestShards_Pass_ActsOnItsOwnObjectsAlone checks that each controller acts on an object if and
// only if the object is in its shard.
func TestShards_Pass_ActsOnItsOwnObjectsAlone(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ loop, object string }{
		"machine":                   {"machine", "machine"},
		"set":                       {"machineset", "set"},
		"deployment":                {"machinedeployment", "deployment"},
		"class":                     {"machineclass", "class"},
		"orphans":                   {"orphan", "class"},
		"overshoot of a set":        {"overshoot", "set"},
		"overshoot of a deployment": {"overshoot", "deployment"},
	} {
		for _, shard := range []string{"", "blue"} {
			for _, label := range []string{"", "blue", "green"} {
				t.Run(fmt.Sprintf("%s/%q/%q", name, shard, label), func(t *testing.T) {
					t.Parallel()
					var with map[string]string
					if label != "" {
						with = map[string]string{v1alpha1.ShardLabelKey: label}
					}
					w := newShardWorld(t, shard, with)
					l := w.loop(t, of.loop)
					w.fill(t)
					if of.loop == "overshoot" {
						w.freeze(t, of.object)
					}
					_, err := l.pass(t.Context(), types.NamespacedName{Namespace: "n", Name: of.object})
					if of.loop != "machine" { // it fails where the cache is behind
						require.NoError(t, err)
					}
					did := w.writes() + w.listed
					require.Equal(t, shard == label, did > 0, "%d", did)
					if shard != label {
						require.Empty(t, w.clients.Actions(), "no request is spent on another shard")
					}
				})
			}
		}
	}
}

// freeze puts the label of a freeze on the set or the deployment in the caches.
func (w *shardWorld) freeze(t *testing.T, object string) {
	t.Helper()
	informers := w.caches.machines.Machine().V1alpha1()
	objects := map[string]cache.SharedIndexInformer{
		"set": informers.MachineSets().Informer(), "deployment": informers.MachineDeployments().Informer(),
	}[object].GetIndexer()
	frozen := objects.List()[0].(runtime.Object).DeepCopyObject().(metav1.Object) //nolint:forcetypeassert // only in a test
	frozen.SetLabels(labels.Merge(frozen.GetLabels(), map[string]string{v1alpha1.FreezeLabelKey: "True"}))
	require.NoError(t, objects.Update(frozen))
}

// TestShards_LiveLabelDiffers_ObjectIsLeftAlone has a cache with an older label than the API
// server.
func TestShards_LiveLabelDiffers_ObjectIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newShardWorld(t, "", map[string]string{v1alpha1.ShardLabelKey: "blue"})
	sets, deployments := w.loop(t, "machineset"), w.loop(t, "machinedeployment")
	w.fill(t)
	informers := w.caches.machines.Machine().V1alpha1()
	for _, informer := range []cache.SharedIndexInformer{informers.MachineSets().Informer(), informers.MachineDeployments().Informer()} {
		old := informer.GetIndexer().List()[0].(runtime.Object).DeepCopyObject() //nolint:forcetypeassert // only in a test
		old.(metav1.Object).SetLabels(nil)                                       //nolint:forcetypeassert // only in a test
		require.NoError(t, informer.GetIndexer().Update(old))
	}
	pass(t, sets, "set")
	pass(t, deployments, "deployment")
	require.Len(t, w.clients.Actions(), 2, "both were read")
	require.Zero(t, w.writes())
}

func TestShards_Created_HasTheLabel(t *testing.T) {
	t.Parallel()
	for shard, with := range map[string]map[string]string{"": nil, "blue": {v1alpha1.ShardLabelKey: "blue"}} {
		w := newShardWorld(t, shard, with)
		sets, deployments := w.loop(t, "machineset"), w.loop(t, "machinedeployment")
		w.fill(t)
		pass(t, sets, "set")
		machines, err := w.clients.MachineV1alpha1().Machines("n").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, machines.Items)
		for _, m := range machines.Items {
			require.Equal(t, shard, m.Labels[v1alpha1.ShardLabelKey], m.Name)
		}
		require.NoError(t, w.caches.machines.Machine().V1alpha1().MachineSets().Informer().GetIndexer().Replace(nil, ""))
		for range 2 { // the finalizer, and the set
			d, err := w.clients.MachineV1alpha1().MachineDeployments("n").Get(t.Context(), "deployment", metav1.GetOptions{})
			require.NoError(t, err)
			require.NoError(t, w.caches.machines.Machine().V1alpha1().MachineDeployments().Informer().GetIndexer().Update(d))
			pass(t, deployments, "deployment")
		}
		all, err := w.clients.MachineV1alpha1().MachineSets("n").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, all.Items, 2)
		for _, s := range all.Items {
			require.Equal(t, shard, s.Labels[v1alpha1.ShardLabelKey], s.Name)
		}
	}
}

func TestShards_MachineWithoutOwner_IsAdoptedWithinItsShard(t *testing.T) {
	t.Parallel()
	for label, adopted := range map[string]bool{"blue": true, "green": false, "": false} {
		w := newShardWorld(t, "blue", map[string]string{v1alpha1.ShardLabelKey: "blue"})
		r := w.loop(t, "machineset")
		stray := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "stray", UID: "stray", Labels: map[string]string{"app": "a"}}}
		if label != "" {
			stray.Labels[v1alpha1.ShardLabelKey] = label
		}
		_, err := w.clients.MachineV1alpha1().Machines("n").Create(t.Context(), stray, metav1.CreateOptions{})
		require.NoError(t, err)
		w.fill(t, stray)
		pass(t, r, "set")
		stray, err = w.clients.MachineV1alpha1().Machines("n").Get(t.Context(), "stray", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, adopted, len(stray.OwnerReferences) == 1, label)
	}
}

func TestConfig_SetClient_SetsDoNotUseTheClientOfMachines(t *testing.T) {
	t.Parallel()
	w := newShardWorld(t, "", nil)
	of := fake.NewSimpleClientset()
	w.cfg.SetClient = of
	sets, deployments := w.loop(t, "machineset"), w.loop(t, "machinedeployment")
	w.fill(t)
	for _, add := range []error{
		of.Tracker().Add(&v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "set", UID: "set"}}),
		of.Tracker().Add(&v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "deployment", UID: "deployment"}}),
	} {
		require.NoError(t, add)
	}
	pass(t, sets, "set")
	pass(t, deployments, "deployment")
	require.NotEmpty(t, of.Actions())
	require.Empty(t, w.clients.Actions())
}

func TestConfig_Part_NeedsWhatItsControllersUse(t *testing.T) {
	t.Parallel()
	clients := fake.NewSimpleClientset()
	for part, needs := range map[Part]bool{All: true, Machines: true, MachinesAlone: true, Sets: false} {
		cfg := Config{Part: part, Machines: clients}
		require.Equal(t, needs, cfg.complete() != nil, part)
		cfg = Config{Part: part, Machines: clients, Control: kubefake.NewClientset(), Driver: drivertest.NewCloud(drivertest.CloudOptions{}), Target: kubefake.NewClientset()}
		require.NoError(t, cfg.complete())
		var kinds []string
		require.NoError(t, newLoops(&cfg, newCaches(&cfg)))
		for _, l := range cfg.loops {
			kinds = append(kinds, l.kind)
			l.queue.ShutDown()
		}
		want := []string{"machine", "machineclass", "secret", "orphan", "unmanaged", "machineset", "machinedeployment", "overshoot"}
		switch part {
		case Sets:
			want = want[5:]
		case Machines, MachinesAlone:
			want = want[:5]
		}
		require.ElementsMatch(t, want, kinds, part)
	}
}
