// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

var joinTime = safety.UnmanagedPolicy{Timeout: 20 * time.Minute}

// joined returns a Node that is an hour old.
func joined(name, providerID string) *corev1.Node {
	return newNode(name, providerID, start.Add(-time.Hour))
}

func marked(n *corev1.Node) *corev1.Node {
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.NotManagedByMCM, "1")
	return n
}

func guarded(n *corev1.Node) *corev1.Node {
	n.Finalizers = append(n.Finalizers, "example.com/theirs", v1alpha1.NodeFinalizerName)
	return n
}

// of returns a machine with a Node name and a provider ID.
func of(name, node, providerID string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name}}
	if node != "" {
		m.Labels = map[string]string{v1alpha1.NodeLabelKey: node}
	}
	m.Spec.ProviderID = providerID
	return m
}

func TestUnmanaged_NodesAndMachines_WritesAndHolds(t *testing.T) {
	young, deleted := joined("n", "sim:///n"), of("m", "n", "")
	young.CreationTimestamp = metav1.NewTime(start.Add(-20*time.Minute + time.Second))
	deleted.DeletionTimestamp = &metav1.Time{Time: start}
	slow := of("slow", "", "")
	slow.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineCreationTimeout: &metav1.Duration{Duration: 2 * time.Hour}}
	for _, c := range []struct {
		name     string
		node     *corev1.Node
		machines []*v1alpha1.Machine
		want     string
	}{
		{"none", joined("n", "sim:///n"), []*v1alpha1.Machine{of("m", "other", "sim:///other"), nil}, "update node n: marked; it has had no machine for 20m0s"},
		{"none, young", young, nil, "nothing; waits for node/n: NodeTooYoung: it has no machine and is marked at the age of 20m0s"},
		{"none, marked", marked(joined("n", "")), nil, "nothing"},
		{"one by name", joined("n", ""), []*v1alpha1.Machine{of("m", "n", "")}, "nothing"},
		{"one by name, marked", marked(labeled(joined("n", ""), "m")), []*v1alpha1.Machine{of("m", "n", "")}, "update node n: mark removed; it belongs to machine m"},
		{"one by provider ID, marked", marked(labeled(joined("n", "sim:///n"), "m")), []*v1alpha1.Machine{of("m", "", "sim:///n")}, "update node n: mark removed; it belongs to machine m"},
		{"one that a user made to name the Node", marked(joined("n", "")), []*v1alpha1.Machine{of("m", "n", "")}, "nothing"},
		{"one that a user gave the ID of the Node", marked(joined("n", "sim:///n")), []*v1alpha1.Machine{of("m", "", "sim:///n")}, "nothing"},
		{"one by provider ID", joined("n", "sim:///n"), []*v1alpha1.Machine{of("m", "", "sim:///n")}, "nothing"},
		{"one that is being deleted", joined("n", ""), []*v1alpha1.Machine{deleted}, "nothing"},
		{"several", joined("n", ""), []*v1alpha1.Machine{of("a", "n", ""), of("b", "n", "")}, "nothing; waits for node/n: NodeAmbiguous: 2 machines match: a, b"},
		{"several, marked", guarded(marked(joined("n", ""))), []*v1alpha1.Machine{of("a", "n", ""), of("b", "n", "")}, "nothing; waits for node/n: NodeAmbiguous: 2 machines match: a, b"},
		{"named by the Node", labeled(joined("n", "sim:///n"), "m"), []*v1alpha1.Machine{of("m", "", "")}, "nothing; waits for node/n: NodeAmbiguous: its label names machine m, but that machine does not name this Node"},
		{"a machine may take longer", joined("n", ""), []*v1alpha1.Machine{slow}, "nothing; waits for node/n: NodeTooYoung: it has no machine and is marked at the age of 2h0m0s"},
		{"marked just now", guarded(marked(joined("n", ""))), []*v1alpha1.Machine{of("m", "other", "")}, "nothing; waits for node/n: NodeMarked: its finalizer is removed 5m0s after the mark"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := safety.UnmanagedObservation{Nodes: []*corev1.Node{nil, c.node}, Machines: c.machines, Complete: true}
			_, d := safety.StepUnmanaged(safety.UnmanagedState{}, in, joinTime, start)
			require.Equal(t, c.want, d.String())
			if strings.Contains(c.want, "NodeTooYoung") {
				require.True(t, d.NextCheck.After(start))
				_, d = safety.StepUnmanaged(safety.UnmanagedState{}, in, joinTime, d.NextCheck)
				require.Equal(t, "marked", d.Actions[0].Changes[0], "it is looked at when that is due")
			}
			in.Complete = false
			_, d = safety.StepUnmanaged(safety.UnmanagedState{}, in, joinTime, start)
			require.Empty(t, d.Actions, "half a view")
			require.True(t, d.NextCheck.After(start) && d.NextCheck.Equal(d.Holds[0].Until))
			in.Complete, in.Frozen = true, true
			_, d = safety.StepUnmanaged(safety.UnmanagedState{}, in, joinTime, start.Add(24*time.Hour))
			in.Frozen = false
			_, zero := safety.StepUnmanaged(safety.UnmanagedState{}, in, safety.UnmanagedPolicy{}, start)
			for _, w := range slices.Concat(d.Actions, zero.Actions) {
				require.Equal(t, "mark removed", w.Changes[0], "an API server was away, or the policy is the zero one")
			}
		})
	}
}

