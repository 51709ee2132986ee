// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// decisionJSON is a [Decision] as JSON. It names objects and does not contain them.
type decisionJSON struct {
	Reason    machinist.Reason  `json:"reason,omitempty"`
	Actions   []actionJSON      `json:"actions,omitempty"`
	Holds     []machinist.Hold  `json:"holds,omitempty"`
	Events    []machinist.Event `json:"events,omitempty"`
	NextCheck time.Time         `json:"nextCheck,omitzero"`
}

// actionJSON is an action as JSON. Text is its String. A Create has a count and no subject.
type actionJSON struct {
	Type    string           `json:"type"`
	Subject string           `json:"subject,omitempty"`
	UID     types.UID        `json:"uid,omitempty"`
	Count   int              `json:"count,omitempty"`
	Reason  machinist.Reason `json:"reason"`
	Text    string           `json:"text"`
}

// MarshalJSON returns the decision as JSON. An action has a type, such as "Delete", the subject
// that it writes or reads, such as "machine/a", its reason, and its text for people.
func (d Decision) MarshalJSON() ([]byte, error) {
	out := decisionJSON{Reason: d.Reason, Holds: d.Holds, Events: d.Events, NextCheck: d.NextCheck}
	for _, a := range d.Actions {
		out.Actions = append(out.Actions, actionToJSON(a))
	}
	return json.Marshal(out)
}

func actionToJSON(a machinist.Action) actionJSON {
	if a == nil {
		return actionJSON{}
	}
	out := actionJSON{Type: reflect.TypeOf(a).Name(), Reason: reasonOf(a), Text: a.String()}
	switch a := a.(type) {
	case machinist.Update:
		out.of(a.Object)
	case machinist.Delete:
		out.of(a.Object)
	case machinist.Create:
		out.Count = a.Count
	case machinist.Refresh:
		out.Subject = strings.TrimSuffix(machineSubject(a.Name), "/")
	}
	return out
}

// of sets the object that an action writes.
func (a *actionJSON) of(o machinist.Object) {
	switch o := o.(type) {
	case *v1alpha1.MachineSet:
		a.Subject, a.UID = subjectOf(o), o.UID
	case *v1alpha1.Machine:
		a.Subject, a.UID = machineSubject(o.Name), o.UID
	}
}
