// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
)

// decisionJSON is a [Decision] as JSON. It names objects and does not contain them.
type decisionJSON struct {
	Action    *actionJSON      `json:"action,omitempty"`
	Reason    machinist.Reason `json:"reason,omitempty"`
	Message   string           `json:"message,omitempty"`
	Holds     []machinist.Hold `json:"holds,omitempty"`
	NextCheck time.Time        `json:"nextCheck,omitzero"`
}

// actionJSON is an action as JSON. Text is its String. An action about the VM has no subject.
type actionJSON struct {
	Type    string `json:"type"`
	Subject string `json:"subject,omitempty"`
	Text    string `json:"text"`
}

// MarshalJSON returns the decision as JSON. The action has a type, such as "DrainNode", the subject
// that it writes or reads, such as "node/a", and its text for people. The page docs/machine.md has
// the fields.
func (d Decision) MarshalJSON() ([]byte, error) {
	out := decisionJSON{Reason: d.Reason, Message: d.Message, Holds: d.Holds, NextCheck: d.NextCheck}
	if d.Action != nil {
		out.Action = &actionJSON{Type: reflect.TypeOf(d.Action).Name(), Subject: actionSubject(d.Action), Text: d.Action.String()}
	}
	return json.Marshal(out)
}

// actionSubject returns the object that an action writes or reads. It is empty for a VM, and for an
// object without a name.
func actionSubject(a machinist.Action) string {
	switch a := a.(type) {
	case machinist.Update:
		return subjectOf(a.Object)
	case machinist.Delete:
		return subjectOf(a.Object)
	case machinist.Refresh:
		return subject(a.Kind, a.Name)
	case DrainNode:
		return subject("Node", a.NodeName)
	default:
		return ""
	}
}

// subjectOf returns the kind and the name of an object, and the namespace of a Secret. It is empty
// for nil.
func subjectOf(o machinist.Object) string {
	if o == nil || reflect.ValueOf(o).IsNil() {
		return ""
	}
	name := o.GetName()
	if _, secret := o.(*corev1.Secret); secret {
		name = o.GetNamespace() + "/" + name
	}
	return subject(kindOf(o), name)
}

// subject returns a kind in lower case with a name, or "" without a name.
func subject(kind, name string) string {
	if name == "" {
		return ""
	}
	return strings.ToLower(kind) + "/" + name
}