func TestUnmanaged_Marked_LosesTheFinalizerFiveMinutesLater(t *testing.T) {
	in := safety.UnmanagedObservation{Nodes: []*corev1.Node{guarded(marked(joined("n", "")))}, Machines: []*v1alpha1.Machine{of("m", "other", "")}, Complete: true}
	state, d := safety.StepUnmanaged(safety.UnmanagedState{}, in, joinTime, start)
	require.Equal(t, start.Add(5*time.Minute), d.NextCheck)
	state, d = safety.StepUnmanaged(state, in, joinTime, start.Add(5*time.Minute-time.Second))
	require.Empty(t, d.Actions)
	frozen := in
	frozen.Frozen = true
	_, d = safety.StepUnmanaged(state, frozen, joinTime, start.Add(5*time.Minute))
	require.Empty(t, d.Actions, "an API server was away")
	empty := in
	empty.Machines = nil
	_, d = safety.StepUnmanaged(state, empty, joinTime, start.Add(5*time.Minute))
	require.Equal(t, "nothing; waits for node/n: NodeMarked: its finalizer stays because no machine exists; the list may be wrong", d.String())
	_, d = safety.StepUnmanaged(state, in, joinTime, start.Add(5*time.Minute))
	require.Equal(t, "update node n: finalizer removed; it has no machine", d.String())
	require.False(t, d.Actions[0].Unchanged)
	next := in.Nodes[0].DeepCopy()
	next.Finalizers = next.Finalizers[:1]
	require.Equal(t, next, d.Actions[0].Object)
}

func TestUnmanaged_MarkRemovedByAnother_IsNotSetAgain(t *testing.T) {
	in := safety.UnmanagedObservation{Nodes: []*corev1.Node{marked(joined("n", ""))}, Complete: true}
	state, _ := safety.StepUnmanaged(safety.UnmanagedState{}, in, joinTime, start)
	in.Nodes = []*corev1.Node{joined("n", "")}
	for i := range 3 {
		var d safety.Decision[machinist.Update]
		state, d = safety.StepUnmanaged(state, in, joinTime, start.Add(time.Duration(i)*time.Hour))
		require.Equal(t, "nothing; waits for node/n: MarkRemoved: it has no machine, but another client removed the annotation "+v1alpha1.NotManagedByMCM+"; it is not marked again", d.String())
	}
	in.Machines = []*v1alpha1.Machine{of("m", "n", "")} // it came and went: the Node is judged anew
	state, d := safety.StepUnmanaged(state, in, joinTime, start)
	require.Equal(t, "nothing", d.String())
	in.Machines = nil
	_, d = safety.StepUnmanaged(state, in, joinTime, start)
	require.Equal(t, "update node n: marked; it has had no machine for 20m0s", d.String())
}

