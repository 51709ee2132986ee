// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/line"
)

// Decision is the next step for a machine: what to do, what is not done yet, and when to decide
// again.
type Decision struct {
	// Action is the one next effect, or nil. The caller carries it out, observes its result, and
	// decides again at once. Each action may be repeated and may be lost. The actions are
	// [machinist.Update] of the machine or its Node, [machinist.Delete] of these or of a bootstrap
	// token, [machinist.Refresh] of the Node, and the types of this package. Before the deletion of
	// a Node, the caller removes the finalizer [v1alpha1.NodeFinalizerName].
	Action machinist.Action `json:"-"`
	// Reason is why.
	Reason machinist.Reason `json:"reason,omitempty"`
	// Message is why, for people. Its text may change.
	Message string `json:"message,omitempty"`
	// Holds are what is not done yet, and why.
	Holds []machinist.Hold `json:"holds,omitempty"`
	// NextCheck is when to decide again at the latest. Zero means when an observed object changes.
	// It is not zero for a decision with an action.
	NextCheck time.Time `json:"nextCheck,omitzero"`
}

// String returns the decision in one line.
func (d Decision) String() string {
	var actions []machinist.Action
	if d.Action != nil {
		actions = []machinist.Action{d.Action}
	}
	return line.Decision(actions, d.Reason, d.Message, d.Holds)
}

// The reasons of decisions and holds on which callers branch. The page docs/reasons.md has
// all of them.
const (
	// ReasonNotObserved means that the object, or something that the step depends on, was not read.
	ReasonNotObserved machinist.Reason = "NotObserved"
	// ReasonFrozen means that an API server does not answer: see [Observation.Freeze].
	//
	// What helps: the API server has to answer.
	ReasonFrozen machinist.Reason = "Frozen"
)

// The other reasons of decisions and holds.
const (
	// reasonNew means that the machine has no finalizer yet.
	reasonNew machinist.Reason = "New"
	// reasonInvalid means that fields of the object are invalid.
	//
	// What helps: correct the fields that the message names.
	reasonInvalid machinist.Reason = "Invalid"
	// reasonClassMissing means that the class does not exist, or was not read.
	//
	// What helps: create the class.
	reasonClassMissing machinist.Reason = "ClassMissing"
	// reasonClassUnusable means that the class or its secrets are invalid, or its finalizer is
	// missing.
	//
	// What helps: correct the class or the Secret that the message names.
	reasonClassUnusable machinist.Reason = "ClassUnusable"
	// reasonClassNew means that the class has no finalizer yet, which its controller adds.
	reasonClassNew machinist.Reason = "ClassNew"
	// reasonLookFirst means that the VM or the Node is read before the next step.
	reasonLookFirst machinist.Reason = "LookFirst"
	// reasonNoVM means that there is no VM.
	reasonNoVM machinist.Reason = "NoVM"
	// reasonVMKnown means that the identity of the VM is known and is recorded.
	reasonVMKnown machinist.Reason = "VMKnown"
	// reasonProviderIDShared means that another machine has the same provider ID, or this is
	// not known.
	//
	// What helps: remove the provider ID from one of the machines.
	reasonProviderIDShared machinist.Reason = "ProviderIDShared"
	// reasonVMUninitialized means that the VM is not initialized.
	reasonVMUninitialized machinist.Reason = "VMUninitialized"
	// reasonVMCreated means that the VM exists and its Node has to join.
	reasonVMCreated machinist.Reason = "VMCreated"
	// reasonStaleNode means that the Node with the name of the VM is that of another VM.
	//
	// What helps: the Node of the other VM is deleted, or its VM has to join under its own name.
	reasonStaleNode machinist.Reason = "StaleNode"
	// reasonNodeUnproven means that the Node which the machine names is not that of the machine, or
	// that the provider has not confirmed it yet.
	//
	// What helps: remove the label or the provider ID if it is wrong.
	reasonNodeUnproven machinist.Reason = "NodeUnproven"
	// reasonToken means that a bootstrap token is needed, or is no longer needed.
	reasonToken machinist.Reason = "BootstrapToken"
	// reasonStatusInvalid means that the status of the machine is impossible and is corrected.
	reasonStatusInvalid machinist.Reason = "StatusInvalid"
	// reasonPartlyIgnored means that a part of the node template, or the name of the Node, is
	// invalid and is ignored.
	//
	// What helps: correct the fields that the message names.
	reasonPartlyIgnored machinist.Reason = "PartlyIgnored"
	// reasonPreserved means that the machine is preserved.
	//
	// What helps: remove the preserve annotation, or wait for the end of the preservation.
	reasonPreserved machinist.Reason = "Preserved"
	// reasonPreservationStopped means that the machine is no longer preserved.
	reasonPreservationStopped machinist.Reason = "PreservationStopped"
	// reasonInPlaceUpdate means that the Node takes part in an in-place update.
	reasonInPlaceUpdate machinist.Reason = "InPlaceUpdate"
	// reasonUpdateSucceeded means that the label of the Node says that it is updated.
	reasonUpdateSucceeded machinist.Reason = "UpdateSucceeded"
	// reasonUpdateFailed means that the label of the Node says that its update has failed.
	//
	// What helps: correct the Node, or delete the machine.
	reasonUpdateFailed machinist.Reason = "UpdateFailed"
	// reasonUpdateTimeout means that the in-place update took too long.
	reasonUpdateTimeout machinist.Reason = "UpdateTimeout"
	// reasonDetaching means that volumes are attached to the Node.
	//
	// What helps: the attach/detach controller or the CSI driver has to detach them.
	reasonDetaching machinist.Reason = "Detaching"
	// reasonPermit means that a permit to replace the machine is taken or returned.
	reasonPermit machinist.Reason = "Permit"
	// reasonVMVanished means that the provider does not find a VM that it had.
	reasonVMVanished machinist.Reason = "VMVanished"
	// reasonVMNotSettled means that the provider has no VM, and may not list a new VM yet.
	reasonVMNotSettled machinist.Reason = "VMNotSettled"
	// reasonProviderFailed means that a driver call failed and is retried later. The message has the code
	// and the text of the provider.
	reasonProviderFailed machinist.Reason = "ProviderFailed"
	// reasonRetryNow means that a user asks for the next attempt with the annotation
	// machine.sapcloud.io/retry-now.
	reasonRetryNow machinist.Reason = "RetryNow"
	// reasonCallAbandoned means that a driver call for the machine has not ended although its time
	// is over. No other call is made for the machine until it ends.
	//
	// What helps: restart the program if the driver does not return.
	reasonCallAbandoned machinist.Reason = "CallAbandoned"
	// reasonCreationTimeout means that the Node of the machine took too long to join.
	reasonCreationTimeout machinist.Reason = "CreationTimeout"
	// reasonWaitingForNode means that the Node has not joined yet.
	//
	// What helps: the kubelet of the VM has to register the Node.
	reasonWaitingForNode machinist.Reason = "WaitingForNode"
	// reasonTargetUnreachable means that the API server of the Nodes does not answer.
	//
	// What helps: the API server of the Nodes has to answer.
	reasonTargetUnreachable machinist.Reason = "TargetUnreachable"
	// reasonNodeOutOfSync means that the Node differs from the template of the machine.
	reasonNodeOutOfSync machinist.Reason = "NodeOutOfSync"
	// reasonNodeReady means that the Node is healthy.
	reasonNodeReady machinist.Reason = "NodeReady"
	// reasonNodeUnhealthy means that the Node is unhealthy.
	//
	// What helps: the Node has to become healthy before the health timeout.
	reasonNodeUnhealthy machinist.Reason = "NodeUnhealthy"
	// reasonNodeGone means that the Node does not exist.
	reasonNodeGone machinist.Reason = "NodeGone"
	// reasonCriticalComponents means that critical components of the Node are not ready.
	//
	// What helps: the critical components have to become ready, or their taint has to be removed.
	reasonCriticalComponents machinist.Reason = "CriticalComponentsNotReady"
	// reasonConditionsChanged means that the conditions of the Node have changed and are copied.
	reasonConditionsChanged machinist.Reason = "ConditionsChanged"
	// reasonHealthTimeout means that the machine was unhealthy for too long.
	reasonHealthTimeout machinist.Reason = "HealthTimeout"
	// reasonReplacementLimit means that too many machines of the group are being replaced.
	//
	// What helps: another machine of the group has to be replaced first.
	reasonReplacementLimit machinist.Reason = "ReplacementLimit"
	// reasonFailed means that the machine waits for its MachineSet to replace it.
	reasonFailed machinist.Reason = "Failed"
	// reasonAvailable means that the VM exists, and there is no target cluster.
	reasonAvailable machinist.Reason = "Available"
	// reasonDeleting means that the machine or its Node is being deleted.
	reasonDeleting machinist.Reason = "Deleting"
	// reasonDraining means that the Node is being drained.
	//
	// What helps: the holds name what the drain waits for.
	reasonDraining machinist.Reason = "Draining"
	// reasonDrained means that the drain has ended.
	reasonDrained machinist.Reason = "Drained"
	// reasonVMGone means that the VM is deleted.
	reasonVMGone machinist.Reason = "VMGone"
	// reasonReleased means that the object is not needed, and its finalizer is removed.
	reasonReleased machinist.Reason = "Released"
	// reasonReferenced means that another object refers to the object.
	//
	// What helps: delete the objects that refer to it.
	reasonReferenced machinist.Reason = "Referenced"
)

