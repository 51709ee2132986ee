// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// written returns a Node as a decision writes it, nil if it does not.
func written(dec deployment.Decision, name string) *corev1.Node {
	for _, a := range dec.Actions {
		if a, ok := a.(deployment.WriteNode); ok && a.Node.Name == name {
			return a.Node
		}
	}
	return nil
}

func TestInPlace_NodeOfAMovedMachine_AllMarksAreTakenOffBeforeItIsAcknowledged(t *testing.T) {
	for name, c := range map[string]struct {
		label  string
		claims string // what another has recorded on the Node
		closed bool   // to pods, at the end
	}{
		"a candidate":                     {candKey, "", false},
		"one that is selected":            {selKey, "", false},
		"one with a result":               {v1alpha1.LabelKeyNodeUpdateResult, "", false},
		"a cordon of another stays":       {v1alpha1.LabelKeyNodeUpdateResult, `{"marks":["unschedulable"]}`, true},
		"a taint of another is no cordon": {v1alpha1.LabelKeyNodeUpdateResult, `{"marks":["taint:x=y:NoSchedule"]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "inplace 1 -1; old 0; new 1: m.moved")
			n := s.in.Nodes["node-m"]
			n.Labels[c.label] = v1alpha1.LabelValueNodeUpdateSuccessful
			n.Annotations = map[string]string{v1alpha1.AnnotationKeyMachineUpdateFailedReason: "an earlier attempt"}
			if c.claims != "" {
				n.Annotations["fence.machinist.dev/another"] = c.claims
			}
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.PreferNoScheduleKey, Effect: corev1.TaintEffectPreferNoSchedule}}
			text, dec := s.outcome()
			require.NotContains(t, text, "acknowledges")
			back := written(dec, n.Name)
			require.NotNil(t, back, dec.String())
			require.Empty(t, back.Labels)
			require.NotContains(t, back.Annotations, v1alpha1.AnnotationKeyMachineUpdateFailedReason)
			require.Equal(t, []corev1.Taint{{Key: v1alpha1.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule}}, back.Spec.Taints)
			require.Equal(t, c.closed, back.Spec.Unschedulable)
			s.in.Nodes["node-m"] = back
			text, _ = s.outcome()
			require.Contains(t, text, "acknowledges m")
		})
	}
}

// No machine may be unavailable, and the new set was there before, without a surge.
func TestInPlace_NothingCouldBeUpdatedOtherwise_SurgeComesAgain(t *testing.T) {
	const a, b = "inplace 2 +1; old 2: a.candidate b.candidate; new 0", "inplace 2 +1; old 2: a.selected b.candidate; new 0"
	for name, c := range map[string]struct {
		scene string
		moved time.Duration // since something has moved
		size  string
	}{
		"nothing has moved for a while":       {a, 300 * time.Second, "new 0>1"},
		"something has moved a moment ago":    {a, 299 * time.Second, "new 0"},
		"when something moved is not known":   {a, -1, "new 0"},
		"a machine is being updated":          {b, 300 * time.Second, "new 0"},
		"a set has not done what it was told": {"inplace 2 +1; old 2/3: a.candidate b.candidate; new 0", 300 * time.Second, "new 0"},
		"machines may be unavailable":         {"inplace 2 +1 -1; old 2: a.candidate b.candidate.pending; new 0", 300 * time.Second, "new 0"},
		"the new set has all it may have":     {"inplace 2 +1; old 1: a.candidate; new 2: b c.unknown", 300 * time.Second, "new 2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, c.scene)
			if c.moved >= 0 {
				s.in.Deployment.Status.Conditions = []v1alpha1.MachineDeploymentCondition{{
					Type: v1alpha1.MachineDeploymentProgressing, Status: v1alpha1.ConditionTrue, LastUpdateTime: metav1.NewTime(rollNow.Add(-c.moved)),
				}}
			}
			text, dec := s.outcome()
			require.Regexp(t, c.size+"(;|$)", text, dec.String())
			waits := slices.ContainsFunc(dec.Holds, func(h machinist.Hold) bool { return h.Until.Equal(rollNow.Add(time.Second)) })
			require.Equal(t, c.moved == 299*time.Second, waits, "it is looked at again when a while has passed")
		})
	}
}

func TestMark_NodeThatIsReturnedOfAnOldSet_KeepsTheTaint(t *testing.T) {
	s := newScene(t, "inplace 3 -1 taint; old 3: a.moved b.moved c.moved; new 0")
	taint := corev1.Taint{Key: v1alpha1.PreferNoScheduleKey, Value: "True", Effect: corev1.TaintEffectPreferNoSchedule}
	for _, n := range s.in.Nodes {
		n.Labels[candKey] = "true" // so it is given back to pods
		n.Spec.Taints = []corev1.Taint{taint}
	}
	_, dec := s.outcome()
	for name := range s.in.Nodes {
		n := written(dec, name)
		require.NotNil(t, n)
		require.Contains(t, n.Spec.Taints, taint)
	}
}

func BenchmarkPlanInPlace(b *testing.B) {
	for _, n := range []int{500, 5000, 50000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := updating(int32(n), 0, 0)
			d.Spec.Strategy.InPlaceUpdate.MaxUnavailable = new(intstr.FromString("10%"))
			in := rollSee(d, rollSet(d, "c0", int32(n), 0, 0), rollSet(d, "c1", 0, 0, 0))
			in.Nodes = map[string]*corev1.Node{}
			for i := range n {
				m := rollMachine(in.Sets[0], fmt.Sprintf("m%05d", i), v1alpha1.MachineRunning)
				in.Machines = append(in.Machines, m)
				in.Nodes["node-"+m.Name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + m.Name, Labels: map[string]string{candKey: "true"}}}
			}
			b.ReportAllocs()
			for b.Loop() {
				deployment.Decide(in, rollPolicy, rollNow)
			}
		})
	}
}
