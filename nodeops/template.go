// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Template is what a machine asks its node to carry. The zero Template asks for nothing.
//
// Two sorts of entries are not carried over: the annotations in which this package remembers
// what it applied, and taints without a key or an effect. [TemplateChange.Ignored] names them.
type Template struct {
	// Labels the node must have.
	Labels map[string]string
	// Annotations the node must have.
	Annotations map[string]string
	// Taints the node must have, as a set by key and effect. Of several with the same key and
	// effect the last one counts. TimeAdded does not matter for the comparison.
	Taints []corev1.Taint
}

// TemplateChange is what is to be done to a node so that it carries a template. The zero
// TemplateChange is nothing. All slices are sorted or in the order of the template and the
// node: the same input gives the same change.
type TemplateChange struct {
	// SetLabels and SetAnnotations are the entries that are missing or different.
	SetLabels, SetAnnotations map[string]string
	// RemoveLabels and RemoveAnnotations are the keys that were applied before, are on the node, and
	// are wanted no longer.
	RemoveLabels, RemoveAnnotations []string
	// SetTaints are the taints that are missing or have another value.
	SetTaints []corev1.Taint
	// RemoveTaints are the taints that were applied before, are on the node, and are wanted no longer.
	RemoveTaints []corev1.Taint
	// Base is the new text of [LastAppliedTemplateAnnotation], or empty if the present one
	// still says the same.
	Base string
	// Ignored names the entries of the template that cannot be carried over.
	Ignored []string
}

// Empty reports whether nothing is to be done. Ignored entries do not count.
func (c TemplateChange) Empty() bool {
	return len(c.SetLabels) == 0 && len(c.SetAnnotations) == 0 && len(c.RemoveLabels) == 0 &&
		len(c.RemoveAnnotations) == 0 && len(c.SetTaints) == 0 && len(c.RemoveTaints) == 0 && c.Base == ""
}

