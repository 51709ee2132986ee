// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Action is one request: a [WriteDeployment], a [WriteNode], a [WriteMachine], a [CreateSet], a
// [WriteSet], a [DeleteSet] or a [Look]. The set of actions is closed. No two actions of a decision
// write the same object. An action may be lost, and it may be repeated because of its precondition.
//
// A conflict is not an error: the precondition no longer holds, and the next decision takes that
// into account.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	// Event returns the Event to report on the deployment once the action has succeeded. Nil means
	// none.
	Event() *machinist.Event
	isAction()
}

const (
	eventNormal  = "Normal"
	eventWarning = "Warning"
)

// WriteDeployment updates the metadata and the spec of the deployment: finalizers, annotations, and
// the changes of a rollback.
type WriteDeployment struct {
	// Deployment is the complete new object with the observed resource version. The caller may
	// modify it.
	Deployment *v1alpha1.MachineDeployment
	// Changes are what differs and why, for people.
	Changes []string
	// Report is the Event. Nil means none.
	Report *machinist.Event
}

// WriteNode patches a Node: see [WriteNode.Patch].
type WriteNode struct {
	// Before is the observed Node, and Node the new one. Do not modify them.
	Before, Node *corev1.Node
	// Changes are what differs and why, for people.
	Changes []string
}

// WriteMachine updates the labels, the annotations and the owner of a machine.
type WriteMachine struct {
	// Machine is the complete new object with the observed resource version. The caller may modify
	// it.
	Machine *v1alpha1.Machine
	// Changes are what differs and why, for people.
	Changes []string
}

// CreateSet creates the set for a new template. If the name of the set is taken, decide again with
// the existing set in [Observation.NameTakenBy]. After any other failure, store and report the
// result of [CreateFailed].
type CreateSet struct {
	// Set is the complete new object. The caller may modify it.
	Set *v1alpha1.MachineSet
	// Message is why it has this size.
	Message string
}

// WriteSet updates a set: its replicas, the machines that it deletes, and the fields that it copies
// from its deployment.
type WriteSet struct {
	// Set is the complete new object with the observed resource version. The caller may modify it.
	Set *v1alpha1.MachineSet
	// From is the observed number of replicas. The new one is in Set.
	From int32
	// Changes are what differs and why, for people.
	Changes []string
}

// DeleteSet deletes the set with this UID. A resource version that is not empty is a precondition:
// the set was found to be empty.
type DeleteSet struct {
	// Name, UID and ResourceVersion identify the set as it was observed.
	Name            string
	UID             types.UID
	ResourceVersion string
	// Message is why, for people.
	Message string
}

// Look reads an object from the API server, not from a cache. Give the result to
// [machine.Expectations.Looked].
type Look struct {
	// Kind is "MachineSet", "Machine" or "Node".
	Kind string
	// Name of the object.
	Name string
}

func (WriteDeployment) isAction() {}
func (WriteNode) isAction()       {}
func (WriteMachine) isAction()    {}
func (CreateSet) isAction()       {}
func (WriteSet) isAction()        {}
func (DeleteSet) isAction()       {}
func (Look) isAction()            {}

// String returns the action in one line.
func (a WriteDeployment) String() string {
	return "update deployment: " + strings.Join(a.Changes, "; ")
}

// String returns the action in one line.
func (a WriteNode) String() string {
	return fmt.Sprintf("update node %s: %s", nameOf(a.Node), strings.Join(a.Changes, "; "))
}

// String returns the action in one line.
func (a WriteMachine) String() string {
	return fmt.Sprintf("update machine %s: %s", nameOf(a.Machine), strings.Join(a.Changes, "; "))
}

// String returns the action in one line.
func (a CreateSet) String() string {
	if a.Set == nil {
		return "create set"
	}
	return fmt.Sprintf("create set %s with %s: %s", a.Set.Name, replicas(int64(a.Set.Spec.Replicas)), a.Message)
}

// String returns the action in one line.
func (a WriteSet) String() string {
	if a.Set == nil {
		return "update set"
	}
	why := strings.Join(a.Changes, "; ")
	if a.From == a.Set.Spec.Replicas {
		return fmt.Sprintf("update set %s: %s", a.Set.Name, why)
	}
	return fmt.Sprintf("scale set %s from %d to %d: %s", a.Set.Name, a.From, a.Set.Spec.Replicas, why)
}

// String returns the action in one line.
func (a DeleteSet) String() string { return fmt.Sprintf("delete set %s: %s", a.Name, a.Message) }

// String returns the action in one line.
func (a Look) String() string { return fmt.Sprintf("look for %s %s", strings.ToLower(a.Kind), a.Name) }

// Event returns the report.
func (a WriteDeployment) Event() *machinist.Event { return a.Report }

// Event returns nil.
func (WriteNode) Event() *machinist.Event { return nil }

// Event returns nil.
func (WriteMachine) Event() *machinist.Event { return nil }

// Event returns an Event with the replicas of the new set, or nil for 0 replicas.
func (a CreateSet) Event() *machinist.Event { return scaled(a.Set, 0) }

// Event returns an Event with the new replicas of the set, or nil if they do not change.
func (a WriteSet) Event() *machinist.Event { return scaled(a.Set, a.From) }

func scaled(s *v1alpha1.MachineSet, from int32) *machinist.Event {
	if s == nil || s.Spec.Replicas == from {
		return nil
	}
	direction := "up"
	if s.Spec.Replicas < from {
		direction = "down"
	}
	return &machinist.Event{Type: eventNormal, Reason: eventScaled, Message: fmt.Sprintf("Scaled %s machine set %s to %d", direction, s.Name, s.Spec.Replicas)}
}

// Event returns nil.
func (DeleteSet) Event() *machinist.Event { return nil }

// Event returns nil.
func (Look) Event() *machinist.Event { return nil }

// nameOf returns the name of an object that may be nil.
func nameOf[T interface {
	comparable
	GetName() string
}](object T) string {
	var none T
	if object == none {
		return ""
	}
	return object.GetName()
}

// errNoNode is the error of [WriteNode.Patch] without a Node.
var errNoNode = errors.New("no node to patch")

// Patch returns the JSON merge patch from the observed Node to the new one. The UID and the
// resource version are preconditions.
func (a WriteNode) Patch() ([]byte, error) {
	if a.Before == nil || a.Node == nil {
		return nil, errNoNode
	}
	metadata := map[string]any{
		"uid": a.Before.UID, "resourceVersion": a.Before.ResourceVersion,
		"labels": diff(a.Before.Labels, a.Node.Labels), "annotations": diff(a.Before.Annotations, a.Node.Annotations),
	}
	spec := map[string]any{}
	if !equality.Semantic.DeepEqual(a.Before.Spec.Taints, a.Node.Spec.Taints) {
		spec["taints"] = a.Node.Spec.Taints // null if none is left
	}
	if a.Before.Spec.Unschedulable != a.Node.Spec.Unschedulable {
		spec["unschedulable"] = a.Node.Spec.Unschedulable
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
	if err != nil {
		return nil, fmt.Errorf("encoding patch of node %s: %w", a.Before.Name, err)
	}
	return data, nil
}

// diff returns a JSON merge patch from one map to another.
func diff(before, after map[string]string) map[string]any {
	changed := map[string]any{}
	for k := range before {
		changed[k] = nil
	}
	for k, v := range after {
		if was, ok := before[k]; ok && was == v {
			delete(changed, k)
		} else {
			changed[k] = v
		}
	}
	return changed
}
