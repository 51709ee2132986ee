// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	deploymentrunner "github.com/machinist-dev/machinist/deployment/runner"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
	machinesetrunner "github.com/machinist-dev/machinist/machineset/runner"
	"github.com/machinist-dev/machinist/nodeops"
	"github.com/machinist-dev/machinist/permits"
	"github.com/machinist-dev/machinist/safety"
)

// grown is a fleet in memory: a hundred deployments, each with a set, a class and machines with Nodes.
type grown struct {
	deployments []*v1alpha1.MachineDeployment
	sets        []*v1alpha1.MachineSet
	machines    []*v1alpha1.Machine
	nodes       []*corev1.Node
}

const grownDeployments = 100

var grownAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newGrown(machines int) *grown {
	g := &grown{}
	each := max(1, machines/grownDeployments)
	for i := range grownDeployments {
		labels := map[string]string{"pool": fmt.Sprint(i)}
		meta := metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("pool-%02d", i), UID: types.UID(fmt.Sprint("d", i)), Labels: labels, Generation: 1,
			Finalizers: []string{v1alpha1.MCMFinalizerName}, Annotations: map[string]string{v1alpha1.RevisionAnnotation: "1"},
			CreationTimestamp: metav1.NewTime(grownAt.Add(-time.Hour)),
		}
		d := &v1alpha1.MachineDeployment{ObjectMeta: meta, Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: int32(each), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{
					MaxSurge: ptr.To(intstr.FromString("10%")), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
				}},
			},
		}}
		d.Spec.Template.Labels = labels
		d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: fmt.Sprint("class-", i)}
		s := &v1alpha1.MachineSet{ObjectMeta: *meta.DeepCopy(), Spec: v1alpha1.MachineSetSpec{Replicas: int32(each), Selector: d.Spec.Selector, Template: d.Spec.Template}}
		s.UID = types.UID(fmt.Sprint("s", i))
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, v1alpha1.SchemeGroupVersion.WithKind("MachineDeployment"))}
		g.deployments, g.sets = append(g.deployments, d), append(g.sets, s)
		for j := range each {
			name := fmt.Sprintf("%s-%05d", s.Name, j)
			m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: meta.CreationTimestamp, Finalizers: []string{v1alpha1.MCMFinalizerName},
				Labels:          map[string]string{"pool": fmt.Sprint(i), v1alpha1.NodeLabelKey: name},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))},
			}}
			m.Spec.Class, m.Spec.ProviderID = d.Spec.Template.Spec.Class, "cloud:///zone/"+name
			m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
			g.machines = append(g.machines, m)
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.MachineUIDAnnotation: name}}}
			n.Spec.ProviderID = m.Spec.ProviderID
			g.nodes = append(g.nodes, n)
		}
	}
	return g
}

// pool returns the observation of one deployment with all machines of the fleet. A tenth of them is of an old set.
func (g *grown) pool() deployment.Observation {
	d, old := g.deployments[0].DeepCopy(), g.sets[0].DeepCopy()
	d.Spec.Replicas = int32(len(g.machines)) //nolint:gosec // small
	s := old.DeepCopy()
	s.Name, s.UID = "new", "new"
	old.Spec.Template.Annotations = map[string]string{"version": "old"}
	old.Spec.Replicas, s.Spec.Replicas = d.Spec.Replicas/10, d.Spec.Replicas-d.Spec.Replicas/10
	in := deployment.Observation{Deployment: d, Sets: []*v1alpha1.MachineSet{old, s}, Complete: true, Proven: true, Nodes: map[string]*corev1.Node{}}
	for i, m := range g.machines {
		m = m.DeepCopy()
		m.Labels["pool"] = "0"
		m.OwnerReferences[0].UID, m.OwnerReferences[0].Name = s.UID, s.Name
		if i%10 == 0 {
			m.OwnerReferences[0].UID, m.OwnerReferences[0].Name = old.UID, old.Name
		}
		in.Machines, in.Nodes[m.Name] = append(in.Machines, m), g.nodes[i]
	}
	return in
}

// objectsInMemory is a Reader of objects in memory, by the indexes of the runners.
type objectsInMemory map[reflect.Type]cache.Indexer

func (g *grown) reader(t testing.TB) objectsInMemory {
	t.Helper()
	r := objectsInMemory{}
	for _, index := range machinerunner.Indexes() {
		of := reflect.TypeOf(index.Of)
		if r[of] == nil {
			r[of] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		}
		require.NoError(t, r[of].AddIndexers(cache.Indexers{index.Name: func(o any) ([]string, error) { return index.Keys(o.(machinist.Object)), nil }}))
	}
	add := func(o machinist.Object) {
		of := reflect.TypeOf(o)
		if r[of] == nil {
			r[of] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		}
		require.NoError(t, r[of].Add(o))
	}
	for i := range g.deployments {
		add(g.deployments[i])
		add(g.sets[i])
	}
	for i := range g.machines {
		add(g.machines[i])
		add(g.nodes[i])
	}
	return r
}

