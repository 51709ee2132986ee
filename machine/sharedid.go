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

// ownership is whose VM the recorded provider ID is.
type ownership uint8

const (
	ownVM     ownership = iota // the machine's: no other machine records the ID, or there is proof
	sharedVM                   // several machines record the ID, and nothing proves whose VM it is
	foreignVM                  // another machine's: there is proof
)

// sameIDMachines returns the names of the other machines that record the same provider ID,
// in order. One in another namespace has that before its name.
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

// ownership returns whose VM the recorded provider ID is. What counts as proof is the
// name of a machine on the Node with that ID, and the name for which the provider lists
// the VM. They have to agree, and to name one of the machines that record the ID.
func (l *logic) ownership() ownership {
	others := l.sameIDMachines()
	if len(others) == 0 {
		return ownVM
	}
	var proof []string
	if name := l.in.ProviderID.ListedFor; name != "" {
		proof = append(proof, name)
	}
	if node := l.in.Node.Node; node != nil {
		id := nodeops.NormalizeProviderID(node.Spec.ProviderID)
		if name := node.Labels[v1alpha1.MachineNameLabelKey]; name != "" && id == nodeops.NormalizeProviderID(l.m.Spec.ProviderID) {
			proof = append(proof, name)
		}
	}
	slices.Sort(proof)
	switch proof = slices.Compact(proof); {
	case len(proof) != 1:
		return sharedVM
	case proof[0] == l.m.Name:
		return ownVM
	case slices.Contains(others, proof[0]):
		return foreignVM
	default:
		return sharedVM
	}
}

// deletesByName says whether the VM is deleted by the name of the machine alone, as the
// recorded provider ID is, or may be, that of another machine's VM.
func (l *logic) deletesByName() bool { return l.ownership() != ownVM }

// ownsNode says whether the Node may be that of the machine. That of a VM which is
// another machine's is not, nor is one of a VM that may be when the machine goes.
func (l *logic) ownsNode() bool {
	own := l.ownership()
	return own == ownVM || own == sharedVM && l.m.DeletionTimestamp.IsZero()
}

// sharedText says which machines record the same provider ID, and what to do.
func (l *logic) sharedText() string {
	const most = 3
	names := l.sameIDMachines()
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return fmt.Sprintf("machine %s%s records it, too: while it is not proved whose VM it is, a deletion waits; "+
		"remove the ID from the machine that does not own the VM, or label that machine %s=true",
		strings.Join(names, ", "), more, v1alpha1.LabelKeyForceDeletion)
}

// sharedErrors returns what is wrong with the provider ID, for the condition.
func (l *logic) sharedErrors() field.ErrorList {
	if len(l.sameIDMachines()) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "providerID"), excerpt(l.m.Spec.ProviderID), l.sharedText())}
}
