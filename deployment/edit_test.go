// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// markedObject names the object that an action writes.
func markedObject(a deployment.Action) string {
	switch a := a.(type) {
	case deployment.WriteDeployment:
		return "deployment"
	case deployment.WriteNode:
		return "node " + a.Node.Name
	case deployment.WriteMachine:
		return "machine " + a.Machine.Name
	case deployment.WriteSet:
		return "set " + a.Set.Name
	case deployment.CreateSet:
		return "set " + a.Set.Name
	case deployment.DeleteSet:
		return "set " + a.Name
	case deployment.Look:
		return "look " + a.Kind + a.Name
	default:
		return fmt.Sprintf("%T", a)
	}
}

// marksRandom makes a world in which anything may be the case, with lists that
// hold nil and the same object twice.
func marksRandom(r *rand.Rand) (deployment.Observation, deployment.Policy) {
	yes := func(percent int) bool { return r.IntN(100) < percent }
	w := newMarksWorld(int32(r.IntN(5)))
	for i := range r.IntN(3) {
		w.addSet(string(rune('b'+i)), int32(r.IntN(4)))
	}
	w.d.Spec.Template.Spec.Class.Name = string(rune('a' + r.IntN(4)))
	w.d.Spec.Replicas = int32(r.IntN(7))
	w.d.Spec.Strategy = marksStrategy(r)
	w.d.Spec.Paused = yes(15)
	w.d.Spec.RevisionHistoryLimit = []*int32{nil, new(int32(0)), new(int32(1))}[r.IntN(3)]
	if yes(20) {
		w.d.Spec.RollbackTo = &v1alpha1.RollbackConfig{Revision: int64(r.IntN(4))}
	}
	if yes(40) {
		w.d.Annotations = map[string]string{
			namesKey:  []string{"w-a-1", "w-a-1,w-a-2,?", "w-a-2~2026-02-01T00:00:00Z,,~", "nobody"}[r.IntN(4)],
			scaledKey: []string{"2026-02-01T00:00:00Z", "junk"}[r.IntN(2)],
		}
	}
	for _, s := range w.sets {
		if yes(30) {
			w.unhash(s)
		}
		if yes(10) {
			s.Spec.Selector = nil
		}
		if yes(10) {
			s.DeletionTimestamp = new(metav1.NewTime(marksNow))
		}
		if yes(20) {
			s.Annotations = map[string]string{v1alpha1.PreferNoScheduleKey: "True", deployment.NamedAnnotation: "x"}
		}
		if yes(20) {
			s.Generation = 7
		}
	}
	for _, m := range w.machines {
		marksRandomMachine(r, m, w.node(m))
	}
	in := w.in()
	in.Sets = append(in.Sets, nil)
	in.Machines = append(in.Machines, nil)
	if len(in.Sets) > 1 && yes(20) {
		in.Sets = append(in.Sets, in.Sets[0])
	}
	if len(in.Machines) > 1 && yes(20) {
		in.Machines = append(in.Machines, in.Machines[0])
	}
	for name := range in.Nodes {
		switch r.IntN(12) {
		case 0:
			delete(in.Nodes, name)
		case 1:
			in.Nodes[name] = nil
		case 2:
			in.Nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "another"}}
		}
	}
	return in, deployment.Policy{Burst: r.IntN(6), ByLabel: yes(40), HoldAutoscaler: yes(50), Discourage: []deployment.Discourage{"", "None", "NoSchedule"}[r.IntN(3)]}
}

func marksStrategy(r *rand.Rand) v1alpha1.MachineDeploymentStrategy {
	bounds := v1alpha1.UpdateConfiguration{MaxSurge: new(intstr.FromInt32(int32(r.IntN(3)))), MaxUnavailable: new(intstr.FromInt32(int32(r.IntN(3))))}
	switch r.IntN(4) {
	case 0:
		return v1alpha1.MachineDeploymentStrategy{Type: v1alpha1.RecreateMachineDeploymentStrategyType}
	case 1:
		return v1alpha1.MachineDeploymentStrategy{
			Type:          v1alpha1.InPlaceUpdateMachineDeploymentStrategyType,
			InPlaceUpdate: &v1alpha1.InPlaceUpdateMachineDeployment{UpdateConfiguration: bounds, OrchestrationType: v1alpha1.OrchestrationTypeAuto},
		}
	default:
		return v1alpha1.MachineDeploymentStrategy{
			Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType, RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: bounds},
		}
	}
}

