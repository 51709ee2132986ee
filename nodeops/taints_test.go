// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

func taint(key, value string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

func since(t corev1.Taint, at metav1.Time) corev1.Taint {
	t.TimeAdded = &at
	return t
}

const (
	noSchedule = corev1.TaintEffectNoSchedule
	noExecute  = corev1.TaintEffectNoExecute
)

func TestSetTaint_NoKeyOrEffect_NoChange(t *testing.T) {
	have := []corev1.Taint{taint("a", "1", noSchedule)}
	for _, x := range []corev1.Taint{taint("", "x", noSchedule), taint("x", "x", "")} {
		got, changed := nodeops.SetTaint(have, x)
		require.False(t, changed)
		require.Equal(t, have, got)
	}
}

func TestRemoveTaint_Table_Result(t *testing.T) {
	a, x, b := taint("a", "1", noSchedule), taint("a", "", noExecute), taint("b", "", noSchedule)
	all := []corev1.Taint{a, x, b}

	got, changed := nodeops.RemoveTaint(all, taint("a", "another value", noSchedule))
	require.True(t, changed)
	require.Equal(t, []corev1.Taint{x, b}, got)

	got, changed = nodeops.RemoveTaint(all, taint("a", "", ""))
	require.False(t, changed, "a removal without an effect must not remove every effect")
	require.Equal(t, all, got)

	got, changed = nodeops.RemoveTaintKey(all, "a")
	require.True(t, changed)
	require.Equal(t, []corev1.Taint{b}, got)

	got, changed = nodeops.RemoveTaintKey(all[2:], "b")
	require.True(t, changed)
	require.Nil(t, got)

	require.True(t, nodeops.HasTaint(all, taint("a", "2", noSchedule)))
	require.False(t, nodeops.HasTaint(all, taint("b", "", noExecute)))
}

// randomTaints returns up to n taints over few keys, values and effects; with repetitions only
// if asked.
func randomTaints(rng *rand.Rand, n int, repeat bool) []corev1.Taint {
	var out []corev1.Taint
	for range rng.IntN(n + 1) {
		x := taint(pick(rng, "a", "b", "c", "d"), pick(rng, "", "1", "2"), pick(rng, noSchedule, noExecute))
		if rng.IntN(2) == 0 {
			x = since(x, metav1.NewTime(pick(rng, t0, t1, t2)))
		}
		if repeat || !nodeops.HasTaint(out, x) {
			out = append(out, x)
		}
	}
	return out
}

func cloned(taints []corev1.Taint) []corev1.Taint {
	return (&corev1.NodeSpec{Taints: taints}).DeepCopy().Taints
}

func TestTaints_Random_Laws(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		have, x := randomTaints(rng, 6, false), since(taint(pick(rng, "a", "b", "c", "d"), pick(rng, "", "1", "2"), pick(rng, noSchedule, noExecute)), metav1.NewTime(t1))
		before := cloned(have)

		got, changed := nodeops.SetTaint(have, x)
		require.Equal(t, changed, !maps.Equal(taintMap(have), taintMap(got)), "changed says whether the set differs")
		want := taintMap(have)
		maps.Copy(want, taintMap([]corev1.Taint{x}))
		require.Equal(t, want, taintMap(got))
		again, changed := nodeops.SetTaint(got, x)
		require.False(t, changed, "setting twice changes nothing the second time")
		require.Empty(t, cmp.Diff(got, again))
		for i := range have {
			require.Equal(t, have[i].Key, got[i].Key, "what was there keeps its place")
		}

		removed, changed := nodeops.RemoveTaint(got, x)
		require.True(t, changed)
		direct, _ := nodeops.RemoveTaint(have, x)
		require.Empty(t, cmp.Diff(direct, removed, cmpopts.EquateEmpty()), "set and remove is remove")

		require.Empty(t, cmp.Diff(before, have))
		scribble(got, again, removed, direct)
		require.Empty(t, cmp.Diff(before, have), "the output shares memory with the input")
		require.Equal(t, t1, x.TimeAdded.Time, "the output shares memory with the input")
	}
}

// scribble overwrites everything that can be reached from the taints.
func scribble(lists ...[]corev1.Taint) {
	for _, taints := range lists {
		for i := range taints {
			if taints[i].TimeAdded != nil {
				*taints[i].TimeAdded = metav1.NewTime(t2.AddDate(1, 0, 0))
			}
			taints[i].Value = "scribble"
		}
		_ = append(taints, taint("scribble", "", noSchedule))
	}
}
