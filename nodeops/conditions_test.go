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

func TestCloneAndAddCondition_Any_AllocatesOnce(t *testing.T) {
	have := manyConditions(10)
	for _, c := range []corev1.NodeCondition{have[3], cond("New", "True", "", t0)} {
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { sinkConditions = nodeops.CloneAndAddCondition(have, c) }), 1.0)
	}
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

func TestGetCondition_OfNode_IsACopy(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Reason: "x"}}}}
	nodeops.GetCondition(node, corev1.NodeReady).Reason = "y"
	require.Equal(t, "x", node.Status.Conditions[0].Reason)
	require.Nil(t, nodeops.GetCondition(node, corev1.NodeDiskPressure))
	require.Nil(t, nodeops.GetCondition(nil, corev1.NodeReady))
}