func (r objectsInMemory) Get(_ context.Context, o machinist.Object) (machinist.Object, error) {
	if r[reflect.TypeOf(o)] == nil {
		return nil, machinist.ErrNotCached
	}
	found, exists, err := r[reflect.TypeOf(o)].GetByKey(cache.NewObjectName(o.GetNamespace(), o.GetName()).String())
	if !exists {
		return nil, err
	}
	return found.(machinist.Object), err
}

func (r objectsInMemory) List(_ context.Context, o machinist.Object, index, key string) ([]machinist.Object, error) {
	if r[reflect.TypeOf(o)] == nil {
		return nil, machinist.ErrNotCached
	}
	found := r[reflect.TypeOf(o)].List
	if index != "" {
		found = func() []any {
			selected, _ := r[reflect.TypeOf(o)].ByIndex(index, key)
			return selected
		}
	}
	var all []machinist.Object
	for _, f := range found() {
		all = append(all, f.(machinist.Object))
	}
	return all, nil
}

// growth is what is measured of a fleet. Of each object that changes it is done once, so that it may not grow with the
// fleet, and all else may grow as the fleet does.
type growth struct {
	name       string
	eachChange bool
	prepare    func(t testing.TB, g *grown) func()
}

var growths = []growth{
	{"deployment.Decide, one deployment in mid-roll", false, func(t testing.TB, g *grown) func() {
		in := g.pool()
		require.Greater(t, len(deployment.Decide(in, deployment.Policy{HoldAutoscaler: true}, grownAt).Actions), 100, "Nodes are marked")
		return func() { deployment.Decide(in, deployment.Policy{HoldAutoscaler: true}, grownAt) }
	}},
	{"deployment.Decide, 100 deployments", false, func(_ testing.TB, g *grown) func() {
		var all []deployment.Observation
		each := len(g.machines) / grownDeployments
		for i, d := range g.deployments {
			in := deployment.Observation{Deployment: d, Sets: g.sets[i : i+1], Machines: g.machines[i*each : (i+1)*each], Complete: true, Proven: true, Nodes: map[string]*corev1.Node{}}
			for _, n := range g.nodes[i*each : (i+1)*each] {
				in.Nodes[n.Name] = n
			}
			all = append(all, in)
		}
		return func() {
			for _, in := range all {
				deployment.Decide(in, deployment.Policy{HoldAutoscaler: true}, grownAt)
			}
		}
	}},
	{"machineset.Decide, a tenth is deleted", false, func(t testing.TB, g *grown) func() {
		pool := g.pool()
		in := machineset.Observation{Set: pool.Sets[1], Complete: true, Proven: true}
		for _, m := range pool.Machines {
			m.OwnerReferences[0].UID = in.Set.UID
			in.Machines = append(in.Machines, m)
		}
		require.NotEmpty(t, machineset.Decide(in, machineset.Policy{}, grownAt).Actions)
		return func() { machineset.Decide(in, machineset.Policy{}, grownAt) }
	}},
	{"machine.Decide, a failing machine and its siblings", false, func(_ testing.TB, g *grown) func() {
		m := g.machines[0].DeepCopy()
		m.Status.CurrentStatus.Phase = v1alpha1.MachineUnknown
		m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(grownAt.Add(-time.Hour))
		in := machine.Observation{Machine: m, Node: machine.NodeView{Looked: true}, Siblings: machine.Siblings{Complete: true, Machines: g.machines}}
		return func() { machine.Decide(in, machine.DefaultPolicy(), grownAt) }
	}},
	{"safety.DecideGuard", false, func(_ testing.TB, g *grown) func() {
		in := safety.GuardObservation{Complete: true}
		for _, m := range g.machines {
			in.Members = append(in.Members, safety.NewGuardMember(m, nil, machine.DefaultPolicy(), grownAt, grownAt))
		}
		in.Machine = in.Members[0]
		return func() { safety.DecideGuard(in, safety.DefaultGuardPolicy(), grownAt) }
	}},
	{"safety.Step, orphans among as many VMs", false, func(_ testing.TB, g *grown) func() {
		vms := map[string]string{}
		for i, m := range g.machines {
			if i%1000 == 0 {
				vms["cloud:///zone/lost"+m.Name] = "lost" + m.Name
				continue
			}
			vms[m.Spec.ProviderID] = m.Name
		}
		class := types.NamespacedName{Namespace: "shop", Name: "class-0"}
		in := safety.Observation{
			Listings: []safety.Listing{safety.NewListing(class, vms, nil, grownAt)}, Namespace: "shop", Classes: []types.NamespacedName{class},
			Machines: drain.List[*v1alpha1.Machine]{Items: g.machines, Complete: true, AsOf: grownAt}, Nodes: drain.List[*corev1.Node]{Items: g.nodes, Complete: true, AsOf: grownAt},
		}
		return func() { safety.Step(safety.State{}, in, safety.DefaultPolicy(), grownAt) }
	}},
	{"safety.StepOvershoot", false, func(_ testing.TB, g *grown) func() {
		in := safety.OvershootObservation{Deployments: g.deployments, Sets: g.sets, Machines: g.machines, Complete: true}
		return func() { safety.StepOvershoot(safety.OvershootState{}, in, safety.DefaultOvershootPolicy(), grownAt) }
	}},
	{"safety.StepUnmanaged", false, func(_ testing.TB, g *grown) func() {
		in := safety.UnmanagedObservation{Nodes: g.nodes, Machines: g.machines, Complete: true}
		return func() { safety.StepUnmanaged(safety.UnmanagedState{}, in, safety.UnmanagedPolicy{}, grownAt) }
	}},
	{"nodeops.NewIndex", false, func(_ testing.TB, g *grown) func() {
		var candidates []nodeops.Candidate
		for _, m := range g.machines {
			candidates = append(candidates, nodeops.Candidate{Name: m.Name, NodeName: m.Name, ProviderID: m.Spec.ProviderID})
		}
		return func() { nodeops.NewIndex(candidates) }
	}},
	{"permits: acquire and release, beside as many leases", true, func(_ testing.TB, g *grown) func() {
		l := permits.NewLedger(1, time.Hour)
		for _, m := range g.machines {
			l.Acquire(m.Name, "x", grownAt)
		}
		return func() {
			l.Acquire("pool", "x", grownAt)
			l.Release("pool", "x", grownAt)
		}
	}},
	{"OnChange of a machine", true, func(t testing.TB, g *grown) func() {
		r, m := g.reader(t), g.machines[0].DeepCopy()
		m.Status.CurrentStatus.Phase = v1alpha1.MachineUnknown
		return func() { g.affected(t, r, g.machines[0], m) }
	}},
	{"OnChange of a Node", true, func(t testing.TB, g *grown) func() {
		r, n := g.reader(t), g.nodes[0].DeepCopy()
		n.Spec.Unschedulable = true
		return func() { g.affected(t, r, g.nodes[0], n) }
	}},
	{"OnChange of a class", false, func(t testing.TB, g *grown) func() {
		r := g.reader(t)
		class := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "class-0"}}
		return func() { machinerunner.Affected(t.Context(), r, nil, class) }
	}},
}

