// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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

// actionJSON is an action as JSON. From and To are set if the size of a set changes.
type actionJSON struct {
	Type    string   `json:"type"`
	Subject string   `json:"subject"`
	From    *int32   `json:"from,omitempty"`
	To      *int32   `json:"to,omitempty"`
	Changes []string `json:"changes,omitempty"`
}

// MarshalJSON returns the decision as JSON. An action has a type, such as "Update", the subject
// that it writes, such as "machineset/a", its changes, and the old and new size of a set. Objects
// are named, not included. The page docs/rollouts.md has the fields.
func (d Decision) MarshalJSON() ([]byte, error) {
	out := decisionJSON{
		Reason: d.Reason, Message: d.Message, Status: d.Status, WriteStatus: d.WriteStatus, Events: d.Events, Holds: d.Holds, NextCheck: d.NextCheck,
	}
	for _, t := range d.Targets {
		target := targetJSON{Name: t.Name, UID: t.UID, From: t.From, To: t.To, Message: t.Message}
		for _, v := range t.Victims {
			target.Victims = append(target.Victims, victimJSON{v.Machine.Name, v.By})
		}
		out.Targets = append(out.Targets, target)
	}
	for _, a := range d.Actions {
		out.Actions = append(out.Actions, actionToJSON(a))
	}
	return json.Marshal(out)
}

func actionToJSON(a machinist.Action) actionJSON {
	switch a := a.(type) {
	case machinist.Update:
		out := actionJSON{Type: "Update", Subject: subjectOf(a.Object), Changes: a.Changes}
		before, _ := a.Before.(*v1alpha1.MachineSet)
		if next, ok := a.Object.(*v1alpha1.MachineSet); ok && before != nil && before.Spec.Replicas != next.Spec.Replicas {
			out.From, out.To = &before.Spec.Replicas, &next.Spec.Replicas
		}
		return out
	case machinist.Create:
		out := actionJSON{Type: "Create", Subject: subjectOf(a.Object), Changes: []string{a.Message}}
		if s, ok := a.Object.(*v1alpha1.MachineSet); ok {
			out.To = &s.Spec.Replicas
		}
		return out
	case machinist.Delete:
		return actionJSON{Type: "Delete", Subject: subjectOf(a.Object), Changes: []string{a.Message}}
	case machinist.Refresh:
		return actionJSON{Type: "Refresh", Subject: strings.TrimSuffix(strings.ToLower(a.Kind)+"/"+a.Name, "/")}
	}
	return actionJSON{}
}

// subjectOf returns the kind and the name of an object.
func subjectOf(o machinist.Object) string {
	switch o := o.(type) {
	case *v1alpha1.MachineDeployment:
		return "machinedeployment/" + o.Name
	case *v1alpha1.MachineSet:
		return "machineset/" + o.Name
	case *v1alpha1.Machine:
		return "machine/" + o.Name
	case *corev1.Node:
		return "node/" + o.Name
	}
	return ""
}
