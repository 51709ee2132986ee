// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// proof is whether a Node is that of a machine. What a user can write into a Machine proves nothing:
// neither its label node, nor its provider ID, nor its name in one namespace. The provider proves
// it, or a record of an earlier proof on the Node.
type proof uint8

const (
	unasked  proof = iota // nothing contradicts it, and the provider was not asked
	proven                // the provider has named this VM or this Node for the machine
	unproven              // the provider has no VM for the name of the machine
	foreign               // the Node is that of another VM or of another machine
)

// nodeProof returns whether the Node of the observation is that of the machine. If the Node is
// foreign or unproven, the text says why.
func (l *logic) nodeProof() (proof, string) {
	node := l.in.Node.Node
	if node == nil {
		return unasked, ""
	}
	p, why := proofOf(l.m, node, l.named(), l.now)
	switch {
	case p == unproven && l.vmWasDeleted(node):
		p, why = proven, ""
	case p != proven || facts.Marked(l.m, node):
		return p, why
	}
	if other := l.betterClaim(node.Name, node.Spec.ProviderID); other != nil {
		return foreign, fmt.Sprintf("machine %s/%s has the same name and the better claim", other.Namespace, other.Name)
	}
	return p, why
}

// named returns the VM that the provider has named. At the beginning of a deletion, the provider may
// not list a new VM yet: no VM is then no answer.
func (l *logic) named() NamedVM {
	if n := l.in.VM.Named; n.ProviderID != "" || l.m.DeletionTimestamp.IsZero() || !n.AskedAt.Before(l.settledAt()) {
		return n
	}
	return NamedVM{}
}

// proofOf returns whether a Node is that of a machine, without regard to other machines. The first
// rule that applies counts:
//
//  1. The provider has named a VM, and the Node has a provider ID: the two are compared.
//  2. The Node contradicts the machine: see [facts.Contradicts].
//  3. The Node has a record of the machine: proven.
//  4. The provider has named a Node: the name is compared.
//  5. The provider has not answered since the Node exists: unasked. Otherwise: unproven.
func proofOf(m *v1alpha1.Machine, node *corev1.Node, named NamedVM, now time.Time) (proof, string) {
	id := node.Spec.ProviderID
	switch {
	case named.ProviderID != "" && id != "" && nodeops.SameInstance(named.ProviderID, id):
		return proven, ""
	case named.ProviderID != "" && id != "":
		return foreign, fmt.Sprintf("its provider ID is %q, and the provider has the VM %q for the machine", facts.Excerpt(id), facts.Excerpt(named.ProviderID))
	case facts.Contradicts(m, node):
		return foreign, facts.Contradiction(m, node)
	case facts.Marked(m, node), named.ProviderID != "" && named.NodeName == node.Name:
		return proven, ""
	case named.NodeName != "":
		return foreign, fmt.Sprintf("the provider has the Node %q for the machine", facts.Excerpt(named.NodeName))
	case named.AskedAt.IsZero(), recorded.Known(node.CreationTimestamp.Time, now) && named.AskedAt.Before(node.CreationTimestamp.Time):
		return unasked, "" // before the Node joined, the provider may not have listed the VM yet
	case named.ProviderID != "":
		return unproven, fmt.Sprintf("it has no provider ID, and the provider has not returned the name of the Node of the VM %q", facts.Excerpt(named.ProviderID))
	default:
		return unproven, fmt.Sprintf("the provider has no VM for the machine name %q", facts.Excerpt(m.Name))
	}
}

// vmWasDeleted reports whether another controller has recorded that the VM of a machine was deleted,
// and its Node has the name and no other provider ID. The provider cannot name such a VM.
func (l *logic) vmWasDeleted(node *corev1.Node) bool {
	return facts.TakeOver(l.m, nil, l.now).VMDeleted && node.Labels[v1alpha1.MachineNameLabelKey] == l.m.Name && !facts.Contradicts(l.m, node)
}

// betterClaim returns the machine with the better claim on a VM or Node that the provider has named
// for the name of this machine: an older machine of another namespace with the same name, and with
// this Node name or provider ID. It returns nil if there is none.
func (l *logic) betterClaim(nodeName, providerID string) *v1alpha1.Machine {
	i := slices.IndexFunc(l.in.ProviderID.Others, func(o *v1alpha1.Machine) bool {
		return o != nil && o.Name == l.m.Name && !sameMachine(o, l.m) && !l.m.CreationTimestamp.Before(&o.CreationTimestamp) &&
			(nodeName != "" && o.Labels[v1alpha1.NodeLabelKey] == nodeName || nodeops.SameInstance(o.Spec.ProviderID, providerID))
	})
	if i < 0 {
		return nil
	}
	return l.in.ProviderID.Others[i]
}

