// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// An Action is a [SetFinalizers], a [Sync], a [Look], a [Delete] or a [Create]. The set
// is closed. Each is harmless if it is repeated or lost: the next decision is made from
// what is there.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	reason() machinist.Reason
}

// SetFinalizers puts this controller's finalizer on the set, before every [Create], or
// takes it off a deleted set whose machines are gone.
type SetFinalizers struct {
	// Name, UID and ResourceVersion identify the set as it was read. The write must
	// fail if the UID or the resource version differs.
	Name            string
	UID             types.UID
	ResourceVersion string
	// Finalizers is the whole list, with those of other controllers in their order;
	// not nil.
	Finalizers []string
	// Reason is "FinalizerMissing", or [ReasonSetDeleting] if the finalizer goes.
	Reason machinist.Reason
}

// Patch returns the write as a JSON merge patch (types.MergePatchType) with UID and
// resource version as preconditions. The error is nil for actions of this package.
func (a SetFinalizers) Patch() ([]byte, error) {
	return metadataPatch(a.UID, a.ResourceVersion, map[string]any{"finalizers": append([]string{}, a.Finalizers...)})
}

// setFinalizer puts this controller's finalizer on a set.
func setFinalizer(set *v1alpha1.MachineSet) SetFinalizers {
	return SetFinalizers{
		set.Name, set.UID, set.ResourceVersion, append(slices.Clone(set.Finalizers), v1alpha1.MCMFinalizerName), reasonNoFinalizer,
	}
}

// removeFinalizer takes this controller's finalizer off a set.
func removeFinalizer(set *v1alpha1.MachineSet) SetFinalizers {
	rest := make([]string, 0, len(set.Finalizers))
	for _, f := range set.Finalizers {
		if f != v1alpha1.MCMFinalizerName {
			rest = append(rest, f)
		}
	}
	return SetFinalizers{set.Name, set.UID, set.ResourceVersion, rest, ReasonSetDeleting}
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

// Create asks for Count new machines; see [NewMachine] and [Batches].
// Record each with [machine.Expectations.Creating] before the call.
type Create struct {
	// Count is at least 1.
	Count int
}

func (a SetFinalizers) reason() machinist.Reason { return a.Reason }
func (Sync) reason() machinist.Reason            { return ReasonOutOfSync }
func (Look) reason() machinist.Reason            { return ReasonNotSeen }
func (a Delete) reason() machinist.Reason        { return a.Reason }
func (Create) reason() machinist.Reason          { return ReasonTooFew }

// String implements [fmt.Stringer].
func (a SetFinalizers) String() string {
	if a.Reason == reasonNoFinalizer {
		return fmt.Sprintf("add finalizer to set %s (%s)", a.Name, a.Reason)
	}
	return fmt.Sprintf("remove finalizer from set %s (%s)", a.Name, a.Reason)
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
	return fmt.Sprintf("update %s of %s (%s)", strings.Join(fields, ", "), a.Name, ReasonOutOfSync)
}

// String implements [fmt.Stringer].
func (a Look) String() string { return fmt.Sprintf("look for %s (%s)", a.Name, ReasonNotSeen) }

// String implements [fmt.Stringer].
func (a Delete) String() string {
	if a.By == "" {
		return fmt.Sprintf("delete %s (%s)", a.Name, a.Reason)
	}
	return fmt.Sprintf("delete %s (%s, by %s)", a.Name, a.Reason, a.By)
}

// Event returns what to report on the set once the deletion of the machine has been
// answered, with the error of the answer or nil. Report nothing for a machine that was
// gone already, or for an answer that the end of the caller has cut short.
func (a Delete) Event(err error) machinist.Event {
	if err != nil {
		return machinist.Event{Type: corev1.EventTypeWarning, Reason: "FailedDelete", Message: "Error deleting: " + err.Error()}
	}
	return machinist.Event{Type: corev1.EventTypeNormal, Reason: "SuccessfulDelete", Message: "Deleted machine: " + a.Name}
}

// Event returns what to report on the set once the creation of a machine of this name
// has been answered, with the error of the answer or nil. Report nothing for an answer
// that the end of the caller has cut short.
func (Create) Event(name string, err error) machinist.Event {
	if err != nil {
		return machinist.Event{Type: corev1.EventTypeWarning, Reason: "FailedCreate", Message: "Error creating: " + err.Error()}
	}
	return machinist.Event{Type: corev1.EventTypeNormal, Reason: "SuccessfulCreate", Message: "Created Machine: " + name}
}

// String implements [fmt.Stringer].
func (a Create) String() string { return fmt.Sprintf("create %d (%s)", a.Count, ReasonTooFew) }
