// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// decisionJSON is a [Decision] as JSON. It names objects and does not contain them.
type decisionJSON struct {
	Reason      machinist.Reason                 `json:"reason,omitempty"`
	Message     string                           `json:"message,omitempty"`
	Targets     []targetJSON                     `json:"targets,omitempty"`
	Actions     []actionJSON                     `json:"actions,omitempty"`
	Status      v1alpha1.MachineDeploymentStatus `json:"status,omitzero"`
	WriteStatus bool                             `json:"writeStatus,omitempty"`
	Events      []machinist.Event                `json:"events,omitempty"`
	Holds       []machinist.Hold                 `json:"holds,omitempty"`
	NextCheck   time.Time                        `json:"nextCheck,omitzero"`
}

// targetJSON is a [Target] as JSON.
type targetJSON struct {
	Name    string       `json:"name"`
	UID     types.UID    `json:"uid,omitempty"`
	From    int32        `json:"from"`
	To      int32        `json:"to"`
	Victims []victimJSON `json:"victims,omitempty"`
	Message string       `json:"message,omitempty"`
}

// victimJSON is a machineset.Victim as JSON.
type victimJSON struct {
	Machine string `json:"machine"`
	By      string `json:"by,omitempty"`
}

// actionJSON is an [Action] as JSON. From and To are set if the size of a set changes.
type actionJSON struct {
	Type    string   `json:"type"`
	Subject string   `json:"subject"`
	From    *int32   `json:"from,omitempty"`
	To      *int32   `json:"to,omitempty"`
	Changes []string `json:"changes,omitempty"`
}

// MarshalJSON returns the decision as JSON. An action has a type, such as "WriteSet", the subject
// that it writes, such as "machineset/a", its changes, and the old and new size of a set. Objects
// are named, not included. The page docs/rollouts.md has the fields.
func (d Decision) MarshalJSON() ([]byte, error) {
	out := decisionJSON{
		Reason: d.Reason, Message: d.Message, Status: d.Status, WriteStatus: d.WriteStatus, Events: d.Events, Holds: d.Holds, NextCheck: d.NextCheck,
	}
	for _, t := range d.Targets {
		target := targetJSON{Name: t.Name, UID: t.UID, From: t.From, To: t.To, Message: t.Message}
		for _, v := range t.Victims {
			target.Victims = append(target.Victims, victimJSON{nameOf(v.Machine), v.By})
		}
		out.Targets = append(out.Targets, target)
	}
	for _, a := range d.Actions {
		out.Actions = append(out.Actions, actionToJSON(a))
	}
	return json.Marshal(out)
}

func actionToJSON(a Action) actionJSON {
	switch a := a.(type) {
	case WriteDeployment:
		return actionJSON{Type: "WriteDeployment", Subject: "machinedeployment/" + nameOf(a.Deployment), Changes: a.Changes}
	case WriteNode:
		return actionJSON{Type: "WriteNode", Subject: "node/" + nameOf(a.Node), Changes: a.Changes}
	case WriteMachine:
		return actionJSON{Type: "WriteMachine", Subject: "machine/" + nameOf(a.Machine), Changes: a.Changes}
	case CreateSet:
		out := actionJSON{Type: "CreateSet", Subject: "machineset/" + nameOf(a.Set), Changes: []string{a.Message}}
		if a.Set != nil {
			out.To = &a.Set.Spec.Replicas
		}
		return out
	case WriteSet:
		out := actionJSON{Type: "WriteSet", Subject: "machineset/" + nameOf(a.Set), Changes: a.Changes}
		if a.Set != nil && a.Set.Spec.Replicas != a.From {
			out.From, out.To = &a.From, &a.Set.Spec.Replicas
		}
		return out
	case DeleteSet:
		return actionJSON{Type: "DeleteSet", Subject: "machineset/" + a.Name, Changes: []string{a.Message}}
	case Look:
		return actionJSON{Type: "Look", Subject: strings.ToLower(a.Kind) + "/" + a.Name}
	}
	return actionJSON{}
}
