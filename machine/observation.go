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

// Observation is what is known of one machine when [Decide] is asked. The zero
// Observation is a world nobody has looked at: nothing is ever done in it.
//
// Decide keeps no reference to anything in it and changes nothing in it.
type Observation struct {
	// Machine is the object as last read. Nil decides nothing.
	Machine *v1alpha1.Machine
	// FirstSeen is when this process observed the machine first, by the clock of now.
	// It may be lost in a restart. The creation timeout is counted from it, or from
	// what the status recorded before it. Zero means not known: then the timeout is
	// counted from the creation timestamp, which is by the clock of the API server.
	FirstSeen time.Time
	// Class is what is known of the machine's class.
	Class ClassView
	// Node is what is known of the machine's Node.
	Node NodeView
	// VM is what the provider has answered so far.
	VM VMView
	// ProviderID is what is known of other machines with the same provider ID.
	ProviderID ProviderIDView
	// Drain is how far the drain of the Node has come.
	Drain DrainView
	// Attachments are the volumes attached to the Node.
	Attachments AttachmentsView
	// Tokens are the bootstrap tokens that were made for the machine.
	Tokens TokensView
	// Permit is the right to fail the machine, if it was asked for.
	Permit PermitView
	// Siblings are the other machines of the same [Group], and may include the machine
	// itself. They are read only where [NeedsSiblings] says so.
	Siblings Siblings
	// Freeze is what is known of the API servers.
	Freeze Freeze
}

// Freeze is what is known of the API servers of the machines and of the Nodes, as package
// safety tells it. While they do not answer, Nodes cannot report, and what was observed
// proves nothing: no VM is created, no machine is failed or replaced. What a user deletes
// goes. The zero Freeze is that they answer and always did.
type Freeze struct {
	// Frozen says that an API server has not answered for too long.
	Frozen bool
	// Since is when the outage began. It is zero unless Frozen.
	Since time.Time
	// Message says for people which API server does not answer. It is empty unless Frozen.
	Message string
	// ClocksFrom is since when the API servers answer. Timeouts that rest on reports of a
	// Node count from it if they began before. Zero, and a time after now, change nothing.
	ClocksFrom time.Time
}

// Hold returns what a freeze holds. It ends at the next look, a minute after now.
func (f Freeze) Hold(now time.Time) machinist.Hold {
	return machinist.Hold{
		Subject: "api-server", Reason: ReasonFrozen, Since: f.Since, Until: now.Add(time.Minute),
		Message: "nothing is created, failed or replaced: " + f.Message,
	}
}

// start returns when a timeout begins of something that began at t.
func (f Freeze) start(t, now time.Time) time.Time {
	if f.ClocksFrom.After(t) && !f.ClocksFrom.After(now) {
		return f.ClocksFrom
	}
	return t
}

// ClassView is what is known of a machine's class.
type ClassView struct {
	// Class is the object as last read, or nil if there is none.
	Class *v1alpha1.MachineClass
	// Looked says that the class was looked for; without it, a nil Class proves
	// nothing.
	Looked bool
	// Problem, if not empty, says why the class or its secrets cannot be used.
	Problem string
	// NeedsToken says that the user data has a place for a bootstrap token; see
	// [NeedsToken].
	NeedsToken bool
}

// usable says whether a VM can be made of the class, and looked for.
func (c ClassView) usable() bool { return c.Class != nil && c.Problem == "" }

// callable says whether the driver can be called to delete a VM: with a class, and
// with what secrets there are.
func (c ClassView) callable() bool { return c.Class != nil }

// NodeView is what is known of a machine's Node: of that which the label node names
// now, or, without the label, of that for which [NodeNameOf] or the provider ID of
// the machine stands. A caller that writes the label has to look again.
type NodeView struct {
	// NoTarget says that there is no cluster to join: machines end in phase
	// Available, and no Node is ever looked for.
	NoTarget bool
	// Looked says that the Node was looked for in a complete view of the cluster;
	// without it, a nil Node proves nothing.
	Looked bool
	// Name is the name that was looked for. Empty means that of the label node.
	Name string
	// Node is the object as last read, or nil if there is none.
	Node *corev1.Node
	// AsOf is when the API server was asked that said so. Zero means that the age is
	// not known, as that of a cache, whose watch may be silent without an error. No
	// machine is failed because of a timeout that ended after AsOf; see [LookForNode].
	AsOf time.Time
	// Unanswered says that the API server did not answer the last [LookForNode] of
	// this pass.
	Unanswered bool
}

