// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
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

func TestNothingIsSharedWithTheObservationThatIsToBeChanged(t *testing.T) {
	w, _, _ := midRoll(t)
	w.d.Annotations = map[string]string{namesKey: "w-a-1", scaledKey: "2026-03-01T12:00:00Z"}
	in := w.in()
	before := copyOf(in)
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
	for _, a := range w.plan(deployment.Policy{HoldAutoscaler: true}).Actions {
		if write, ok := a.(deployment.WriteNode); ok && write.Node.Name == n.Name {
			patch, err := write.Patch()
			require.NoError(t, err)
			patches = append(patches, string(patch))
		}
	}
	require.Equal(t, []string{`{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true","cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm":"true"},` +
		`"resourceVersion":"1","uid":"node-w-a-1-uid"},` +
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
