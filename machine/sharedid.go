// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

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

// nameTaken waits until the creation timeout, because the provider has the VM of another machine for the
// name of this machine.
func (l *logic) nameTaken(other *v1alpha1.Machine) Decision {
	op := l.operation(v1alpha1.MachineOperationCreate, v1alpha1.MachineStateFailed, fmt.Sprintf(
		"the VM %s, which the provider has for the name of the machine, belongs to machine %s/%s", l.in.VM.Named.ProviderID, other.Namespace, other.Name))
	switch {
	case l.expired():
		return l.failCreation("")
	case !sameOperation(op, l.m.Status.LastOperation):
		return l.recordOperation(reasonProviderIDShared, op)
	}
	return l.holdToJoin(machinist.Hold{
		Subject: "machine/" + other.Name, Reason: reasonProviderIDShared, Message: op.Description, Until: l.now.Add(time.Minute),
	})
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
