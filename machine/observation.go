// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Observation is what is known about one machine. On the zero Observation nothing is done. [Decide]
// does not change it and keeps no reference to it.
type Observation struct {
	// Machine is the object as last read. Nil decides nothing.
	Machine *v1alpha1.Machine
	// FirstSeen is when this process first observed the machine. The creation timeout counts from
	// it, or from an earlier time in the status. Zero means that it is not known, for example after
	// a restart: the timeout then counts from the creation timestamp.
	FirstSeen time.Time
	// Class is what is known about the class of the machine.
	Class ClassView
	// Node is what is known about the Node of the machine.
	Node NodeView
	// VM is what the provider has returned so far.
	VM VMView
	// ProviderID is what is known about other machines that may have the same VM.
	ProviderID ProviderIDView
	// Drain is the progress of the drain of the Node.
	Drain DrainView
	// Attachments are the volumes attached to the Node.
	Attachments AttachmentsView
	// Tokens are the bootstrap tokens of the machine.
	Tokens TokensView
	// Permit is the permission to fail the machine.
	Permit PermitView
	// Siblings are the other machines of the same group, and may include the machine itself. They
	// are read only if [NeedsSiblings] returns true.
	Siblings Siblings
	// Freeze is whether the API servers answer.
	Freeze Freeze
	// Waits are the holds of the last decision without an action, each with since when the machine has it:
	// see [machinist.Waits]. With none, the age of the holds is not known.
	Waits []machinist.Hold
}

// Freeze is whether the API servers of the machines and of the Nodes answer: see package safety.
// While one does not, Nodes cannot report, so no VM is created and no machine is failed or
// replaced. Deletions go on. The zero Freeze means that both answer.
type Freeze struct {
	// Frozen means that an API server has not answered for too long.
	Frozen bool `json:"frozen,omitempty"`
	// Since is when the outage began. It is zero unless Frozen.
	Since time.Time `json:"since,omitzero"`
	// Message is which API server does not answer, for people. It is empty unless Frozen.
	Message string `json:"message,omitempty"`
	// ClocksFrom is since when the API servers answer. Timeouts that depend on reports of a Node
	// count from it if they began before. Zero, or a time after now, has no effect.
	ClocksFrom time.Time `json:"clocksFrom,omitzero"`
}

// Hold returns the hold of a freeze. It ends a minute after now.
func (f Freeze) Hold(now time.Time) machinist.Hold {
	return machinist.Hold{
		Subject: "api-server", Reason: ReasonFrozen, Since: f.Since, Until: now.Add(time.Minute),
		Message: "nothing is created, failed or replaced: " + f.Message,
	}
}

// start returns the start of a timeout for something that began at t.
func (f Freeze) start(t, now time.Time) time.Time {
	if f.ClocksFrom.After(t) && !f.ClocksFrom.After(now) {
		return f.ClocksFrom
	}
	return t
}

// ClassView is what is known about the class of a machine.
type ClassView struct {
	// Class is the class as last read, or nil.
	Class *v1alpha1.MachineClass
	// Looked means that the class was read. Without it, a nil Class has no meaning.
	Looked bool
	// Version differs when the class or one of its secrets has changed. A call that failed because
	// of them is then repeated at once. Empty means that it is not known.
	Version string
	// Problem is why the class or its secrets cannot be used. Empty means that they can.
	Problem string
	// NeedsToken means that the user data has the placeholder of a bootstrap token: see
	// [NeedsToken].
	NeedsToken bool
}

// usable reports whether a VM can be created.
func (c ClassView) usable() bool { return c.Class != nil && c.Problem == "" }

// callable reports whether the driver can be called to delete a VM: with a class, and the secrets
// that exist.
func (c ClassView) callable() bool { return c.Class != nil }

// NodeView is what is known about the Node of a machine: the Node that the label names, or, without
// the label, that of [VMView.NodeNameOf] or of the provider ID. A caller that writes the label has to read
// the Node again.
type NodeView struct {
	// NoTarget means that there is no target cluster: machines end in phase Available.
	NoTarget bool
	// Looked means that the Node was read in a complete view of the cluster. Without it, a
	// nil Node has no meaning.
	Looked bool
	// Name is the name of the Node that was read. Empty means that of the label.
	Name string
	// Node is the Node as last read, or nil if it does not exist.
	Node *corev1.Node
	// AsOf is when the API server was asked. Zero means that the age is not known, as for a cache.
	// No machine is failed because of a timeout that ended after AsOf: see [machinist.Refresh].
	AsOf time.Time
	// Unanswered means that the API server did not answer the last [machinist.Refresh] of this pass.
	Unanswered bool
	// Refused means that the API server has refused a write of the Node in this pass. The health of the
	// machine is judged without it.
	Refused bool
}

