// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// An Action is an [AddFinalizer], a [RemoveFinalizer], a [Sync], a [Look], a
// [Delete] or a [Create]. The set is closed. Each is harmless if it is repeated
// or lost: the next decision is made from what is there.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	isAction()
}

// AddFinalizer puts this controller's finalizer on the set. It comes before
// every [Create].
type AddFinalizer struct {
	// Edit is the write.
	Edit FinalizersEdit
}

// RemoveFinalizer lets a deleted set go, all of whose machines are gone.
type RemoveFinalizer struct {
	// Edit is the write.
	Edit FinalizersEdit
}

// Sync brings fields of a machine in line with its set: with the template, and
// with what the set preserves of its own accord. A nil pointer leaves the field
// alone; at least one is not nil.
type Sync struct {
	// Name and UID identify the machine.
	Name string
	UID  types.UID
	// NodeTemplate is what spec.nodeTemplate becomes.
	NodeTemplate *v1alpha1.NodeTemplateSpec
	// Configuration is what the inline configuration becomes; if it overrides
	// nothing, the machine has none afterwards.
	Configuration *v1alpha1.MachineConfiguration
	// ClassKind is what spec.class.kind becomes.
	ClassKind *string
	// Preserve is what the preserve annotation becomes; empty removes it.
	Preserve *string
}

// Look asks for a live read of a machine, past every cache, whose result is
// handed to [machine.Expectations.Looked].
type Look struct {
	// Name of the machine.
	Name string
	// UID of the machine; empty for one whose creation has not shown up.
	UID types.UID
	// Reason is always [ReasonNotSeen].
	Reason machinist.Reason
}

// Delete asks for one machine to be deleted, with its UID as a precondition, so
// that a late call cannot hit another machine of the same name. Record it with
// [machine.Expectations.Deleting] and [NeverJoined.Deleting] before the call.
//
// A machine that is deleted for [ReasonFailed] may run again meanwhile. Read its Node from
// the API server, ask [ReplaceFailed] once more, and make the resource version of the
// machine a precondition, too.
type Delete struct {
	// Name and UID identify the machine.
	Name string
	UID  types.UID
	// Reason is one of those documented as reasons of a Delete.
	Reason machinist.Reason
	// By says what chose this machine rather than another; see [Victim]. It is empty
	// if there was no choice.
	By string
	// NeverJoined says that the machine is replaced because it failed before it had
	// joined.
	NeverJoined bool
}

// Create asks for Count new machines; see [Name], [NewMachine] and [Batches].
// Record each with [machine.Expectations.Creating] before the call.
type Create struct {
	// Count is at least 1.
	Count int
}

func (AddFinalizer) isAction()    {}
func (RemoveFinalizer) isAction() {}
func (Sync) isAction()            {}
func (Look) isAction()            {}
func (Delete) isAction()          {}
func (Create) isAction()          {}

// String implements [fmt.Stringer].
func (a AddFinalizer) String() string {
	return fmt.Sprintf("add finalizer to set %s (%s)", a.Edit.Name, ReasonNoFinalizer)
}

// String implements [fmt.Stringer].
func (a RemoveFinalizer) String() string {
	return fmt.Sprintf("remove finalizer from set %s (%s)", a.Edit.Name, ReasonNoMachineLeft)
}

// String implements [fmt.Stringer].
func (a Sync) String() string {
	var fields []string
	if a.NodeTemplate != nil {
		fields = append(fields, "node template")
	}
	if a.Configuration != nil {
		fields = append(fields, "configuration")
	}
	if a.ClassKind != nil {
		fields = append(fields, "class kind")
	}
	if a.Preserve != nil {
		fields = append(fields, "preservation")
	}
	return fmt.Sprintf("update %s of %s (%s)", strings.Join(fields, ", "), a.Name, a.Reason())
}

// Reason returns [ReasonAutoPreserve] if the preservation is all that changes,
// else [ReasonTemplateChanged].
func (a Sync) Reason() machinist.Reason {
	if a.Preserve != nil && a.NodeTemplate == nil && a.Configuration == nil && a.ClassKind == nil {
		return ReasonAutoPreserve
	}
	return ReasonTemplateChanged
}

// String implements [fmt.Stringer].
func (a Look) String() string { return fmt.Sprintf("look for %s (%s)", a.Name, a.Reason) }

// String implements [fmt.Stringer].
func (a Delete) String() string {
	if a.By == "" {
		return fmt.Sprintf("delete %s (%s)", a.Name, a.Reason)
	}
	return fmt.Sprintf("delete %s (%s, by %s)", a.Name, a.Reason, a.By)
}

// String implements [fmt.Stringer].
func (a Create) String() string { return fmt.Sprintf("create %d (%s)", a.Count, ReasonTooFew) }