// ProviderIDView is what is known of other machines that record the same provider ID.
// The zero value is that nothing is known: no VM is deleted by its provider ID then.
type ProviderIDView struct {
	// Compared says that the provider IDs of all machines were compared.
	Compared bool
	// Others are the machines with the same ID, in any order. The machine itself and
	// machines with other IDs do not matter.
	Others []*v1alpha1.Machine
	// ListedFor is the name of the machine for which the provider lists the VM with
	// that ID. It is read only if there are Others. Empty means not known.
	ListedFor string
}

// DrainView is how far the drain of a Node has come. The zero value asks for a
// round of draining; [DrainView.After] says what comes of one. Losing it costs time,
// never safety.
type DrainView struct {
	// Started is [DrainNode.Started] of the last pass: a view of another drain says
	// nothing. Zero counts for any.
	Started time.Time
	// ForceAt and KeepSchedulable are those of its policy.
	ForceAt         time.Time
	KeepSchedulable bool
	// State is what package drain remembers.
	State drain.State
	// Round is when the last round was made; zero asks for one.
	Round time.Time
	// Done says that nothing is left to wait for.
	Done bool
	// DoneAt is when the drain was first seen to be done. Zero means the last round.
	DoneAt time.Time
	// ForcedAt is when the first round by force was made; zero means that none was.
	ForcedAt time.Time
	// Holds are what the drain waits for.
	Holds []machinist.Hold
	// NextCheck is when the next round is due; zero means when something changes.
	NextCheck time.Time
}

// AttachmentsView is what is known of the volumes attached to the Node which the
// machine names.
type AttachmentsView struct {
	// Looked says that they were looked for; without it, an empty list proves
	// nothing. Where there is no such thing as a VolumeAttachment it is true.
	Looked bool
	// Attachments of the Node, in any order; those of other Nodes do not matter.
	Attachments []*storagev1.VolumeAttachment
	// AskedAt is when the first [DeleteAttachments] of this deletion was carried out,
	// whether it had an effect or not: what cannot be deleted is not waited for
	// without end. Zero means never; losing it costs time.
	AskedAt time.Time
}

// TokensView is what is known of the bootstrap tokens of the machine.
type TokensView struct {
	// Looked says that they were looked for; without it, an empty list proves
	// nothing.
	Looked bool
	// Secrets are those whose [TokenOwner] is the machine, in any order.
	Secrets []*corev1.Secret
}

// PermitView is what became of the last [TakePermit] and [ReturnPermit] of this
// pass. The zero value is that none was asked for. After a ReturnPermit, one was
// asked for and is not held, so that it is not asked for again at once.
type PermitView struct {
	// Asked says that a permit was asked for in this pass.
	Asked bool
	// Held says that the machine has one. A caller may say so at the beginning of a
	// pass, of one that is left from an earlier pass: it is asked for again before
	// it is used, and given back if it is not needed.
	Held bool
	// Within is the one of the [TakePermit] that asked: how many permits there
	// might be at a time.
	Within int
	// Refused is why the machine may not be failed now, if it was refused. Without a
	// reason no permit is free, and Until is when to ask again; zero is not known. With
	// a reason a machine that is to join goes on to arrive until then.
	Refused machinist.Hold
}

// Siblings are the machines among which replacements are limited.
type Siblings struct {
	// Complete says that Machines is the whole list; without it no machine is
	// failed for bad health.
	Complete bool
	// Group is the one whose machines these are. The zero Group means what [GroupOf]
	// says of the machine alone.
	Group Group
	// Machines in any order.
	Machines []*v1alpha1.Machine
	// Missing is how many machines their sets want that do not exist, as
	// machineset.Missing counts them. They count as being replaced, so that the time
	// between the end of a machine and the creation of the next one is covered,
	// however long it is. Below 0 is 0.
	Missing int
}
