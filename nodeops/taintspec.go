// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TaintEdit is one change to the taints of a node, as a person writes it on a command line.
// The zero TaintEdit changes nothing.
type TaintEdit struct {
	// Taint is what to set or to remove. A removal has no value. A removal without an effect is
	// for every taint with the key.
	Taint corev1.Taint
	// Remove makes the edit a removal.
	Remove bool
}

// TaintError says why a text is no taint.
type TaintError struct {
	// Text is what was to be parsed.
	Text string
	// Problem says in prose what is wrong with it. It is for people, and may change.
	Problem string
}

// Error returns the text together with the problem.
func (e *TaintError) Error() string { return fmt.Sprintf("taint %q: %s", e.Text, e.Problem) }

// ParseTaint reads one of
//
//	key=value:Effect    set the taint
//	key:Effect          set the taint with an empty value
//	key:Effect-         remove the taint
//	key-                remove the taints with this key, whatever their effect
//
// where Effect is NoSchedule, PreferNoSchedule or NoExecute. Key and value must be valid for
// the API server. A removal with a value is an error, because taints are told
// apart by key and effect, and the value would be ignored. Every error is a [*TaintError].
func ParseTaint(text string) (TaintEdit, error) {
	fail := func(format string, args ...any) (TaintEdit, error) {
		return TaintEdit{}, &TaintError{Text: text, Problem: fmt.Sprintf(format, args...)}
	}
	rest, remove := strings.CutSuffix(text, "-")
	subject, effect, hasEffect := strings.Cut(rest, ":")
	key, value, hasValue := strings.Cut(subject, "=")
	switch {
	case remove && hasValue:
		return fail("a removal names no value")
	case !remove && !hasEffect:
		return fail("the effect is missing")
	case hasEffect && !knownEffect(corev1.TaintEffect(effect)):
		return fail("unknown effect %q, want %s, %s or %s", effect,
			corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
	}
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return fail("key %q: %s", key, strings.Join(problems, "; "))
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return fail("value %q: %s", value, strings.Join(problems, "; "))
	}
	return TaintEdit{
		Taint:  corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)},
		Remove: remove,
	}, nil
}

// ParseTaints reads several taints, each as [ParseTaint] does. Two edits of the same key and
// effect contradict or repeat each other and are an error, as is a removal of a whole key
// next to another edit of that key.
func ParseTaints(texts ...string) ([]TaintEdit, error) {
	edits := make([]TaintEdit, 0, len(texts))
	for _, text := range texts {
		edit, err := ParseTaint(text)
		if err != nil {
			return nil, err
		}
		for i := range edits {
			if edits[i].overlaps(edit) {
				return nil, &TaintError{Text: text, Problem: fmt.Sprintf("the same taint as %q", edits[i])}
			}
		}
		edits = append(edits, edit)
	}
	return edits, nil
}

// Apply returns a copy of taints with the edit carried out, and whether that differs from
// what was given.
func (e TaintEdit) Apply(taints []corev1.Taint) (_ []corev1.Taint, changed bool) {
	switch {
	case !e.Remove:
		return SetTaint(taints, e.Taint)
	case e.Taint.Effect == "":
		return RemoveTaintKey(taints, e.Taint.Key)
	}
	return RemoveTaint(taints, e.Taint)
}

// String returns the edit in the form that [ParseTaint] reads.
func (e TaintEdit) String() string {
	var b strings.Builder
	b.WriteString(e.Taint.Key)
	if e.Taint.Value != "" && !e.Remove {
		b.WriteString("=" + e.Taint.Value)
	}
	if e.Taint.Effect != "" {
		b.WriteString(":" + string(e.Taint.Effect))
	}
	if e.Remove {
		b.WriteString("-")
	}
	return b.String()
}

// overlaps reports whether both edits touch the same taint.
func (e TaintEdit) overlaps(o TaintEdit) bool {
	return e.Taint.Key == o.Taint.Key &&
		(e.Taint.Effect == o.Taint.Effect || e.Taint.Effect == "" || o.Taint.Effect == "")
}

// knownEffect reports whether the API server accepts the effect.
func knownEffect(effect corev1.TaintEffect) bool {
	switch effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		return true
	}
	return false
}