// affected asks each runner what a change affects.
func (g *grown) affected(t testing.TB, r machinist.Reader, before, after metav1.Object) {
	if n := len(machinerunner.Affected(t.Context(), r, before, after)); n == 0 {
		t.Fatal("no machine is affected")
	}
	machinesetrunner.Affected(t.Context(), r, before, after)
	deploymentrunner.Affected(t.Context(), r, before, after)
}

// BenchmarkGrowth measures fleets of 1,000, 10,000 and 100,000 machines.
func BenchmarkGrowth(b *testing.B) {
	for _, c := range growths {
		for _, n := range []int{1_000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				do := c.prepare(b, newGrown(n))
				b.ReportAllocs()
				for b.Loop() {
					do()
				}
			})
		}
	}
}

// TestGrowth_TenTimesTheMachines_CostsTenTimesAtMost counts allocations and their bytes, which do not depend on the
// computer. What is done for each change costs the same in each fleet.
func TestGrowth_TenTimesTheMachines_CostsTenTimesAtMost(t *testing.T) {
	few, many := newGrown(1_000), newGrown(10_000)
	for _, c := range growths {
		t.Run(c.name, func(t *testing.T) {
			most, runs := 12.0, 10 // maps grow in steps
			if c.eachChange {
				most, runs = 1.2, 1000
			}
			a, b := cost(runs, c.prepare(t, few)), cost(runs, c.prepare(t, many))
			require.LessOrEqual(t, b.allocations, most*max(a.allocations, 10), "allocations, and %v", a)
			require.LessOrEqual(t, b.bytes, most*max(a.bytes, 1000), "bytes, and %v", a)
		})
	}
}

type costs struct{ allocations, bytes float64 }

// cost returns the least of several runs, so that what else the process allocates meanwhile does not count. Under the
// race detector a sync.Pool also loses objects at random, and few runs find all of theirs.
func cost(runs int, do func()) costs {
	least := costs{math.MaxFloat64, math.MaxFloat64}
	do()
	for range runs {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		least.allocations = min(least.allocations, float64(after.Mallocs-before.Mallocs))
		least.bytes = min(least.bytes, float64(after.TotalAlloc-before.TotalAlloc))
	}
	return least
}
