// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gardener/machine-controller-manager/internal/nodes"
	"github.com/machinist-dev/machinist/nodeops"
)

var (
	t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	t1 = t0.Add(time.Hour)
	t2 = t1.Add(time.Hour)
)

func node(t *testing.T, s *fake.Clientset) *corev1.Node {
	n, err := s.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	require.NoError(t, err)
	return n
}

func writes(s *fake.Clientset) (n int) {
	for _, a := range s.Actions() {
		if a.GetVerb() == "update" || a.GetVerb() == "patch" {
			n++
		}
	}
	return n
}

// stored applies AddOrUpdateConditionsOnNode to a node with the conditions. It returns what is
// stored, and whether there was a write. The time is t2.
func stored(t *testing.T, have []corev1.NodeCondition, add corev1.NodeCondition) (_ []corev1.NodeCondition, changed bool) {
	s := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: have}})
	got, err := nodes.AddOrUpdateConditionsOnNode(t.Context(), s, "n1", add)
	require.NoError(t, err)
	require.Equal(t, node(t, s), got)
	return node(t, s).Status.Conditions, writes(s) > 0
}

// atT2 runs a test in a bubble whose time is t2.
func atT2(t *testing.T, test func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(t2)) // time of the bubble
		test(t)
	})
}

func TestAddOrUpdateConditionsOnNode_Times(t *testing.T) {
	times := func(heartbeat, transition time.Time) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: "A", Status: "True", Reason: "R",
			LastHeartbeatTime: metav1.NewTime(heartbeat), LastTransitionTime: metav1.NewTime(transition),
		}
	}
	with := func(c corev1.NodeCondition, status, reason string) corev1.NodeCondition {
		c.Status, c.Reason = corev1.ConditionStatus(status), reason
		return c
	}
	var zero time.Time
	for name, tc := range map[string]struct {
		have    []corev1.NodeCondition
		set     corev1.NodeCondition
		want    corev1.NodeCondition
		changed bool
	}{
		"zero times of a new condition become now": {nil, times(zero, zero), times(t2, t2), true},
		"the same without times is no change":      {[]corev1.NodeCondition{times(t0, t0)}, times(zero, zero), times(t0, t0), false},
		"a new heartbeat is no transition":         {[]corev1.NodeCondition{times(t0, t0)}, times(t1, t1), times(t1, t0), true},
		"zero times on record are filled":          {[]corev1.NodeCondition{times(zero, zero)}, times(zero, zero), times(t2, t2), true},
		"a new status is a transition now": {
			[]corev1.NodeCondition{times(t0, t0)}, with(times(zero, zero), "False", "R"), with(times(t0, t2), "False", "R"), true,
		},
		"a changed copy of the old condition does not carry the old transition time along": {
			[]corev1.NodeCondition{times(t0, t0)}, with(times(t0, t0), "False", "R"), with(times(t0, t2), "False", "R"), true,
		},
		"a new reason is a transition":     {[]corev1.NodeCondition{times(t0, t0)}, with(times(t1, t1), "True", "S"), with(times(t1, t1), "True", "S"), true},
		"without a status nothing changes": {[]corev1.NodeCondition{times(t0, t0)}, with(times(t1, t1), "", "R"), times(t0, t0), false},
	} {
		t.Run(name, func(t *testing.T) {
			atT2(t, func(t *testing.T) {
				got, changed := stored(t, tc.have, tc.set)
				require.Empty(t, cmp.Diff([]corev1.NodeCondition{tc.want}, got))
				require.Equal(t, tc.changed, changed)
			})
		})
	}
}

// TestAddOrUpdateConditionsOnNode_Laws asserts on random lists that the other conditions stay in
// their order, no zero time is stored, a write is a change, and the second time nothing is written.
func TestAddOrUpdateConditionsOnNode_Laws(t *testing.T) {
	atT2(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		random := func() corev1.NodeCondition {
			c := corev1.NodeCondition{
				Type: pick[corev1.NodeConditionType](rng, "A", "B", "C"), Status: pick(rng, corev1.ConditionTrue, corev1.ConditionFalse),
				Reason: pick(rng, "R", "S"), LastHeartbeatTime: metav1.NewTime(pick(rng, time.Time{}, t0, t1, t2)),
			}
			c.LastTransitionTime = metav1.NewTime(pick(rng, time.Time{}, t0, t1, t2))
			return c
		}
		for range 500 {
			var have []corev1.NodeCondition
			for _, kind := range []string{"A", "B", "C"} {
				if rng.IntN(2) == 0 {
					c := random()
					c.Type = corev1.NodeConditionType(kind)
					have = append(have, c)
				}
			}
			set := random()
			got, changed := stored(t, have, set)
			info := fmt.Sprintf("have %+v set %+v", have, set)
			require.Equal(t, changed, !cmp.Equal(have, got), info)
			require.Empty(t, cmp.Diff(othersThan(set.Type, have), othersThan(set.Type, got)), info)
			found := nodeops.GetCondition(&corev1.Node{Status: corev1.NodeStatus{Conditions: got}}, set.Type)
			require.NotNil(t, found, info)
			require.False(t, found.LastHeartbeatTime.IsZero() || found.LastTransitionTime.IsZero(), info)
			require.Equal(t, set.Status, found.Status, info)
			again, changed := stored(t, got, set)
			require.False(t, changed, info)
			require.Empty(t, cmp.Diff(got, again), info)
		}
	})
}

// othersThan returns the conditions that are not of the type.
func othersThan(kind corev1.NodeConditionType, conditions []corev1.NodeCondition) []corev1.NodeCondition {
	var out []corev1.NodeCondition
	for _, c := range conditions {
		if c.Type != kind {
			out = append(out, c)
		}
	}
	return out
}

// pick returns one of the values.
func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }

func TestAddOrUpdateConditionsOnNode_Conflict_IsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, attempts := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}), 0
		s.PrependReactor("update", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			attempts++
			return attempts < 5, nil, apierrors.NewConflict(corev1.Resource("nodes"), "n1", errors.New("changed"))
		})
		_, err := nodes.AddOrUpdateConditionsOnNode(t.Context(), s, "n1", corev1.NodeCondition{Type: "A", Status: "True"})
		require.NoError(t, err)
		require.Equal(t, 5, writes(s))
		c, err := nodes.GetNodeCondition(t.Context(), s, "n1", "A")
		require.NoError(t, err)
		require.Equal(t, corev1.ConditionTrue, c.Status)
		_, err = nodes.GetNodeCondition(t.Context(), s, "other", "A")
		require.True(t, apierrors.IsNotFound(err))
	})
}

func TestTaintsOnNode_SetAndRemoved_OneWriteEach(t *testing.T) {
	s := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	ctx, first, second := t.Context(), corev1.Taint{Key: "a", Value: "1", Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: "b", Effect: corev1.TaintEffectNoExecute}
	for range 2 {
		require.NoError(t, nodes.AddOrUpdateTaintOnNode(ctx, s, "n1", &first, nil, &second))
	}
	require.Len(t, node(t, s).Spec.Taints, 2)
	require.Equal(t, 1, writes(s))
	for range 2 {
		require.NoError(t, nodes.RemoveTaintOffNode(ctx, s, "n1", node(t, s), nil, &first))
	}
	require.Equal(t, []corev1.Taint{second}, node(t, s).Spec.Taints)
	require.Equal(t, 2, writes(s))
	require.NoError(t, nodes.RemoveTaintOffNode(ctx, s, "missing", node(t, s), &first), "no request for a Node that has none of the taints")
	require.Error(t, nodes.RemoveTaintOffNode(ctx, s, "missing", node(t, s), &second))
}
