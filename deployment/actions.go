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

// An Action is one write to do now. The types are [WriteDeployment], [WriteNode],
// [WriteMachine], [CreateSet], [WriteSet], [DeleteSet] and [Look]; an executor
// that meets another one has to fail. No two actions of a decision write the
// same object. Each is safe to lose and, with its precondition, safe to repeat.
//
// A write that fails because its precondition no longer holds (a conflict) is not
// an error: the next decision looks again.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	// Event returns what to report on the deployment once the action has
	// succeeded, nil for nothing.
	Event() *machinist.Event
	isAction()
}

const (
	eventNormal  = "Normal"
	eventWarning = "Warning"
)

// WriteDeployment updates the deployment, its status apart: finalizers,
// annotations, and what a roll-back changes.
type WriteDeployment struct {
	// Deployment to write: a complete edited copy, resource version included,
	// owned by the receiver of the decision.
	Deployment *v1alpha1.MachineDeployment
	// Changes say what differs, and why.
	Changes []string
	// Report is the event, nil for none.
	Report *machinist.Event
}

// WriteNode patches a Node.
type WriteNode struct {
	// Before is the Node as it was observed, Node the edited copy. Both are to be
	// read only.
	Before, Node *corev1.Node
	// Changes say what differs, and why.
	Changes []string
}

// WriteMachine updates the metadata of a machine: its marks and its owner.
type WriteMachine struct {
	// Machine to write: a complete edited copy, resource version included, owned by
	// the receiver of the decision.
	Machine *v1alpha1.Machine
	// Changes say what differs, and why.
	Changes []string
}

// CreateSet creates the set for a new template. If its name is taken, decide
// again with the set that has the name as [Observation.NameTakenBy]; on any
// other failure store and report what [CreateFailed] returns.
type CreateSet struct {
	// Set to create: complete, and owned by the receiver of the decision.
	Set *v1alpha1.MachineSet
	// Message says why it gets its size.
	Message string
}

// WriteSet updates a set: its size, who goes, and what it takes over from its
// deployment, all in one.
type WriteSet struct {
	// Set to write: a complete edited copy, resource version included, owned by the
	// receiver of the decision.
	Set *v1alpha1.MachineSet
	// From is the size it has; the one it gets is in Set.
	From int32
	// Changes say what differs, and why.
	Changes []string
}

// DeleteSet deletes the set of this UID. If ResourceVersion is not empty the set
// has to be unchanged, since it was found to have no machines.
type DeleteSet struct {
	// Name, UID and ResourceVersion identify the set as it was observed.
	Name            string
	UID             types.UID
	ResourceVersion string
	// Message says why it goes.
	Message string
}

// Look asks for a live read of an object, past every cache, whose result is
// handed to machine.Expectations.
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

// Event reports the size of the new set, unless it is empty.
func (a CreateSet) Event() *machinist.Event { return scaled(a.Set, 0) }

// Event reports the new size of the set, if it changes.
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

// errNoNode is returned for a [WriteNode] that holds no Node.
var errNoNode = errors.New("no node to patch")

// Patch returns the JSON merge patch that turns the Node as it was observed into
// the edited one. It carries the UID and the resource version, so that it fails
// if the Node has changed in between.
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

// diff returns what a merge patch has to say about a map.
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