// ProviderIDView is what is known about other machines that may have the same VM. With the zero
// value no VM is deleted by its provider ID.
type ProviderIDView struct {
	// Compared means that the machine was compared with all machines of all namespaces and shards.
	Compared bool
	// Others are the machines with the same provider ID, and the machines of other namespaces with
	// the same name, in any order. The machine itself and others are ignored.
	Others []*v1alpha1.Machine
}

// DrainView is the progress of a drain. With the zero value a pass is made; [DrainView.After]
// returns the view after it. Losing it costs time, never safety.
type DrainView struct {
	// Started is [DrainNode.Started] of the last pass. A view with another time is that of another
	// drain. Zero means any.
	Started time.Time
	// ForceAt and KeepSchedulable are those of its policy.
	ForceAt         time.Time
	KeepSchedulable bool
	// State is the state of package drain.
	State drain.State
	// Round is when the last pass was made. Zero means that one is needed.
	Round time.Time
	// Done means that the drain has ended.
	Done bool
	// DoneAt is when the end was first observed. Zero means in the last pass.
	DoneAt time.Time
	// ForcedAt is when the first pass by force was made. Zero means never.
	ForcedAt time.Time
	// Holds are what the drain waits for.
	Holds []machinist.Hold
	// NextCheck is when to make the next pass. Zero means when an object changes.
	NextCheck time.Time
}

// AttachmentsView is what is known about the volumes that are attached to the Node.
type AttachmentsView struct {
	// Looked means that they were read. Without it, an empty list has no meaning. It is true
	// for a cluster without VolumeAttachments.
	Looked bool
	// Attachments are those of the Node, in any order. Others are ignored.
	Attachments []*storagev1.VolumeAttachment
	// AskedAt is when the first [DeleteAttachments] of this deletion was carried out, with or
	// without an error. Attachments that cannot be deleted are not waited for without end. Zero
	// means never. Losing it costs time.
	AskedAt time.Time
}

// TokensView is what is known about the bootstrap tokens of the machine.
type TokensView struct {
	// Looked means that they were read. Without it, an empty list has no meaning.
	Looked bool
	// Secrets are those whose label [v1alpha1.TokenOwnerLabel] is the UID of the machine, in any order.
	Secrets []*corev1.Secret
}

// PermitView is the result of the last [TakePermit] or [ReturnPermit] of this pass. The zero value
// means that there was none. After a ReturnPermit, Asked is true and Held is false, so that no
// permit is taken again at once.
type PermitView struct {
	// Asked means that a permit was asked for in this pass.
	Asked bool
	// Held means that the machine has a permit. At the beginning of a pass it may be that of an
	// earlier pass: it is taken again before it is used, and returned if it is not needed.
	Held bool
	// Within is that of the [TakePermit].
	Within int
	// Refused is why the machine may not be failed now. Without a Reason no permit is free, and
	// Until is when to ask again; zero means that it is not known. With a Reason a machine that has
	// not joined continues to be created until then.
	Refused machinist.Hold
}

// Siblings are the machines among which replacements are limited: those of one MachineDeployment, or of
// one MachineSet without a deployment. The deployment is that in the owner reference of the set, or else
// in the label "name" of the machine, as in MCM. MCM reads only the label, and does not limit a machine
// without it.
type Siblings struct {
	// Complete means that Machines are all machines of the group. Without it no machine is
	// failed because of its health.
	Complete bool
	// Set is the MachineSet that controls the machine. Nil means that it is not known or does not
	// exist.
	Set *v1alpha1.MachineSet
	// Machines are in any order.
	Machines []*v1alpha1.Machine
	// Missing is how many machines their sets want and do not have. They
	// count as being replaced, which covers the time between the deletion of a machine and the
	// creation of the next one. Negative values are 0.
	Missing int
}
