// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
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
		out.Action = &actionJSON{Type: reflect.TypeOf(d.Action).Name(), Subject: subjectOf(d.Action), Text: d.Action.String()}
	}
	return json.Marshal(out)
}

// subjectOf returns the object that an action writes or reads. It is empty for a VM, a token, and
// an object without a name.
func subjectOf(a machinist.Action) string {
	switch a := a.(type) {
	case UpdateMachine:
		return named("machine", a.Machine)
	case UpdateStatus:
		return named("machine", a.Machine)
	case machinist.Refresh:
		return subject(strings.ToLower(a.Kind), a.Name)
	case UpdateNode:
		return named("node", a.Node)
	case UpdateNodeCapacity:
		return named("node", a.Node)
	case SetNodeCondition:
		return subject("node", a.NodeName)
	case DrainNode:
		return subject("node", a.NodeName)
	case machinist.Delete:
		switch o := a.Object.(type) {
		case *corev1.Node:
			return named("node", o)
		case *v1alpha1.Machine:
			return named("machine", o)
		}
		return ""
	case UpdateClass:
		return named("machineclass", a.Class)
	case UpdateSecret:
		if a.Secret == nil {
			return ""
		}
		return guardedSubject(a.Secret)
	default:
		return ""
	}
}

// named returns the subject of an object, or "" if o is nil.
func named[T any, O interface {
	*T
	GetName() string
}](kind string, o O) string {
	if o == nil {
		return ""
	}
	return subject(kind, o.GetName())
}

// subject returns a kind with a name, or "" without a name.
func subject(kind, name string) string {
	if name == "" {
		return ""
	}
	return kind + "/" + name
}
