// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// SetTaint returns a copy of taints with t, and whether it differs from taints. Key and effect
// identify a taint, as for the API server: a taint with the key and effect of t and another value
// is replaced. Otherwise t is appended.
//
// TimeAdded is not compared, and a taint that is present keeps its time. A taint without a key or
// an effect is not set.
func SetTaint(taints []corev1.Taint, t corev1.Taint) (_ []corev1.Taint, changed bool) {
	out := cloneTaints(taints, 1)
	return setTaint(out, t)
}

// RemoveTaint returns a copy of taints without those with the key and effect of t, and whether
// there was one. Value and TimeAdded of t are ignored.
func RemoveTaint(taints []corev1.Taint, t corev1.Taint) (_ []corev1.Taint, changed bool) {
	return removeTaints(taints, func(x *corev1.Taint) bool { return sameTaintIdentity(x, &t) })
}

// RemoveTaintKey returns a copy of taints without those with the key and any effect, and whether
// there was one.
func RemoveTaintKey(taints []corev1.Taint, key string) (_ []corev1.Taint, changed bool) {
	return removeTaints(taints, func(x *corev1.Taint) bool { return x.Key == key })
}

// HasTaint reports whether taints contains one with the key and effect of t.
func HasTaint(taints []corev1.Taint, t corev1.Taint) bool {
	return indexOfTaint(taints, &t) >= 0
}

// equalTaints reports whether a and b have the same values for the same keys and effects. Order
// and TimeAdded are ignored. Of several with one key and effect the last one counts.
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

// setTaint is SetTaint without a copy.
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
	// The API server accepts one taint per key and effect.
	rest := slices.DeleteFunc(taints[i+1:], func(x corev1.Taint) bool { return sameTaintIdentity(&x, &t) })
	return taints[:i+1+len(rest)], true
}

// removeTaints returns a deep copy of the taints for which drop is false. It returns nil if it
// removed all of them.
func removeTaints(taints []corev1.Taint, drop func(*corev1.Taint) bool) ([]corev1.Taint, bool) {
	out := slices.DeleteFunc(cloneTaints(taints, 0), func(x corev1.Taint) bool { return drop(&x) })
	changed := len(out) != len(taints)
	if changed && len(out) == 0 {
		return nil, true
	}
	return slices.Clip(out), changed
}

// distinctTaints returns one taint per key and effect: the last one, at the index of the first.
// The result shares TimeAdded with taints.
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

// cloneTaints returns a deep copy with spare capacity, or nil if taints is nil.
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

// carriesTaint reports whether taints has t with its value only.
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