// actionJSON is an action as JSON. Text is its String. An action about the VM has no subject.
type actionJSON struct {
	Type    string `json:"type"`
	Subject string `json:"subject,omitempty"`
	Text    string `json:"text"`
}

// MarshalJSON returns the decision as JSON. The action has a type, such as "DrainNode", the subject
// that it writes or reads, such as "node/a", and its text for people. The page docs/machine.md has
// the fields.
func (d Decision) MarshalJSON() ([]byte, error) {
	type fields Decision // without this method
	out := struct {
		Action *actionJSON `json:"action,omitempty"`
		fields
	}{fields: fields(d)}
	if d.Action != nil {
		out.Action = &actionJSON{Type: reflect.TypeOf(d.Action).Name(), Subject: actionSubject(d.Action), Text: d.Action.String()}
	}
	return json.Marshal(out)
}

// actionSubject returns the object that an action writes or reads. It is empty for a VM, and for an
// object without a name.
func actionSubject(a machinist.Action) string {
	switch a := a.(type) {
	case machinist.Update:
		return subjectOf(a.Object)
	case machinist.Delete:
		return subjectOf(a.Object)
	case machinist.Refresh:
		return subject(a.Kind, a.Name)
	case DrainNode:
		return subject("Node", a.NodeName)
	default:
		return ""
	}
}

// subjectOf returns the kind and the name of an object, and the namespace of a Secret. It is empty
// for nil.
func subjectOf(o machinist.Object) string {
	if o == nil || reflect.ValueOf(o).IsNil() {
		return ""
	}
	name := o.GetName()
	if _, secret := o.(*corev1.Secret); secret {
		name = o.GetNamespace() + "/" + name
	}
	return subject(facts.KindOf(o), name)
}

// subject returns a kind in lower case with a name, or "" without a name.
func subject(kind, name string) string {
	if name == "" {
		return ""
	}
	return strings.ToLower(kind) + "/" + name
}
