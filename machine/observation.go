// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Observation is what is known of one machine when [Decide] is asked. The zero
// Observation is a world nobody has looked at: nothing is ever done in it.
//
// Decide keeps no reference to anything in it and changes nothing in it.
type Observation struct {
	// Machine is the object as last read. Nil decides nothing.
	Machine *v1alpha1.Machine
	// Class is what is known of the machine's class.
	Class ClassView
	// Node is what is known of the machine's Node.
	Node NodeView
	// VM is what the provider has answered so far.
	VM VMView
	// Drain is how far the drain of the Node has come.
	Drain DrainView
	// Attachments are the volumes attached to the Node.
	Attachments AttachmentsView
	// Tokens are the bootstrap tokens that were made for the machine.
	Tokens TokensView
	// Permit is the right to fail the machine for bad health, if it was asked for.
	Permit PermitView
	// Siblings are the other machines of the same MachineDeployment, and may
	// include the machine itself. They are read only before a machine is failed
	// for bad health.
	Siblings Siblings
	// Frozen says that the API servers have been out of reach, so that the age of
	// what was observed proves nothing. A machine that is being deleted goes on.
	Frozen bool
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

// usable says whether the driver can be called with the class.
func (c ClassView) usable() bool { return c.Class != nil && c.Problem == "" }

// NodeView is what is known of a machine's Node: of that which the label node
// names now. Whoever writes that label has to look again.
type NodeView struct {
	// NoTarget says that there is no cluster to join: machines end in phase
	// Available, and no Node is ever looked for.
	NoTarget bool
	// Looked says that the Node was looked for in a complete view of the cluster;
	// without it, a nil Node proves nothing.
	Looked bool
	// Node is the object as last read, or nil if there is none.
	Node *corev1.Node
}

// DrainView is how far the drain of a Node has come. The zero value asks for a
// round of draining.
type DrainView struct {
	// Round is when the last round was made; zero means that none was.
	Round time.Time
	// Done says that nothing is left to wait for.
	Done bool
	// Holds are what the drain waits for.
	Holds []Hold
	// NextCheck is when the next round is due; zero means when something changes.
	NextCheck time.Time
}

// AttachmentsView is what is known of the volumes attached to the Node which the
// machine names.
type AttachmentsView struct {
	// Looked says that they were looked for; without it, an empty list proves
	// nothing.
	Looked bool
	// Attachments of the Node, in any order.
	Attachments []*storagev1.VolumeAttachment
}

// TokensView is what is known of the bootstrap tokens of the machine.
type TokensView struct {
	// Looked says that they were looked for; without it, an empty list proves
	// nothing.
	Looked bool
	// Secrets are those whose [TokenOwner] is the machine, in any order.
	Secrets []*corev1.Secret
}

// PermitView is what became of the last [TakePermit] of this pass. The zero value
// is that none was asked for.
type PermitView struct {
	// Asked says that a permit was asked for.
	Asked bool
	// Held says that it was given.
	Held bool
	// Within is how many permits there might be at a time when it was given.
	Within int
	// Until is when to ask again if it was refused; zero is not known.
	Until time.Time
}

// Siblings are the machines among which replacements are limited.
type Siblings struct {
	// Complete says that Machines is the whole list; without it no machine is
	// failed for bad health.
	Complete bool
	// Machines in any order.
	Machines []*v1alpha1.Machine
}
