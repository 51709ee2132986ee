// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
)

// decisionJSON is a [Decision] as JSON. It names objects and does not contain them.
type decisionJSON struct {
	Reason    machinist.Reason  `json:"reason,omitempty"`
	Actions   []actionJSON      `json:"actions,omitempty"`
	Holds     []machinist.Hold  `json:"holds,omitempty"`
	Events    []machinist.Event `json:"events,omitempty"`
	NextCheck time.Time         `json:"nextCheck,omitzero"`
}

// actionJSON is an [Action] as JSON. Text is its String. A Create has a count and no subject.
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

func actionToJSON(a Action) actionJSON {
	if a == nil {
		return actionJSON{}
	}
	out := actionJSON{Reason: a.reason(), Text: a.String()}
	switch a := a.(type) {
	case SetFinalizers:
		out.Type, out.Subject, out.UID = "SetFinalizers", "machineset/"+a.Name, a.UID
	case Sync:
		out.Type, out.Subject, out.UID = "Sync", machineSubject(a.Name), a.UID
	case List:
		out.Type, out.Subject = "List", "machineset/"+a.Name
	case Look:
		out.Type, out.Subject, out.UID = "Look", machineSubject(a.Name), a.UID
	case Delete:
		out.Type, out.Subject, out.UID = "Delete", machineSubject(a.Name), a.UID
	case Create:
		out.Type, out.Count = "Create", a.Count
	}
	return out
}