// ownNode returns the Node of the machine. It returns nil if there is none, or if the Node is not
// that of the machine. The Node of a machine that is being deleted has to be proven. Other Nodes
// are read before they are proven, and not written: see [logic.withProof].
func (l *logic) ownNode() *corev1.Node {
	if l.in.Node.NoTarget {
		return nil
	}
	switch p, _ := l.nodeProof(); {
	case p == proven && (l.in.Node.Looked || l.m.DeletionTimestamp.IsZero()), p == unasked && l.m.DeletionTimestamp.IsZero():
		return l.in.Node.Node
	default:
		return nil
	}
}

// withProof returns the decision if it writes no Node, or if the Node is proven. Otherwise it
// returns a decision that asks the provider for the VM of the machine, or that waits for it.
func (l *logic) withProof(d Decision) Decision {
	_, writes := d.Action.(DrainNode)
	if u, ok := d.Action.(machinist.Update); ok {
		_, writes = u.Object.(*corev1.Node)
	}
	if p, _ := l.nodeProof(); writes && p == unasked {
		return l.askForProof()
	}
	return d
}

// askForProof asks the provider for the VM with the name of the machine, or waits for a retry.
func (l *logic) askForProof() Decision {
	h := machinist.Hold{
		Subject: l.nodeSubject(), Reason: reasonNodeUnproven,
		Message: "it is not written before the provider has named the VM of the machine",
	}
	switch f := l.in.VM.Failure; {
	case !l.askable():
		h.Until = l.now.Add(time.Minute)
		h.Message += ", which needs the class: " + cmp.Or(l.in.Class.Problem, "it was not read or does not exist")
	case f.Code != codes.OK && f.Operation == driver.OpGetMachineStatus:
		h.Until = l.retryAt(f)
		h.Message += ": " + f.Message
	}
	what := "the VM is deleted"
	if l.in.Node.Node != nil {
		what = l.nodeSubject() + " is written"
	}
	return l.findVMAfter(h, "before "+what)
}

// proveDeletion asks the provider for the VM of a machine that is being deleted, if the machine has
// a Node or a provider ID that is not proven. The decision is zero when the answer is known, or
// when the deletion continues without it: a minute after the drain timeout or after a user forced
// the deletion, and without a Node after a few failures. Nothing is then done to the Node, and the
// VM is deleted by its name. The provider is not asked after a deletion of the VM.
func (l *logic) proveDeletion() Decision {
	f := l.in.VM.Failure
	if l.vmGone() || f.Operation == driver.OpDeleteMachine && l.now.Before(l.retryAt(f)) {
		return Decision{} // the provider names no deleted VM, and a failed deletion is retried later
	}
	p, _ := l.nodeProof()
	node := l.in.Node.Node != nil && l.in.Node.Looked && !l.in.Node.NoTarget && p == unasked
	if !node && l.ownership() != unknownVM || !l.in.Class.callable() {
		return Decision{}
	}
	if d := l.settleProof(); d.Reason != "" {
		return d
	}
	forced := l.forcedTooLong()
	since, known := facts.DeletionNoticed(l.m, l.now)
	switch {
	case f.Code == codes.OK || f.Operation != driver.OpGetMachineStatus:
		return l.askForProof()
	case known && f.At.Before(since), forced && f.At.Before(l.forcedFrom()): // the deletion, and its last attempt, wait for no back-off
		return l.findVM("")
	case forced, !node && f.Attempts >= lookAttempts:
		return Decision{}
	}
	if d := l.lookFailed(f); d.Reason != "" {
		return d.by(l.forcedFrom())
	}
	return l.askForProof()
}

// settleProof waits until the provider lists all VMs, if it has none for the machine.
func (l *logic) settleProof() Decision {
	switch asked := l.in.VM.Named.AskedAt; {
	case asked.IsZero(), l.in.VM.Failure.Code != codes.OK, !l.now.Before(l.settledAt()):
		return Decision{}
	case l.phase() != v1alpha1.MachineTerminating:
		return l.beginDeletion(l.operation(v1alpha1.MachineOperationDelete, v1alpha1.MachineStateProcessing, v1alpha1.GetVMStatus))
	}
	return l.notSettled()
}