func marksRandomMachine(r *rand.Rand, m *v1alpha1.Machine, n *corev1.Node) {
	m.Status.CurrentStatus.Phase = []v1alpha1.MachinePhase{
		v1alpha1.MachineRunning, v1alpha1.MachineRunning, v1alpha1.MachinePending, v1alpha1.MachineFailed, v1alpha1.MachineTerminating, v1alpha1.MachineInPlaceUpdating, "",
	}[r.IntN(7)]
	if r.IntN(10) == 0 {
		m.UID = ""
	}
	if r.IntN(10) == 0 {
		m.Labels = nil
	}
	if r.IntN(5) == 0 {
		m.Annotations = map[string]string{deployment.NamedAnnotation: "", prioKey: "1", markKey: "junk"}
	}
	if r.IntN(3) == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.PreferNoScheduleKey, Effect: corev1.TaintEffectNoSchedule}}
		n.Annotations = map[string]string{ourKey: "true", offKey: "true"}
		n.Labels = map[string]string{candKey: "", selKey: "true"}
	}
}

// No two actions of a plan write the same object, whatever the world is like; the
// plan is the same each time, and the observation stays as it is.
func TestNoObjectIsWrittenTwiceInAPass(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	kinds := map[string]int{}
	for i := range 600 {
		in, p := marksRandom(r)
		before := marksCopy(in)
		dec := deployment.Plan(in, p, marksNow)
		require.Empty(t, cmp.Diff(before, in), "world %d: the observation was modified", i)
		require.Equal(t, dec.String(), deployment.Plan(marksCopy(in), p, marksNow).String(), "world %d", i)
		met := map[string]bool{}
		objects := 0
		for _, a := range dec.Actions {
			o := markedObject(a)
			require.False(t, met[o], "world %d: %s is written twice: %s", i, o, dec)
			met[o] = true
			kinds[fmt.Sprintf("%T", a)]++
			switch a.(type) {
			case deployment.WriteNode, deployment.WriteMachine:
				objects++
			}
		}
		if p.Burst > 0 {
			require.LessOrEqual(t, objects, p.Burst)
		}
		if len(dec.Actions) > 0 {
			require.True(t, dec.NextCheck.After(marksNow))
		}
	}
	for _, kind := range []string{"WriteDeployment", "WriteNode", "WriteMachine", "CreateSet", "WriteSet", "DeleteSet"} {
		require.Positive(t, kinds["deployment."+kind], "no world has a %s", kind)
	}
}

func marksCopy(in deployment.Observation) deployment.Observation {
	in.Deployment = in.Deployment.DeepCopy()
	sets, machines, nodes := slices.Clone(in.Sets), slices.Clone(in.Machines), map[string]*corev1.Node{}
	for i, s := range sets {
		sets[i] = s.DeepCopy()
	}
	for i, m := range machines {
		machines[i] = m.DeepCopy()
	}
	for name, n := range in.Nodes {
		nodes[name] = n.DeepCopy()
	}
	in.Sets, in.Machines, in.Nodes = sets, machines, nodes
	return in
}

func TestNothingIsSharedWithTheObservationThatIsToBeChanged(t *testing.T) {
	w, _, _ := midRoll(t)
	w.d.Annotations = map[string]string{namesKey: "w-a-1", scaledKey: "2026-03-01T12:00:00Z"}
	in := w.in()
	before := marksCopy(in)
	for _, a := range w.plan(deployment.Policy{HoldAutoscaler: true}).Actions {
		switch a := a.(type) {
		case deployment.WriteNode:
			a.Node.Annotations["x"], a.Node.Spec.Taints = "y", append(a.Node.Spec.Taints[:0], corev1.Taint{Key: "z"})
		case deployment.WriteMachine:
			a.Machine.Annotations["x"], a.Machine.OwnerReferences[0].Name = "y", "z"
		case deployment.WriteSet:
			a.Set.Annotations["x"], a.Set.Spec.Selector.MatchLabels["x"] = "y", "z"
		case deployment.WriteDeployment:
			a.Deployment.Annotations["x"], a.Deployment.Spec.Template.Labels["x"] = "y", "z"
		}
	}
	require.Empty(t, cmp.Diff(before, in))
}

