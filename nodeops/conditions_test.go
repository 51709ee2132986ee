// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

var (
	t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	t1 = t0.Add(time.Minute)
	t2 = t0.Add(2 * time.Minute)
)

// cond returns a condition with both of its times at the instant; a zero instant gives zero times.
func cond(kind, status, reason string, at time.Time) corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status), Reason: reason,
		LastHeartbeatTime: metav1.NewTime(at), LastTransitionTime: metav1.NewTime(at),
	}
}

func TestCloneAndAddCondition_Table_Result(t *testing.T) {
	a, b := cond("A", "True", "R", t0), cond("B", "True", "R", t0)
	withTransition := func(c corev1.NodeCondition, at time.Time) corev1.NodeCondition {
		c.LastTransitionTime = metav1.NewTime(at)
		return c
	}
	for name, tc := range map[string]struct {
		have []corev1.NodeCondition
		add  corev1.NodeCondition
		want []corev1.NodeCondition
	}{
		"a new type goes to the end":       {[]corev1.NodeCondition{a}, b, []corev1.NodeCondition{a, b}},
		"without a status nothing changes": {[]corev1.NodeCondition{a}, cond("A", "", "", t1), []corev1.NodeCondition{a}},
		"a known type is replaced where it stands": {
			[]corev1.NodeCondition{a, b}, cond("A", "False", "R", t1), []corev1.NodeCondition{cond("A", "False", "R", t1), b},
		},
		"the transition time stays while status and reason stay": {
			[]corev1.NodeCondition{a}, cond("A", "True", "R", t1), []corev1.NodeCondition{withTransition(cond("A", "True", "R", t1), t0)},
		},
		"a new reason moves the transition time, as in-place updates need": {
			[]corev1.NodeCondition{a}, cond("A", "True", "S", t1), []corev1.NodeCondition{cond("A", "True", "S", t1)},
		},
		"a recorded zero transition time does not stay": {
			[]corev1.NodeCondition{withTransition(a, time.Time{})}, cond("A", "True", "R", t1), []corev1.NodeCondition{cond("A", "True", "R", t1)},
		},
		"repetitions of the type are dropped": {
			[]corev1.NodeCondition{a, b, a, b, a}, cond("A", "False", "", t1), []corev1.NodeCondition{cond("A", "False", "", t1), b, b},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.have)
			got := nodeops.CloneAndAddCondition(tc.have, tc.add)
			require.Empty(t, cmp.Diff(tc.want, got))
			for i := range got {
				got[i].Message = "scribble"
			}
			_ = append(got, a)
			require.Empty(t, cmp.Diff(before, tc.have), "the input was changed through the output")
		})
	}
}

// stored applies AddOrUpdateConditionsOnNode to a node with the conditions. It returns what is
// stored, and whether there was a write. The time is t2.
func stored(t *testing.T, have []corev1.NodeCondition, add corev1.NodeCondition) (_ []corev1.NodeCondition, changed bool) {
	s := newServer(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: have}})
	require.NoError(t, nodeops.AddOrUpdateConditionsOnNode(t.Context(), s, "n1", add))
	return s.node().Status.Conditions, s.writes > 0
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
			c := cond(pick(rng, "A", "B", "C"), pick(rng, "True", "False"), pick(rng, "R", "S"), pick(rng, time.Time{}, t0, t1, t2))
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
			found := condition(&corev1.Node{Status: corev1.NodeStatus{Conditions: got}}, set.Type)
			require.NotNil(t, found, info)
			require.False(t, found.LastHeartbeatTime.IsZero() || found.LastTransitionTime.IsZero(), info)
			require.Equal(t, set.Status, found.Status, info)
			again, changed := stored(t, got, set)
			require.False(t, changed, info)
			require.Empty(t, cmp.Diff(got, again), info)
		}
	})
}

func TestCloneAndAddCondition_Any_AllocatesOnce(t *testing.T) {
	have := manyConditions(10)
	for _, c := range []corev1.NodeCondition{have[3], cond("New", "True", "", t0)} {
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { sinkConditions = nodeops.CloneAndAddCondition(have, c) }), 1.0)
	}
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

func manyConditions(n int) []corev1.NodeCondition {
	out := make([]corev1.NodeCondition, n)
	for i := range out {
		out[i] = cond(fmt.Sprintf("Condition%d", i), "True", "Reason", t0)
		out[i].Message = "a message of ordinary length"
	}
	return out
}