// strangeNode returns the error for a Node that the machine names and that is not its own, for the
// condition Valid.
func (l *logic) strangeNode() field.ErrorList {
	p, why := l.nodeProof()
	if l.in.Node.NoTarget || p != foreign && p != unproven {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "labels").Key(v1alpha1.NodeLabelKey), facts.Excerpt(l.in.Node.Node.Name),
		"the Node is not that of the machine, and is neither changed nor drained nor deleted: "+why)}
}

// ownership is which machine owns the VM with the recorded provider ID.
type ownership uint8

const (
	ownVM     ownership = iota // this machine: the provider has named the VM, or there is no ID
	unknownVM                  // the provider has not answered
	sharedVM                   // the provider cannot answer, and several machines have the ID
	foreignVM                  // another machine or none: the provider has no VM with this ID for the name of the machine
	rivalVM                    // the machine with the better claim on the VM that the provider has for this name
)

// sameIDMachines returns the names of the other machines with the same provider ID, sorted. The
// name of a machine in another namespace has the namespace before it.
func (l *logic) sameIDMachines() []string {
	if len(l.in.ProviderID.Others) == 0 || l.m.Spec.ProviderID == "" {
		return nil
	}
	id := nodeops.NormalizeProviderID(l.m.Spec.ProviderID)
	var names []string
	for _, other := range l.in.ProviderID.Others {
		if other == nil || sameMachine(other, l.m) || nodeops.NormalizeProviderID(other.Spec.ProviderID) != id {
			continue
		}
		name := other.Name
		if other.Namespace != l.m.Namespace {
			name = other.Namespace + "/" + name
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ownership returns which machine owns the VM with the recorded provider ID. The provider says so,
// or a record of an earlier proof on the Node with the ID.
func (l *logic) ownership() ownership {
	id, named, node := l.m.Spec.ProviderID, l.named(), l.in.Node.Node
	switch {
	case named.ProviderID != "" && l.betterClaim("", named.ProviderID) != nil:
		return rivalVM
	case id == "", nodeops.SameInstance(id, named.ProviderID):
		return ownVM
	case named.ProviderID != "":
		return foreignVM
	case node != nil && facts.Marked(l.m, node) && nodeops.SameInstance(id, node.Spec.ProviderID):
		return ownVM
	case named.AskedAt.IsZero():
		return unknownVM
	case !l.in.VM.Blind:
		return foreignVM
	case len(l.sameIDMachines()) > 0:
		return sharedVM
	default:
		return ownVM
	}
}

// deletesByName reports whether the VM is deleted only by the name of the machine, because the VM
// with the recorded provider ID belongs, or may belong, to another machine.
func (l *logic) deletesByName() bool { return l.ownership() != ownVM }

// nameTaken waits until the creation timeout, because the provider has the VM of another machine
// for the name of this machine.
func (l *logic) nameTaken(other *v1alpha1.Machine) Decision {
	op := l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, fmt.Sprintf(
		"the VM %s, which the provider has for the name of the machine, belongs to machine %s/%s", l.in.VM.Named.ProviderID, other.Namespace, other.Name))
	switch {
	case l.expired():
		return l.failCreation("")
	case !sameOperation(op, l.m.Status.LastOperation):
		return l.recordOperation(reasonProviderIDShared, op)
	}
	return l.holdToJoin(l.until("machine/"+other.Name, reasonProviderIDShared, op.Description, time.Minute))
}

// sharedText returns the message for a shared provider ID: the other machines, and what to do.
func (l *logic) sharedText() string {
	const most = 3
	names := l.sameIDMachines()
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return fmt.Sprintf("it is also the provider ID of machine %s%s: a deletion waits while the owner of the VM is not known; "+
		"remove the ID from the machine that does not own the VM, or label that machine %s=true",
		strings.Join(names, ", "), more, v1alpha1.LabelKeyForceDeletion)
}

// sharedErrors returns the error for a shared provider ID, for the condition Valid.
func (l *logic) sharedErrors() field.ErrorList {
	if len(l.sameIDMachines()) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "providerID"), facts.Excerpt(l.m.Spec.ProviderID), l.sharedText())}
}
