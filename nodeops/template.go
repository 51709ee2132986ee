// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// lastAppliedTemplate is the annotation of the [Template] that was applied last. Key and form, the
// JSON of the node template of a machine, are those of MCM.
const lastAppliedTemplate = "node.machine.sapcloud.io/last-applied-anno-labels-taints"

// Template is the metadata and taints that a machine wants its Node to have. The zero Template wants
// nothing. Taints without a key or an effect, and annotations in which this package records what
// it applied, are ignored: see [Change.Ignored].
type Template struct {
	// Labels are the labels of the Node.
	Labels map[string]string
	// Annotations are the annotations of the Node.
	Annotations map[string]string
	// Taints are the taints of the Node. Of several with one key and effect the last one counts.
	// TimeAdded is not compared.
	Taints []corev1.Taint
}

// Change is what has to be written to a Node. The zero Change is no change.
type Change struct {
	// Node is a deep copy of the Node with the change. Nil means no change.
	Node *corev1.Node
	// Text is the change for people. Empty means no change.
	Text string
	// Ignored are the entries of the template that no Node can have, sorted.
	Ignored []string
}

// SyncTemplate returns the change after which node has desired. It compares three states:
//
//	desired, and missing or different on the Node    is set
//	applied before, not desired, and on the Node     is removed
//	everything else                                  stays: another writer owns it
//
// An annotation of the Node records what was applied. It is also written if the Node has desired
// already, so that these entries can be removed later. If the record cannot be read, SyncTemplate
// returns an error and no change. A nil node has no change.
//
// Store the Node of the change with an update of the Node. An update of the status subresource
// would store the record without the taints.
func SyncTemplate(node *corev1.Node, desired Template) (Change, error) {
	if node == nil {
		return Change{}, nil
	}
	desired, ignored := applicable(desired)
	text, base := node.Annotations[lastAppliedTemplate], desired
	recorded := isTemplate(text, desired)
	if !recorded {
		var err error
		if base, err = decodeTemplate(text); err != nil {
			return Change{}, fmt.Errorf("annotation %s cannot be read: %w", lastAppliedTemplate, err)
		}
		recorded = maps.Equal(base.Labels, desired.Labels) && maps.Equal(base.Annotations, desired.Annotations) &&
			equalTaints(base.Taints, desired.Taints)
		base, _ = applicable(base)
	}
	var e templateEdit
	e.setLabels, e.removeLabels = planKeys(node.Labels, base.Labels, desired.Labels)
	e.setAnnotations, e.removeAnnotations = planKeys(node.Annotations, base.Annotations, desired.Annotations)
	e.setTaints, e.removeTaints = planTaints(node.Spec.Taints, base.Taints, desired.Taints)
	if !recorded {
		e.record = encodeTemplate(desired)
	}
	if e.empty() {
		return Change{Ignored: ignored}, nil
	}
	return Change{Node: e.apply(node), Text: e.text(ignored), Ignored: ignored}, nil
}

// templateEdit is the difference between a Node and its template.
type templateEdit struct {
	setLabels, setAnnotations       map[string]string
	removeLabels, removeAnnotations []string
	setTaints, removeTaints         []corev1.Taint
	// record is the new value of the annotation. Empty means no change.
	record string
}

// empty reports whether there is no change.
func (e *templateEdit) empty() bool {
	return len(e.setLabels) == 0 && len(e.setAnnotations) == 0 && len(e.removeLabels) == 0 &&
		len(e.removeAnnotations) == 0 && len(e.setTaints) == 0 && len(e.removeTaints) == 0 && e.record == ""
}