// What has to change in a Node is one write, made from what was observed, which
// fails if the Node has changed since (DS-7); and the observation, which may be a
// cache, is not changed on the way.
func TestDS07ANodeIsPatchedOnceWithAPrecondition(t *testing.T) {
	w, old, _ := midRoll(t)
	n := w.node(w.of(old)[0])
	n.Spec.Taints = []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoExecute}}
	n.Labels = map[string]string{"keep": "1"}
	var patches []string
	for _, a := range w.plan(deployment.Policy{ByLabel: true, HoldAutoscaler: true}).Actions {
		if write, ok := a.(deployment.WriteNode); ok && write.Node.Name == n.Name {
			patch, err := write.Patch()
			require.NoError(t, err)
			patches = append(patches, string(patch))
		}
	}
	require.Equal(t, []string{`{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true","cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm":"true"},` +
		`"labels":{"node.machine.sapcloud.io/candidate-for-update":"replace"},"resourceVersion":"1","uid":"node-w-a-1-uid"},` +
		`"spec":{"taints":[{"key":"other","effect":"NoExecute"},{"key":"deployment.machine.sapcloud.io/prefer-no-schedule","value":"True","effect":"PreferNoSchedule"}]}}`}, patches)
}

func TestPatchRemovesWhatIsGone(t *testing.T) {
	before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "3", Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"c": "3"}}}
	before.Spec.Taints, before.Spec.Unschedulable = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}, true
	after := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "1"}}}
	patch, err := deployment.WriteNode{Before: before, Node: after}.Patch()
	require.NoError(t, err)
	require.JSONEq(t, `{"metadata":{"uid":"u","resourceVersion":"3","labels":{"b":null},"annotations":{"c":null}},"spec":{"taints":[],"unschedulable":false}}`, string(patch))
	_, err = deployment.WriteNode{}.Patch()
	require.ErrorIs(t, err, deployment.ErrNoNode)
}

func TestMarksOfMachinesComeBeforeASetShrinks(t *testing.T) {
	w := newMarksWorld(3)
	var err error
	w.d, err = deployment.ScaleDown(w.d, []string{"w-a-2"}, marksNow)
	require.NoError(t, err)
	var kinds []string
	for _, a := range w.plan(deployment.Policy{}).Actions {
		kinds = append(kinds, fmt.Sprintf("%T", a))
	}
	require.Equal(t, []string{"deployment.WriteMachine", "deployment.WriteSet"}, kinds)
}

func TestASetThatIsDeletedIsNotWritten(t *testing.T) {
	w := newMarksWorld(2)
	empty := w.addSet("old", 0)
	empty.CreationTimestamp = metav1.NewTime(marksNow.Add(-marksNow.Sub(marksNow.AddDate(-1, 0, 0))))
	w.unhash(empty)
	w.d.Spec.RevisionHistoryLimit = new(int32(0))
	w.d.Spec.Paused = true
	dec := w.plan(deployment.Policy{})
	var written []string
	for _, a := range dec.Actions {
		written = append(written, markedObject(a))
	}
	require.Len(t, slices.DeleteFunc(written, func(o string) bool { return o != "set w-old" }), 1, dec.String())
}

func TestBurstBoundsWhatIsWrittenAndSaysSo(t *testing.T) {
	w := newMarksWorld(9)
	w.d.Spec.Template.Spec.Class.Name = "b"
	w.addSet("b", 1)
	marked := func() (n int) {
		for _, node := range w.nodes {
			if marksTaint(node) != "" {
				n++
			}
		}
		return n
	}
	dec := w.run(t, deployment.Policy{Burst: 4})
	require.Equal(t, 4, marked())
	require.Contains(t, dec.String(), "w: BurstLimit: 4 of 9 machines and Nodes are written in this pass")
	w.run(t, deployment.Policy{Burst: 4})
	require.Equal(t, 8, marked())
	w.run(t, deployment.Policy{Burst: 4})
	require.Equal(t, 9, marked())
}
