// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestSetTaint(t *testing.T) {
	a, b := taint("a", "1", noSchedule), taint("b", "", noSchedule)
	for name, tc := range map[string]struct {
		have    []corev1.Taint
		set     corev1.Taint
		want    []corev1.Taint
		changed bool
	}{
		"the first one makes a list":              {nil, a, []corev1.Taint{a}, true},
		"a new one goes to the end":               {[]corev1.Taint{a}, b, []corev1.Taint{a, b}, true},
		"one that is there changes nothing":       {[]corev1.Taint{a, b}, a, []corev1.Taint{a, b}, false},
		"another value replaces where it stands":  {[]corev1.Taint{a, b}, taint("a", "2", noSchedule), []corev1.Taint{taint("a", "2", noSchedule), b}, true},
		"another effect is another taint":         {[]corev1.Taint{a}, taint("a", "1", noExecute), []corev1.Taint{a, taint("a", "1", noExecute)}, true},
		"a fresh time is no change (DD-46)":       {[]corev1.Taint{since(a, metav1.NewTime(t0))}, since(a, metav1.NewTime(t1)), []corev1.Taint{since(a, metav1.NewTime(t0))}, false},
		"a time that was lost is no change":       {[]corev1.Taint{since(a, metav1.NewTime(t0))}, a, []corev1.Taint{since(a, metav1.NewTime(t0))}, false},
		"a replaced one takes the new time":       {[]corev1.Taint{since(a, metav1.NewTime(t0))}, since(taint("a", "2", noSchedule), metav1.NewTime(t1)), []corev1.Taint{since(taint("a", "2", noSchedule), metav1.NewTime(t1))}, true},
		"replacing drops repetitions":             {[]corev1.Taint{a, b, a}, taint("a", "2", noSchedule), []corev1.Taint{taint("a", "2", noSchedule), b}, true},
		"without a key it is no taint":            {[]corev1.Taint{a}, taint("", "x", noSchedule), []corev1.Taint{a}, false},
		"without an effect it is no taint":        {[]corev1.Taint{a}, taint("x", "x", ""), []corev1.Taint{a}, false},
		"nothing set in nothing is still nothing": {nil, corev1.Taint{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := nodeops.SetTaint(tc.have, tc.set)
			require.Empty(t, cmp.Diff(tc.want, got))
			require.Equal(t, tc.changed, changed)
		})
	}
}

func TestRemoveTaint(t *testing.T) {
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

	got, changed = nodeops.RemoveTaints(all, all)
	require.True(t, changed)
	require.Nil(t, got)

	got, changed = nodeops.RemoveTaint(nil, a)
	require.False(t, changed)
	require.Nil(t, got)
}