// apply returns a deep copy of node with the edit.
func (e *templateEdit) apply(node *corev1.Node) *corev1.Node {
	node = node.DeepCopy()
	node.Labels = editKeys(node.Labels, e.setLabels, e.removeLabels)
	node.Annotations = editKeys(node.Annotations, e.setAnnotations, e.removeAnnotations)
	if e.record != "" {
		node.Annotations = setKey(node.Annotations, lastAppliedTemplate, e.record)
	}
	if len(e.removeTaints) > 0 {
		node.Spec.Taints, _ = removeTaints(node.Spec.Taints, func(x *corev1.Taint) bool { return indexOfTaint(e.removeTaints, x) >= 0 })
	}
	for _, t := range e.setTaints {
		node.Spec.Taints, _ = setTaint(node.Spec.Taints, t)
	}
	return node
}

// text returns the edit as text.
func (e *templateEdit) text(ignored []string) string {
	var parts []string
	add := func(what string, keys []string) {
		if len(keys) > 0 {
			parts = append(parts, what+" "+strings.Join(keys, ", "))
		}
	}
	add("set labels", sortedKeys(e.setLabels))
	add("remove labels", e.removeLabels)
	add("set annotations", sortedKeys(e.setAnnotations))
	add("remove annotations", e.removeAnnotations)
	add("set taints", taintNames(e.setTaints))
	add("remove taints", taintNames(e.removeTaints))
	if e.record != "" {
		parts = append(parts, "record what was applied")
	}
	add("ignore", ignored)
	return strings.Join(parts, "; ")
}

// planTaints returns the taints to set, in the order of desired, and those to remove, in the order of
// live.
func planTaints(live, base, desired []corev1.Taint) (set, remove []corev1.Taint) {
	for i := range desired {
		if !carriesTaint(live, &desired[i]) {
			set = append(set, desired[i])
		}
	}
	for i := range live {
		if indexOfTaint(base, &live[i]) >= 0 && indexOfTaint(desired, &live[i]) < 0 {
			remove = append(remove, live[i])
		}
	}
	return set, remove
}

// applicable returns the part of t that a Node can have, which shares memory with t, and the sorted
// names of the rest.
func applicable(t Template) (_ Template, ignored []string) {
	if !applicableTaints(t.Taints) {
		t.Taints = slices.DeleteFunc(distinctTaints(t.Taints), func(x corev1.Taint) bool {
			bad := x.Key == "" || x.Effect == ""
			if bad {
				ignored = append(ignored, fmt.Sprintf("taint %q", x.ToString()))
			}
			return bad
		})
	}
	var dropped []string
	t.Labels, dropped = without(t.Labels, "")
	for range dropped {
		ignored = append(ignored, `label ""`)
	}
	t.Annotations, dropped = without(t.Annotations, "", lastAppliedTemplate, lastAppliedCapacity)
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

// taintNames returns the taints as text.
func taintNames(taints []corev1.Taint) []string {
	names := make([]string, len(taints))
	for i := range taints {
		names[i] = taints[i].ToString()
	}
	return names
}

// templateRecord is the recorded JSON: object metadata and node spec of a node template.
type templateRecord struct {
	Metadata struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Taints []corev1.Taint `json:"taints,omitempty"`
	} `json:"spec"`
}

// encodeTemplate returns the value of the annotation for a template.
func encodeTemplate(t Template) string {
	var record templateRecord
	record.Metadata.Labels = t.Labels
	record.Metadata.Annotations = t.Annotations
	record.Spec.Taints = t.Taints
	text, err := json.Marshal(record)
	if err != nil { // strings, maps of strings and RFC 3339 times always encode
		return `{"metadata":{},"spec":{}}`
	}
	return string(text)
}

// decodeTemplate reads a value of the annotation, as encodeTemplate and MCM write it. It ignores
// other fields of a node template. A blank value is the zero Template.
func decodeTemplate(text string) (Template, error) {
	if strings.TrimSpace(text) == "" {
		return Template{}, nil
	}
	var record templateRecord
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return Template{}, err
	}
	return Template{Labels: record.Metadata.Labels, Annotations: record.Metadata.Annotations, Taints: record.Spec.Taints}, nil
}
