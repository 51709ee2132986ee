// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// record compares the recorded JSON with what is desired without decoding it, because nearly every
// call for every Node finds no difference. A text that differs in form has to be decoded.
type record struct{ rest string }

// isTemplate reports whether text is the JSON of t, whose taints are distinct.
func isTemplate(text string, t Template) bool {
	r := record{text}
	return r.is(`{"metadata":{`) &&
		(len(t.Labels) == 0 || r.is(`"labels":`) && r.isMap(t.Labels)) &&
		(len(t.Labels) == 0 || len(t.Annotations) == 0 || r.is(`,`)) &&
		(len(t.Annotations) == 0 || r.is(`"annotations":`) && r.isMap(t.Annotations)) &&
		r.is(`},"spec":{`) &&
		(len(t.Taints) == 0 || r.is(`"taints":[`) && r.isTaints(t.Taints) && r.is(`]`)) &&
		r.is(`}}`) && r.rest == ""
}

// isCapacity reports whether text is the JSON of capacity.
func isCapacity(text string, capacity corev1.ResourceList) bool {
	r := record{text}
	return r.entries(len(capacity), func(name, amount string) bool {
		want, ok := capacity[corev1.ResourceName(name)]
		if !ok {
			return false
		}
		var room [32]byte
		number, suffix := want.CanonicalizeBytes(room[:0])
		return len(amount) == len(number)+len(suffix) && amount[:len(number)] == string(number) && amount[len(number):] == string(suffix)
	}) && r.rest == ""
}

// is reads s if the rest begins with it, and reports whether it does.
func (r *record) is(s string) bool {
	rest, ok := strings.CutPrefix(r.rest, s)
	r.rest = rest
	return ok
}

// quoted reads a quoted text of printable ASCII without escapes.
func (r *record) quoted() (string, bool) {
	if !r.is(`"`) {
		return "", false
	}
	for i := range len(r.rest) {
		switch c := r.rest[i]; {
		case c == '"':
			s := r.rest[:i]
			r.rest = r.rest[i+1:]
			return s, true
		case c < ' ' || c > '~' || c == '\\':
			return "", false
		}
	}
	return "", false
}

// entries reads an object with n entries in the order of their keys, and reports whether all of
// them match.
func (r *record) entries(n int, matches func(key, value string) bool) bool {
	if !r.is(`{`) {
		return false
	}
	last := ""
	for i := range n {
		key, ok := "", i == 0 || r.is(`,`)
		if ok {
			key, ok = r.quoted()
		}
		if !ok || i > 0 && key <= last || !r.is(`:`) {
			return false
		}
		value, ok := r.quoted()
		if !ok || !matches(key, value) {
			return false
		}
		last = key
	}
	return r.is(`}`)
}

// isMap reads m, and reports whether the rest began with it.
func (r *record) isMap(m map[string]string) bool {
	return r.entries(len(m), func(key, value string) bool {
		want, ok := m[key]
		return ok && want == value
	})
}

// isTaints reads taints in their order and without times, and reports whether the rest began with
// them.
func (r *record) isTaints(taints []corev1.Taint) bool {
	field := func(name, want string) bool {
		if !r.is(name) {
			return false
		}
		have, ok := r.quoted()
		return ok && have == want
	}
	for i := range taints {
		t := &taints[i]
		if i > 0 && !r.is(`,`) || !field(`{"key":`, t.Key) || t.Value != "" && !field(`,"value":`, t.Value) ||
			!field(`,"effect":`, string(t.Effect)) || !r.is(`}`) {
			return false
		}
	}
	return true
}
