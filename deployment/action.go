// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// An Action is one thing to do now. The types are [CreateSet], [UpdateSet],
// [Scale], [DeleteSet], [AddFinalizer], [RemoveFinalizer] and [Annotate]; an
// executor that meets another one has to fail. Each is safe to lose and, with
// its precondition, safe to repeat.
//
// A write that fails because its precondition no longer holds is not an error:
// the next decision looks again.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	// Event returns what to report on the deployment once the action has
	// succeeded, nil for nothing.
	Event() *machine.Event
	isAction()
}

const (
	eventNormal  = "Normal"
	eventWarning = "Warning"

	// EventScalingMachineSet is the reason of events about the size of a set.
	EventScalingMachineSet = "ScalingMachineSet"
	// EventSelectingAll is the reason of the event about an empty selector.
	EventSelectingAll = "SelectingAll"
)

// CreateSet creates the set for a new template. If its name is taken, decide
// again with the set that has the name as [Observation.NameTakenBy]; on any
// other failure store and report what [CreateFailed] returns.
type CreateSet struct {
	// Set to create: complete, and owned by the receiver of the decision.
	Set *v1alpha1.MachineSet
	// Message says why it gets its size.
	Message string
}

// Scale changes the size of a set and writes the annotations that say what it
// was sized for, in one update. It applies only to the set of this UID while it
// has From replicas and, if ResourceVersion is not empty, is unchanged. From
// and To may be equal, if only the annotations are to be written.
type Scale struct {
	// Name, UID and ResourceVersion identify the set as it was observed.
	Name            string
	UID             types.UID
	ResourceVersion string
	// From is the size it has, To the one it gets.
	From, To int32
	// Annotations to add or overwrite.
	Annotations map[string]string
	// Message is the inequality behind it.
	Message string
}

// UpdateSet writes what the new set takes over from its deployment without a
// roll-out. Set is a complete edited copy, resource version included, owned by
// the receiver of the decision.
type UpdateSet struct {
	// Set to write.
	Set *v1alpha1.MachineSet
	// Message says what differs.
	Message string
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

// AddFinalizer adds a finalizer to the deployment. Nothing else is decided
// before it is there.
type AddFinalizer struct {
	// Finalizer to add.
	Finalizer string
}

// RemoveFinalizer removes a finalizer from the deployment, which is then gone.
type RemoveFinalizer struct {
	// Finalizer to remove.
	Finalizer string
}

// Annotate adds or overwrites annotations of the deployment.
type Annotate struct {
	// Annotations to add or overwrite.
	Annotations map[string]string
}

func (CreateSet) isAction()       {}
func (Scale) isAction()           {}
func (UpdateSet) isAction()       {}
func (DeleteSet) isAction()       {}
func (AddFinalizer) isAction()    {}
func (RemoveFinalizer) isAction() {}
func (Annotate) isAction()        {}

// String returns the action in one line.
func (a CreateSet) String() string {
	if a.Set == nil {
		return "create set"
	}
	return fmt.Sprintf("create %s with %d: %s", a.Set.Name, a.Set.Spec.Replicas, a.Message)
}

// String returns the action in one line.
func (a Scale) String() string {
	if a.From == a.To {
		return fmt.Sprintf("keep %s at %d: %s", a.Name, a.To, a.Message)
	}
	return fmt.Sprintf("scale %s from %d to %d: %s", a.Name, a.From, a.To, a.Message)
}

// String returns the action in one line.
func (a UpdateSet) String() string {
	if a.Set == nil {
		return "update set"
	}
	return fmt.Sprintf("update %s: %s", a.Set.Name, a.Message)
}

// String returns the action in one line.
func (a DeleteSet) String() string { return fmt.Sprintf("delete %s: %s", a.Name, a.Message) }

// String returns the action in one line.
func (a AddFinalizer) String() string { return "add finalizer " + a.Finalizer }

// String returns the action in one line.
func (a RemoveFinalizer) String() string { return "remove finalizer " + a.Finalizer }

// String returns the action in one line.
func (a Annotate) String() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(a.Annotations)) {
		parts = append(parts, k+"="+a.Annotations[k])
	}
	return "annotate deployment: " + strings.Join(parts, ", ")
}

// Event reports the size of the new set, unless it is empty.
func (a CreateSet) Event() *machine.Event {
	if a.Set == nil || a.Set.Spec.Replicas <= 0 {
		return nil
	}
	return scaled("up", a.Set.Name, a.Set.Spec.Replicas)
}

// Event reports the new size of the set, if it changes.
func (a Scale) Event() *machine.Event {
	switch {
	case a.To > a.From:
		return scaled("up", a.Name, a.To)
	case a.To < a.From:
		return scaled("down", a.Name, a.To)
	default:
		return nil
	}
}

func scaled(direction, set string, to int32) *machine.Event {
	return &machine.Event{Type: eventNormal, Reason: EventScalingMachineSet, Message: fmt.Sprintf("Scaled %s machine set %s to %d", direction, set, to)}
}

// Event returns nil.
func (UpdateSet) Event() *machine.Event { return nil }

// Event returns nil.
func (DeleteSet) Event() *machine.Event { return nil }

// Event returns nil.
func (AddFinalizer) Event() *machine.Event { return nil }

// Event returns nil.
func (RemoveFinalizer) Event() *machine.Event { return nil }

// Event returns nil.
func (Annotate) Event() *machine.Event { return nil }
