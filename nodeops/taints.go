// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// SetTaint returns a copy of taints in which t is present, and whether that differs from what
// was given. Taints are a set by key and effect, as for the API server: a taint with the key
// and effect of t and another value is replaced where it stands; otherwise t goes to the end.
//
// TimeAdded is not compared, and a taint which is there already keeps the time that it has, so
// that a fresh time does not turn every check into a write. A taint without a key or without
// an effect is no taint, and changes nothing.
func SetTaint(taints []corev1.Taint, t corev1.Taint) (_ []corev1.Taint, changed bool) {
	out := cloneTaints(taints, 1)
	return setTaint(out, t)
}

// RemoveTaint returns a copy of taints without those that have the key and the effect of t,
// and whether there was one. Value and TimeAdded of t do not matter.
func RemoveTaint(taints []corev1.Taint, t corev1.Taint) (_ []corev1.Taint, changed bool) {
	return removeTaints(taints, func(x *corev1.Taint) bool { return sameTaintIdentity(x, &t) })
}

// RemoveTaintKey returns a copy of taints without those that have the key, whatever their
// effect, and whether there was one.
func RemoveTaintKey(taints []corev1.Taint, key string) (_ []corev1.Taint, changed bool) {
	return removeTaints(taints, func(x *corev1.Taint) bool { return x.Key == key })
}

// HasTaint reports whether taints contains one with the key and the effect of t.
func HasTaint(taints []corev1.Taint, t corev1.Taint) bool {
	return indexOfTaint(taints, &t) >= 0
}

// equalTaints reports whether a and b are the same set: the same values under the same
// keys and effects. Order, TimeAdded and repetitions do not matter; of several with the same key and
// effect the last one counts.
func equalTaints(a, b []corev1.Taint) bool {
	a, b = distinctTaints(a), distinctTaints(b)
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		k := indexOfTaint(b, &a[i])
		if k < 0 || b[k].Value != a[i].Value {
			return false
		}
	}
	return true
}

// setTaint sets t in taints, which it owns and may change.
func setTaint(taints []corev1.Taint, t corev1.Taint) ([]corev1.Taint, bool) {
	if t.Key == "" || t.Effect == "" {
		return taints, false
	}
	i := indexOfTaint(taints, &t)
	switch {
	case i < 0:
		return append(taints, *t.DeepCopy()), true
	case carriesTaint(taints, &t):
		return taints, false
	}
	taints[i] = *t.DeepCopy()
	// The API server accepts no repetition; leave none with the old value.
	rest := slices.DeleteFunc(taints[i+1:], func(x corev1.Taint) bool { return sameTaintIdentity(&x, &t) })
	return taints[:i+1+len(rest)], true
}

// removeTaints returns a deep copy of those taints for which drop is false. What is empty
// after a removal is nil.
func removeTaints(taints []corev1.Taint, drop func(*corev1.Taint) bool) ([]corev1.Taint, bool) {
	out := slices.DeleteFunc(cloneTaints(taints, 0), func(x corev1.Taint) bool { return drop(&x) })
	changed := len(out) != len(taints)
	if changed && len(out) == 0 {
		return nil, true
	}
	return slices.Clip(out), changed
}

// distinctTaints returns taints with one entry per key and effect: the last one, where the
// first one stands. What it returns shares TimeAdded with taints and must not leave the package.
func distinctTaints(taints []corev1.Taint) []corev1.Taint {
	out := make([]corev1.Taint, 0, len(taints))
	for i := range taints {
		if k := indexOfTaint(out, &taints[i]); k >= 0 {
			out[k] = taints[i]
			continue
		}
		out = append(out, taints[i])
	}
	return out
}

// cloneTaints returns a deep copy with room for some more, or nil if taints is nil.
func cloneTaints(taints []corev1.Taint, room int) []corev1.Taint {
	if taints == nil {
		return nil
	}
	out := make([]corev1.Taint, len(taints), len(taints)+room)
	for i := range taints {
		taints[i].DeepCopyInto(&out[i])
	}
	return out
}

// indexOfTaint returns the index of the first taint with the key and effect of t, or -1.
func indexOfTaint(taints []corev1.Taint, t *corev1.Taint) int {
	for i := range taints {
		if sameTaintIdentity(&taints[i], t) {
			return i
		}
	}
	return -1
}

// carriesTaint reports whether taints has t with its value, and not with another one as well.
func carriesTaint(taints []corev1.Taint, t *corev1.Taint) bool {
	found := false
	for i := range taints {
		if !sameTaintIdentity(&taints[i], t) {
			continue
		}
		if taints[i].Value != t.Value {
			return false
		}
		found = true
	}
	return found
}

// sameTaintIdentity reports whether a and b have the same key and effect.
func sameTaintIdentity(a, b *corev1.Taint) bool {
	return a.Key == b.Key && a.Effect == b.Effect
}
