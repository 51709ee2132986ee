// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// ownership is which machine owns the VM with the recorded provider ID.
type ownership uint8

const (
	ownVM     ownership = iota // this machine: no other machine has the ID, or there is evidence
	sharedVM                   // not known: several machines have the ID, and there is no evidence
	foreignVM                  // another machine: there is evidence
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

// ownership returns which machine owns the VM with the recorded provider ID. The evidence is the
// name of a machine on the Node with that ID, and the name for which the provider lists the VM.
// They have to agree, and to be the name of a machine with the ID.
func (l *logic) ownership() ownership {
	others := l.sameIDMachines()
	if len(others) == 0 {
		return ownVM
	}
	var evidence []string
	if name := l.in.ProviderID.ListedFor; name != "" {
		evidence = append(evidence, name)
	}
	if node := l.in.Node.Node; node != nil {
		id := nodeops.NormalizeProviderID(node.Spec.ProviderID)
		if name := node.Labels[v1alpha1.MachineNameLabelKey]; name != "" && id == nodeops.NormalizeProviderID(l.m.Spec.ProviderID) {
			evidence = append(evidence, name)
		}
	}
	slices.Sort(evidence)
	switch evidence = slices.Compact(evidence); {
	case len(evidence) != 1:
		return sharedVM
	case evidence[0] == l.m.Name:
		return ownVM
	case slices.Contains(others, evidence[0]):
		return foreignVM
	default:
		return sharedVM
	}
}

// deletesByName reports whether the VM is deleted only by the name of the machine, because the VM
// with the recorded provider ID belongs, or may belong, to another machine.
func (l *logic) deletesByName() bool { return l.ownership() != ownVM }

// ownsNode reports whether the Node may belong to the machine. The Node of a VM of another machine
// does not. For a machine that is being deleted, the Node of a VM that may belong to another
// machine does not either.
func (l *logic) ownsNode() bool {
	own := l.ownership()
	return own == ownVM || own == sharedVM && l.m.DeletionTimestamp.IsZero()
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
	return field.ErrorList{field.Invalid(field.NewPath("spec", "providerID"), excerpt(l.m.Spec.ProviderID), l.sharedText())}
}