func TestHasTaintAsksForKeyAndEffect(t *testing.T) {
	have := []corev1.Taint{taint("a", "1", noSchedule)}
	require.True(t, nodeops.HasTaint(have, taint("a", "2", noSchedule)))
	require.False(t, nodeops.HasTaint(have, taint("a", "1", noExecute)))
	require.False(t, nodeops.HasTaint(nil, corev1.Taint{}))
	require.True(t, nodeops.HasTaintKey(have, "a"))
	require.False(t, nodeops.HasTaintKey(have, "b"))
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

func shuffled(rng *rand.Rand, taints []corev1.Taint) []corev1.Taint {
	out := cloned(taints)
	rng.Shuffle(len(out), func(i, k int) { out[i], out[k] = out[k], out[i] })
	return out
}

func TestTaintSetLaws(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		have, set := randomTaints(rng, 6, false), randomTaints(rng, 4, false)
		haveBefore, setBefore := cloned(have), cloned(set)

		got, changed := nodeops.SetTaints(have, set)
		require.Equal(t, changed, !nodeops.EqualTaints(have, got), "changed says whether the set differs")
		for _, x := range set {
			require.True(t, nodeops.HasTaint(got, x))
		}
		again, changed := nodeops.SetTaints(got, set)
		require.False(t, changed, "setting twice changes nothing the second time")
		require.Empty(t, cmp.Diff(got, again))

		other, _ := nodeops.SetTaints(shuffled(rng, have), shuffled(rng, set))
		require.True(t, nodeops.EqualTaints(got, other), "the order of the input does not matter for the set")
		require.GreaterOrEqual(t, len(got), len(have))
		for i := range have {
			require.Equal(t, have[i].Key, got[i].Key, "what was there keeps its place")
		}

		removed, changed := nodeops.RemoveTaints(got, set)
		require.Equal(t, len(set) > 0, changed)
		direct, _ := nodeops.RemoveTaints(have, set)
		require.True(t, nodeops.EqualTaints(removed, direct), "set and remove is remove")
		_, changed = nodeops.RemoveTaints(removed, set)
		require.False(t, changed)

		require.Empty(t, cmp.Diff(haveBefore, have))
		require.Empty(t, cmp.Diff(setBefore, set))
		scribble(got, again, other, removed, direct)
		require.Empty(t, cmp.Diff(haveBefore, have), "the output shares memory with the input")
		require.Empty(t, cmp.Diff(setBefore, set), "the output shares memory with the input")
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

func TestEqualTaintsIgnoresOrderTimeAndRepetition(t *testing.T) {
	a, b := taint("a", "1", noSchedule), taint("b", "", noExecute)
	require.True(t, nodeops.EqualTaints(nil, []corev1.Taint{}))
	require.True(t, nodeops.EqualTaints([]corev1.Taint{a, b}, []corev1.Taint{since(b, metav1.NewTime(t0)), a, a}))
	require.False(t, nodeops.EqualTaints([]corev1.Taint{a}, []corev1.Taint{taint("a", "2", noSchedule)}))
	require.False(t, nodeops.EqualTaints([]corev1.Taint{a}, []corev1.Taint{a, b}))
	require.False(t, nodeops.EqualTaints([]corev1.Taint{a}, []corev1.Taint{b}))
	require.True(t, nodeops.EqualTaints([]corev1.Taint{taint("a", "0", noSchedule), a}, []corev1.Taint{a}), "the last one counts")
}

func TestSetTaintsTakesTheLastOfARepetition(t *testing.T) {
	got, changed := nodeops.SetTaints([]corev1.Taint{taint("a", "2", noSchedule)},
		[]corev1.Taint{taint("a", "1", noSchedule), taint("a", "2", noSchedule)})
	require.False(t, changed)
	require.Equal(t, []corev1.Taint{taint("a", "2", noSchedule)}, got)
}

func TestParseTaint(t *testing.T) {
	set := func(x corev1.Taint) nodeops.TaintEdit { return nodeops.TaintEdit{Taint: x} }
	remove := func(x corev1.Taint) nodeops.TaintEdit { return nodeops.TaintEdit{Taint: x, Remove: true} }
	for text, want := range map[string]nodeops.TaintEdit{
		"key=value:NoSchedule":            set(taint("key", "value", noSchedule)),
		"key:NoExecute":                   set(taint("key", "", noExecute)),
		"key=:PreferNoSchedule":           set(taint("key", "", corev1.TaintEffectPreferNoSchedule)),
		"example.com/key=v-1_x:NoExecute": set(taint("example.com/key", "v-1_x", noExecute)),
		"key:NoSchedule-":                 remove(taint("key", "", noSchedule)),
		"example.com/key-":                remove(taint("example.com/key", "", "")),
	} {
		got, err := nodeops.ParseTaint(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "-", ":", "=", "=:", ":-", "a", "a=b", "a=b-", "a=b:NoSchedule-", "a:", "a:-", "a:noschedule", "a:NoSchedule:NoExecute",
		"a=b=c:NoSchedule", ":NoSchedule", "=b:NoSchedule", "a b:NoSchedule", "a/b/c:NoSchedule", "a=b c:NoSchedule", "a=b-:NoSchedule",
		"a--", "a:NoSchedule--", "\x00:NoSchedule", "a=\xff:NoSchedule",
	} {
		edit, err := nodeops.ParseTaint(text)
		var typed *nodeops.TaintError
		require.ErrorAs(t, err, &typed, text)
		require.Equal(t, text, typed.Text)
		require.NotEmpty(t, typed.Problem)
		require.Zero(t, edit)
	}
}

func TestParseTaintsRefusesContradictions(t *testing.T) {
	edits, err := nodeops.ParseTaints("a:NoSchedule", "a:NoExecute", "b-")
	require.NoError(t, err)
	require.Len(t, edits, 3)
	for _, texts := range [][]string{
		{"a:NoSchedule", "a=x:NoSchedule"}, {"a:NoSchedule", "a:NoSchedule-"}, {"a-", "a:NoSchedule"}, {"a:NoSchedule", "a-"}, {"a:NoSchedule", "b"},
	} {
		_, err := nodeops.ParseTaints(texts...)
		var typed *nodeops.TaintError
		require.ErrorAs(t, err, &typed, texts)
		require.Equal(t, texts[1], typed.Text)
	}
}

func TestTaintEditApplies(t *testing.T) {
	have := []corev1.Taint{taint("a", "1", noSchedule), taint("a", "1", noExecute), taint("b", "", noSchedule)}
	for text, want := range map[string][]corev1.Taint{
		"c:NoSchedule":  append(slices.Clone(have), taint("c", "", noSchedule)),
		"a:NoSchedule-": have[1:],
		"a-":            have[2:],
		"zzz-":          have,
	} {
		edit, err := nodeops.ParseTaint(text)
		require.NoError(t, err)
		got, changed := edit.Apply(have)
		require.Equal(t, want, got, text)
		require.Equal(t, len(want) != len(have), changed, text)
	}
	got, changed := nodeops.TaintEdit{}.Apply(have)
	require.False(t, changed)
	require.Equal(t, have, got)
}

func FuzzParseTaint(f *testing.F) {
	for _, s := range []string{"a=b:NoSchedule", "a:NoExecute", "a:NoSchedule-", "a-", "a=b", "", ":", "=", "-", "x.y/z=:PreferNoSchedule"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		edit, err := nodeops.ParseTaint(text)
		if err != nil {
			var typed *nodeops.TaintError
			require.ErrorAs(t, err, &typed)
			require.Zero(t, edit)
			return
		}
		again, err := nodeops.ParseTaint(edit.String())
		require.NoError(t, err)
		require.Equal(t, edit, again, "what is printed reads as the same")
		taints, _ := edit.Apply(nil)
		_, changed := edit.Apply(taints)
		require.False(t, changed)
	})
}
