// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// LastAppliedTemplateAnnotation is the annotation of a node that records the [Template] which
	// was applied to it last. Key and form are those of the reference system.
	LastAppliedTemplateAnnotation = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
	// LastAppliedCapacityAnnotation is the annotation of a node that records the virtual
	// capacity which was applied to it last. Key and form are those of the reference system.
	LastAppliedCapacityAnnotation = "node.machine.sapcloud.io/last-applied-virtual-capacity"
)

// BaseError says that the record of what was applied to a node cannot be read. As long as that
// is so, nobody knows which entries of the node are ours, and nothing may be removed.
type BaseError struct {
	// Annotation is the key under which the record stands.
	Annotation string
	// Err is what went wrong.
	Err error
}

// Error names the annotation and the cause.
func (e *BaseError) Error() string {
	return fmt.Sprintf("annotation %s cannot be read: %v", e.Annotation, e.Err)
}

// Unwrap returns the cause.
func (e *BaseError) Unwrap() error { return e.Err }

// templateRecord is the part of the recorded JSON that matters: that of a machine's node
// template, with its object metadata and its node spec.
type templateRecord struct {
	Metadata struct {
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Taints []corev1.Taint `json:"taints,omitempty"`
	} `json:"spec"`
}

// EncodeTemplate returns the text under which t is recorded on a node. It is the JSON of a
// node template of a machine, so that the reference system reads it as its own.
func EncodeTemplate(t Template) string {
	var record templateRecord
	record.Metadata.Labels = t.Labels
	record.Metadata.Annotations = t.Annotations
	record.Spec.Taints = t.Taints
	text, err := json.Marshal(record)
	if err != nil {
		// Strings, maps of strings and RFC 3339 times always encode.
		return `{"metadata":{},"spec":{}}`
	}
	return string(text)
}

// DecodeTemplate reads a text as [EncodeTemplate] or the reference system writes it. What a
// node template may contain beyond labels, annotations and taints is passed over. An empty or blank
// text is the zero Template. The error is a [*BaseError].
func DecodeTemplate(text string) (Template, error) {
	if strings.TrimSpace(text) == "" {
		return Template{}, nil
	}
	var record templateRecord
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return Template{}, &BaseError{Annotation: LastAppliedTemplateAnnotation, Err: err}
	}
	return Template{
		Labels:      record.Metadata.Labels,
		Annotations: record.Metadata.Annotations,
		Taints:      record.Spec.Taints,
	}, nil
}

// LastAppliedTemplate returns what was applied to node last, according to its annotation. If it
// has none, or node is nil, that is the zero Template. The error is a [*BaseError].
func LastAppliedTemplate(node *corev1.Node) (Template, error) {
	if node == nil {
		return Template{}, nil
	}
	return DecodeTemplate(node.Annotations[LastAppliedTemplateAnnotation])
}

// recordsTemplate reports whether the annotations record t already, in whatever words. Having no
// record is the same as having recorded that nothing was applied.
func recordsTemplate(annotations map[string]string, t Template) bool {
	text := annotations[LastAppliedTemplateAnnotation]
	if isTemplate(text, t) {
		return true
	}
	recorded, err := DecodeTemplate(text)
	return err == nil && maps.Equal(recorded.Labels, t.Labels) &&
		maps.Equal(recorded.Annotations, t.Annotations) && EqualTaints(recorded.Taints, t.Taints)
}