// String lists the change for people. The text is stable for the same change, but its form is not.
func (c TemplateChange) String() string {
	var parts []string
	add := func(what string, keys []string) {
		if len(keys) > 0 {
			parts = append(parts, what+" "+strings.Join(keys, ", "))
		}
	}
	add("set labels", sortedKeys(c.SetLabels))
	add("remove labels", c.RemoveLabels)
	add("set annotations", sortedKeys(c.SetAnnotations))
	add("remove annotations", c.RemoveAnnotations)
	add("set taints", taintNames(c.SetTaints))
	add("remove taints", taintNames(c.RemoveTaints))
	if c.Base != "" {
		parts = append(parts, "record what was applied")
	}
	add("ignore", c.Ignored)
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// SyncTemplate returns a deep copy of node that carries desired, with what had to change for
// it. What was applied before is read from the node ([LastAppliedTemplate]); if that cannot be read,
// the error is a [*BaseError] and the copy is unchanged. A nil node gives nil.
//
// The new node is to be stored by an update of the node itself. An update of the status
// subresource would keep the annotations and drop the taints, and the record would be wrong
// for ever; that is why capacity has a function, a record and a write of its own: [SyncCapacity].
func SyncTemplate(node *corev1.Node, desired Template) (*corev1.Node, TemplateChange, error) {
	base, err := LastAppliedTemplate(node)
	if err != nil {
		return node.DeepCopy(), TemplateChange{}, err
	}
	out, change := MergeTemplate(node, base, desired)
	return out, change, nil
}

// MergeTemplate is [SyncTemplate] with base given: what was applied before, and is therefore ours to
// remove. With a zero base nothing is removed; that is the way out when the record on
// the node cannot be read.
func MergeTemplate(node *corev1.Node, base, desired Template) (*corev1.Node, TemplateChange) {
	if node == nil {
		return nil, TemplateChange{}
	}
	change := PlanTemplate(node, base, desired)
	out := node.DeepCopy()
	change.apply(out)
	return out, change
}

// PlanTemplate returns what has to change on node so that it carries desired, by a comparison
// of three states:
//
//	in desired, missing or different on the node    set
//	in base, not in desired, on the node            remove
//	anything else                                   leave alone: it is somebody else's
//
// The record of what was applied is renewed whenever it does not say what desired says, also
// if the node itself already matches: otherwise an entry that was there from the start would
// never be removed later. It copies nothing of the node, and so costs little when nothing is to be
// done. A nil node needs nothing.
func PlanTemplate(node *corev1.Node, base, desired Template) TemplateChange {
	if node == nil {
		return TemplateChange{}
	}
	desired, ignored := applicable(desired)
	base, _ = applicable(base)
	c := TemplateChange{Ignored: ignored}
	c.SetLabels, c.RemoveLabels = planKeys(node.Labels, base.Labels, desired.Labels)
	c.SetAnnotations, c.RemoveAnnotations = planKeys(node.Annotations, base.Annotations, desired.Annotations)
	c.SetTaints, c.RemoveTaints = planTaints(node.Spec.Taints, base.Taints, desired.Taints)
	if !recordsTemplate(node.Annotations, desired) {
		c.Base = EncodeTemplate(desired)
	}
	return c
}

// apply carries the change out on node, which it may change.
func (c TemplateChange) apply(node *corev1.Node) {
	node.Labels = editKeys(node.Labels, c.SetLabels, c.RemoveLabels)
	node.Annotations = editKeys(node.Annotations, c.SetAnnotations, c.RemoveAnnotations)
	if c.Base != "" {
		node.Annotations, _ = setKey(node.Annotations, LastAppliedTemplateAnnotation, c.Base)
	}
	if len(c.RemoveTaints) > 0 {
		node.Spec.Taints, _ = RemoveTaints(node.Spec.Taints, c.RemoveTaints)
	}
	if len(c.SetTaints) > 0 {
		node.Spec.Taints, _ = SetTaints(node.Spec.Taints, c.SetTaints)
	}
}

// planKeys compares three maps and returns what to set, and the sorted keys to remove. Both
// are nil if there is nothing to do.
func planKeys(live, base, desired map[string]string) (set map[string]string, remove []string) {
	for key, value := range desired {
		if have, ok := live[key]; ok && have == value {
			continue
		}
		if set == nil {
			set = make(map[string]string)
		}
		set[key] = value
	}
	for key := range base {
		_, wanted := desired[key]
		if _, there := live[key]; there && !wanted {
			remove = append(remove, key)
		}
	}
	slices.Sort(remove)
	return set, remove
}

// planTaints compares three sets of taints. The results are deep copies, in the order of
// desired and of live.
func planTaints(live, base, desired []corev1.Taint) (set, remove []corev1.Taint) {
	for i := range desired {
		if !carriesTaint(live, &desired[i]) {
			set = append(set, *desired[i].DeepCopy())
		}
	}
	for i := range live {
		if indexOfTaint(base, &live[i]) >= 0 && indexOfTaint(desired, &live[i]) < 0 {
			remove = append(remove, *live[i].DeepCopy())
		}
	}
	return set, remove
}

// editKeys returns m without the keys of remove and with the entries of set. It leaves m
// alone, and returns it if there is nothing to do.
func editKeys(m, set map[string]string, remove []string) map[string]string {
	if len(remove) > 0 {
		m, _ = removeKeys(m, remove)
	}
	if len(set) > 0 {
		m, _ = setKeys(m, set)
	}
	return m
}

// applicable returns the part of t that can be applied to a node, sharing memory with t, and
// the sorted names of the rest.
func applicable(t Template) (_ Template, ignored []string) {
	if !applicableTaints(t.Taints) {
		t.Taints = slices.DeleteFunc(distinctTaints(t.Taints), func(x corev1.Taint) bool {
			bad := x.Key == "" || x.Effect == ""
			if bad {
				ignored = append(ignored, fmt.Sprintf("taint %q", TaintEdit{Taint: x}))
			}
			return bad
		})
	}
	var dropped []string
	t.Labels, dropped = without(t.Labels, "")
	for range dropped {
		ignored = append(ignored, `label ""`)
	}
	t.Annotations, dropped = without(t.Annotations, "", LastAppliedTemplateAnnotation, LastAppliedCapacityAnnotation)
	for _, key := range dropped {
		ignored = append(ignored, fmt.Sprintf("annotation %q", key))
	}
	slices.Sort(ignored)
	return t, ignored
}

// applicableTaints reports whether all taints can be applied as they are.
func applicableTaints(taints []corev1.Taint) bool {
	for i := range taints {
		if taints[i].Key == "" || taints[i].Effect == "" || indexOfTaint(taints, &taints[i]) != i {
			return false
		}
	}
	return true
}

// without returns m itself if it has none of the keys, or a copy without them, and the keys
// that it had.
func without(m map[string]string, keys ...string) (_ map[string]string, dropped []string) {
	for _, key := range keys {
		if _, ok := m[key]; !ok {
			continue
		}
		if dropped == nil {
			m = maps.Clone(m)
		}
		delete(m, key)
		dropped = append(dropped, key)
	}
	return m, dropped
}

// sortedKeys returns the keys of m in order.
func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// taintNames returns the taints as text.
func taintNames(taints []corev1.Taint) []string {
	names := make([]string, len(taints))
	for i := range taints {
		names[i] = TaintEdit{Taint: taints[i]}.String()
	}
	return names
}
