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

// Action is a [SetFinalizers], a [Sync], a [List], a [Look], a [Delete] or a [Create]. The set of actions is
// closed. An action may be repeated or lost: the next decision follows from what exists.
//
//sumtype:decl
type Action interface {
	fmt.Stringer
	reason() machinist.Reason
}

// SetFinalizers adds the finalizer of this controller to the set, before the first [Create], or
// removes it from a deleted set without machines.
type SetFinalizers struct {
	// Name, UID and ResourceVersion identify the set as it was read. The write must fail if the UID
	// or the resource version differs.
	Name            string
	UID             types.UID
	ResourceVersion string
	// Finalizers is the whole list, including those of other controllers. It is not nil.
	Finalizers []string
	// Reason is "FinalizerMissing", or [ReasonSetDeleting] if the finalizer goes.
	Reason machinist.Reason
}

// Patch returns the write as a JSON merge patch (types.MergePatchType) with UID and
// resource version as preconditions. The error is nil for actions of this package.
func (a SetFinalizers) Patch() ([]byte, error) {
	return metadataPatch(a.UID, a.ResourceVersion, map[string]any{"finalizers": append([]string{}, a.Finalizers...)})
}

// setFinalizer returns the action that adds the finalizer of this controller to a set.
func setFinalizer(set *v1alpha1.MachineSet) SetFinalizers {
	return SetFinalizers{
		set.Name, set.UID, set.ResourceVersion, append(slices.Clone(set.Finalizers), v1alpha1.MCMFinalizerName), reasonNoFinalizer,
	}
}

// removeFinalizer returns the action that removes the finalizer of this controller from a set.
func removeFinalizer(set *v1alpha1.MachineSet) SetFinalizers {
	rest := make([]string, 0, len(set.Finalizers))
	for _, f := range set.Finalizers {
		if f != v1alpha1.MCMFinalizerName {
			rest = append(rest, f)
		}
	}
	return SetFinalizers{set.Name, set.UID, set.ResourceVersion, rest, ReasonSetDeleting}
}

// Sync updates fields of a machine: those of the template of its set, and the preserve annotation.
// A nil pointer leaves a field unchanged; at least one is not nil.
type Sync struct {
	// Name and UID identify the machine.
	Name string
	UID  types.UID
	// NodeTemplate is the new spec.nodeTemplate.
	NodeTemplate *v1alpha1.NodeTemplateSpec
	// Configuration is the new inline configuration. One without any field removes it.
	Configuration *v1alpha1.MachineConfiguration
	// Class is the new spec.class.
	Class *v1alpha1.ClassSpec
	// Preserve is the new preserve annotation. Empty removes it.
	Preserve *string
}

// List lists the machines that the selector of the set matches from the API server, not from a
// cache. Give those of the set to [machine.Listed], set [Observation].Proven for the rest of the
// process, and decide again.
type List struct {
	// Name of the set.
	Name string
}

// Look reads a machine from the API server, not from a cache. Give the result to
// [machine.Expectations.Looked].
type Look struct {
	// Name of the machine.
	Name string
	// UID of the machine; empty for one whose creation has not shown up.
	UID types.UID
}

// Delete deletes one machine, with its UID as precondition, so that a late request deletes no other
// machine of the same name. Record it with [machine.Expectations.Deleting] and
// [NeverJoined.Deleting] before the request.
//
// A machine that is deleted for [ReasonFailed] may recover in the meantime. Before the request,
// read its Node from the API server, call [ReplaceFailed] again, and make the resource version of
// the machine a precondition too.
type Delete struct {
	// Name and UID identify the machine.
	Name string
	UID  types.UID
	// Reason is one of those documented as reasons of a Delete.
	Reason machinist.Reason
	// By is why this machine was chosen and not another: see [Victim]. Empty means that there was
	// no choice.
	By string
	// NeverJoined means that the machine failed before its Node joined.
	NeverJoined bool
}

// Create creates Count machines: see [NewMachine] and [Batches]. Record each with
// [machine.Expectations.Creating] before its request.
type Create struct {
	// Count is at least 1.
	Count int
}

func (a SetFinalizers) reason() machinist.Reason { return a.Reason }
func (Sync) reason() machinist.Reason            { return ReasonOutOfSync }
func (List) reason() machinist.Reason            { return ReasonIncomplete }
func (Look) reason() machinist.Reason            { return ReasonNotSeen }
func (a Delete) reason() machinist.Reason        { return a.Reason }
func (Create) reason() machinist.Reason          { return ReasonTooFew }

// String returns the action as text.
func (a SetFinalizers) String() string {
	if a.Reason == reasonNoFinalizer {
		return "add finalizer to set " + a.Name
	}
	return "remove finalizer from set " + a.Name
}

// String returns the action as text.
func (a Sync) String() string {
	var fields []string
	if a.NodeTemplate != nil {
		fields = append(fields, "node template")
	}
	if a.Configuration != nil {
		fields = append(fields, "configuration")
	}
	if a.Class != nil {
		fields = append(fields, "class")
	}
	if a.Preserve != nil {
		fields = append(fields, "preservation")
	}
	return fmt.Sprintf("update %s of machine %s", strings.Join(fields, ", "), a.Name)
}

// String returns the action as text.
func (a List) String() string { return "list the machines of set " + a.Name }

// String returns the action as text.
func (a Look) String() string { return "look for machine " + a.Name }

// String returns the action as text.
func (a Delete) String() string {
	if a.By == "" {
		return fmt.Sprintf("delete machine %s: %s", a.Name, a.Reason)
	}
	return fmt.Sprintf("delete machine %s: %s, chosen by %s", a.Name, a.Reason, a.By)
}

// Event returns the Event of the set after the response to the deletion, with the error of the
// response or nil. Report nothing for a machine that did not exist, or for a response that the end
// of the caller has canceled.
func (a Delete) Event(err error) machinist.Event {
	if err != nil {
		return machinist.Event{Type: corev1.EventTypeWarning, Reason: "FailedDelete", Message: "Error deleting: " + err.Error()}
	}
	return machinist.Event{Type: corev1.EventTypeNormal, Reason: "SuccessfulDelete", Message: "Deleted machine: " + a.Name}
}

// Event returns the Event of the set after the response to the creation of a machine of this name,
// with the error of the response or nil. Report nothing for a response that the end of the caller
// has canceled.
func (Create) Event(name string, err error) machinist.Event {
	if err != nil {
		return machinist.Event{Type: corev1.EventTypeWarning, Reason: "FailedCreate", Message: "Error creating: " + err.Error()}
	}
	return machinist.Event{Type: corev1.EventTypeNormal, Reason: "SuccessfulCreate", Message: "Created Machine: " + name}
}

// String returns the action as text.
func (a Create) String() string {
	if a.Count == 1 {
		return "create 1 machine"
	}
	return fmt.Sprintf("create %d machines", a.Count)
}