func TestUnmanaged_Update_TouchesOneKey(t *testing.T) {
	old, m := joined("n", ""), of("m", "n", "")
	old.Annotations = map[string]string{"a": "b"}
	for change, in := range map[string]safety.UnmanagedObservation{
		"marked":       {Nodes: []*corev1.Node{old}, Complete: true},
		"mark removed": {Nodes: []*corev1.Node{marked(labeled(old.DeepCopy(), "m"))}, Machines: []*v1alpha1.Machine{m}, Complete: true},
	} {
		_, d := safety.StepUnmanaged(safety.UnmanagedState{}, in, joinTime, start.Add(24*time.Hour))
		require.Len(t, d.Actions, 1, d)
		u, before := d.Actions[0], in.Nodes[0].DeepCopy()
		require.Equal(t, change, u.Changes[0])
		require.Same(t, in.Nodes[0], u.Before)
		require.False(t, u.Unchanged, "other clients write the Node often")
		after := u.Object.(*corev1.Node).DeepCopy()
		_, is := after.Annotations[v1alpha1.NotManagedByMCM]
		require.Equal(t, change == "marked", is)
		delete(after.Annotations, v1alpha1.NotManagedByMCM)
		delete(before.Annotations, v1alpha1.NotManagedByMCM)
		require.Equal(t, before, after)
	}
}

// TestUnmanaged_AnyHistory_ComesToRest applies decisions, some lost or repeated,
// while Nodes and machines are created and deleted.
func TestUnmanaged_AnyHistory_ComesToRest(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 16))
		state, now := safety.UnmanagedState{}, start
		in := safety.UnmanagedObservation{Complete: true}
		for i := range 1 + r.IntN(6) {
			n := joined(fmt.Sprint("n", i), fmt.Sprint("sim:///", r.IntN(6)))
			n.CreationTimestamp = metav1.NewTime(start.Add(-time.Duration(r.IntN(3600)) * time.Second))
			if r.IntN(2) == 0 {
				n = guarded(n)
			}
			in.Nodes = append(in.Nodes, n)
		}
		pass := func(lossy bool) int {
			other := in
			other.Nodes, other.Machines = mixed(r, in.Nodes), mixed(r, in.Machines)
			next, d := safety.StepUnmanaged(state, in, joinTime, now)
			sameState, same := safety.StepUnmanaged(state, other, joinTime, now)
			require.Equal(t, d, same)
			require.Equal(t, next, sameState)
			state = next
			for _, w := range d.Actions {
				if !lossy || r.IntN(3) > 0 {
					counts[w.Changes[0]]++
					apply(in.Nodes, w)
				}
			}
			return len(d.Actions)
		}
		for range 30 {
			now = now.Add(time.Duration(r.IntN(300)) * time.Second)
			switch r.IntN(4) {
			case 0:
				in.Machines = append(in.Machines, of(fmt.Sprint("m", r.IntN(100)), []string{"", fmt.Sprint("n", r.IntN(6))}[r.IntN(2)], fmt.Sprint("sim:///", r.IntN(6))))
				for i, n := range in.Nodes { // the controller of the machine records it on its Node
					m := in.Machines[len(in.Machines)-1]
					if n.Name == m.Labels[v1alpha1.NodeLabelKey] || n.Spec.ProviderID == m.Spec.ProviderID {
						in.Nodes[i] = labeled(n.DeepCopy(), m.Name)
					}
				}
			case 1:
				in.Machines = in.Machines[:r.IntN(len(in.Machines)+1)]
			}
			pass(true)
		}
		pass(false)
		require.Zero(t, pass(false), "seed %d: it does not come to rest", seed)
	}
	for _, edit := range []string{"marked", "mark removed", "finalizer removed"} {
		require.Greater(t, counts[edit], 100, edit)
	}
}

// apply applies an update.
func apply(nodes []*corev1.Node, u machinist.Update) {
	for i, n := range nodes {
		if n == u.Before {
			nodes[i] = u.Object.(*corev1.Node)
		}
	}
}

// many returns as many Nodes as machines. Half of the Nodes have no machine.
func many(n int) (in safety.UnmanagedObservation) {
	in.Complete = true
	for i := range n {
		in.Nodes = append(in.Nodes, joined(fmt.Sprint("n", i), fmt.Sprint("sim:///zone/", i)))
		in.Machines = append(in.Machines, of(fmt.Sprint("m", i), fmt.Sprint("n", 2*i), fmt.Sprint("sim:///zone/", 2*i)))
	}
	return in
}

func TestUnmanaged_ManyNodes_TimeIsProportional(t *testing.T) {
	allocations := func(n int) float64 {
		in := many(n)
		return testing.AllocsPerRun(2, func() { _, _ = safety.StepUnmanaged(safety.UnmanagedState{}, in, joinTime, start) })
	}
	require.Less(t, allocations(4000), 5*allocations(1000))
}
