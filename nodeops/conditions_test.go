// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
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

func TestGetConditionReturnsACopyOrNil(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{cond("Ready", "True", "", t0)}}}
	got := nodeops.GetCondition(node, "Ready")
	require.NotNil(t, got)
	got.Status = "changed"
	require.Equal(t, corev1.ConditionTrue, node.Status.Conditions[0].Status)

	require.Nil(t, nodeops.GetCondition(node, "Other"))
	require.Nil(t, nodeops.GetCondition(node, ""))
	require.Nil(t, nodeops.GetCondition(nil, "Ready"))
}

func TestCloneAndAddCondition(t *testing.T) {
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
		"the first one makes a list":       {nil, a, []corev1.NodeCondition{a}},
		"without a type nothing is added":  {[]corev1.NodeCondition{a}, cond("", "True", "", t1), []corev1.NodeCondition{a}},
		"without a status nothing changes": {[]corev1.NodeCondition{a}, cond("A", "", "", t1), []corev1.NodeCondition{a}},
		"nothing added to nothing is nil":  {nil, cond("A", "", "", t1), nil},
		"a known type is replaced where it stands (DD-46)": {
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

func TestSetCondition(t *testing.T) {
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
		rule    nodeops.Transition
		want    corev1.NodeCondition
		changed bool
	}{
		"zero times of a new condition become now": {nil, times(zero, zero), 0, times(t2, t2), true},
		"given times of a new condition are kept":  {nil, times(t0, t1), 0, times(t0, t1), true},
		"the same without times is no change": {
			[]corev1.NodeCondition{times(t0, t0)}, times(zero, zero), 0, times(t0, t0), false,
		},
		"a new heartbeat is a change, and no transition": {
			[]corev1.NodeCondition{times(t0, t0)}, times(t1, t1), 0, times(t1, t0), true,
		},
		"zero times on record are filled": {
			[]corev1.NodeCondition{times(zero, zero)}, times(zero, zero), 0, times(t2, t2), true,
		},
		"a new status is a transition now": {
			[]corev1.NodeCondition{times(t0, t0)}, with(times(zero, zero), "False", "R"), 0, with(times(t0, t2), "False", "R"), true,
		},
		"a new status is a transition at the given time": {
			[]corev1.NodeCondition{times(t0, t0)}, with(times(t1, t1), "False", "R"), 0, with(times(t1, t1), "False", "R"), true,
		},
		"a changed copy of the old condition does not carry the old transition time along": {
			[]corev1.NodeCondition{times(t0, t0)}, with(times(t0, t0), "False", "R"), 0, with(times(t0, t2), "False", "R"), true,
		},
		"a new reason is a transition by the first rule": {
			[]corev1.NodeCondition{times(t0, t0)}, with(times(t1, t1), "True", "S"), nodeops.OnStatusOrReason, with(times(t1, t1), "True", "S"), true,
		},
		"a new reason is no transition by the second rule": {
			[]corev1.NodeCondition{times(t0, t0)}, with(times(t1, t1), "True", "S"), nodeops.OnStatus, with(times(t1, t0), "True", "S"), true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.have)
			got, changed := nodeops.SetCondition(tc.have, tc.set, tc.rule, t2)
			require.Empty(t, cmp.Diff([]corev1.NodeCondition{tc.want}, got))
			require.Equal(t, tc.changed, changed)
			require.Empty(t, cmp.Diff(before, tc.have))
		})
	}
}

func TestSetConditionWithoutTypeOrStatusChangesNothing(t *testing.T) {
	have := []corev1.NodeCondition{cond("A", "True", "R", t0)}
	for _, c := range []corev1.NodeCondition{cond("", "True", "", t1), cond("A", "", "", t1)} {
		got, changed := nodeops.SetCondition(have, c, 0, t1)
		require.False(t, changed)
		require.Equal(t, have, got)
		got[0].Message = "scribble"
		require.Empty(t, have[0].Message)
	}
}

func TestSetConditionReportsADroppedRepetition(t *testing.T) {
	a := cond("A", "True", "R", t0)
	got, changed := nodeops.SetCondition([]corev1.NodeCondition{a, a}, a, 0, t1)
	require.True(t, changed)
	require.Equal(t, []corev1.NodeCondition{a}, got)
}

func TestAddOrUpdateConditionReturnsADeepCopy(t *testing.T) {
	require.Nil(t, nodeops.AddOrUpdateCondition(nil, cond("A", "True", "", t0)))
	node := crowdedNode()
	before := node.DeepCopy()
	got := nodeops.AddOrUpdateCondition(node, cond("Z", "True", "", t0))
	require.Len(t, got.Status.Conditions, len(node.Status.Conditions)+1)
	got.Labels["l"] = "scribble"
	got.Status.Images[0].SizeBytes = 99
	got.Status.Conditions[0].Message = "scribble"
	require.Empty(t, cmp.Diff(before, node))
}

// The laws of SetCondition, on random lists: the others stay as they are and in order, the input is
// not touched, no zero time is stored, and the second time changes nothing.
func TestSetConditionLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() corev1.NodeCondition {
		c := cond(pick(rng, "A", "B", "C"), pick(rng, "True", "False"), pick(rng, "R", "S"), pick(rng, time.Time{}, t0, t1, t2))
		c.LastTransitionTime = metav1.NewTime(pick(rng, time.Time{}, t0, t1, t2))
		return c
	}
	for range 3000 {
		var have []corev1.NodeCondition
		for _, kind := range []string{"A", "B", "C"} {
			if rng.IntN(2) == 0 {
				c := random()
				c.Type = corev1.NodeConditionType(kind)
				have = append(have, c)
			}
		}
		set, rule, before := random(), nodeops.Transition(rng.IntN(2)), slices.Clone(have)
		got, changed := nodeops.SetCondition(have, set, rule, t2)
		info := fmt.Sprintf("have %+v set %+v rule %v", have, set, rule)
		require.Empty(t, cmp.Diff(before, have), info)
		require.Equal(t, changed, !cmp.Equal(have, got), info)
		require.Empty(t, cmp.Diff(othersThan(set.Type, have), othersThan(set.Type, got)), info)
		stored := nodeops.GetCondition(&corev1.Node{Status: corev1.NodeStatus{Conditions: got}}, set.Type)
		require.NotNil(t, stored, info)
		require.False(t, stored.LastHeartbeatTime.IsZero() || stored.LastTransitionTime.IsZero(), info)
		require.Equal(t, set.Status, stored.Status, info)
		again, changed := nodeops.SetCondition(got, set, rule, t2.Add(time.Hour))
		require.False(t, changed, info)
		require.Empty(t, cmp.Diff(got, again), info)
	}
}

func TestCloneAndAddConditionAllocatesOnce(t *testing.T) {
	have := manyConditions(10)
	for _, c := range []corev1.NodeCondition{have[3], cond("New", "True", "", t0)} {
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { sinkConditions = nodeops.CloneAndAddCondition(have, c) }), 1.0)
	}
}

func TestTransitionHasAName(t *testing.T) {
	require.Equal(t, "OnStatusOrReason", nodeops.Transition(0).String())
	require.Equal(t, "OnStatus", nodeops.OnStatus.String())
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
