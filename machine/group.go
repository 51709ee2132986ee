// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Group names the machines among which replacements are limited: those of one
// MachineDeployment, or of one MachineSet without a deployment. The zero Group is no
// group: its machine is not limited.
type Group struct {
	// Namespace of the machines.
	Namespace string
	// Deployment is the name of the MachineDeployment. It is empty for a MachineSet
	// without a deployment.
	Deployment string
	// Set is the name of the MachineSet, if there is no Deployment.
	Set string
}

// GroupOf returns the group of a machine. set is the MachineSet that controls the
// machine, or nil if it is not known or there is none. A set with another UID than
// the machine's owner reference names counts as not known.
//
// Owner references count first: from the machine to its MachineSet, and from that to
// its MachineDeployment. Where they name no deployment, the label "name" does, as in
// MCM. Where there is no such label either, the machines of the
// MachineSet are the group.
//
// MCM reads the label alone, and limits no machine without it. A nil
// machine has no group.
func GroupOf(m *v1alpha1.Machine, set *v1alpha1.MachineSet) Group {
	if m == nil {
		return Group{}
	}
	owner := setOf(m)
	if owner != nil && set != nil && set.UID == owner.UID {
		if d := metav1.GetControllerOfNoCopy(set); d != nil && d.Kind == "MachineDeployment" {
			return Group{Namespace: m.Namespace, Deployment: d.Name}
		}
	}
	switch label := m.Labels[v1alpha1.LabelKeyMachineDeploymentName]; {
	case label != "":
		return Group{Namespace: m.Namespace, Deployment: label}
	case owner != nil:
		return Group{Namespace: m.Namespace, Set: owner.Name}
	default:
		return Group{}
	}
}

// NeedsSiblings reports whether [Decide] may read the siblings of a machine: only in
// the phases in which bad health can fail it. A nil machine needs none.
func NeedsSiblings(m *v1alpha1.Machine) bool {
	return m != nil && m.DeletionTimestamp.IsZero() && leads(m.Status.CurrentStatus.Phase, ReasonHealthTimeout)
}

// setOf returns the reference to the MachineSet that controls a machine, or nil.
func setOf(m *v1alpha1.Machine) *metav1.OwnerReference {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil && owner.Kind == "MachineSet" {
		return owner
	}
	return nil
}

// String returns a text that differs for every group, and is empty for none.
func (g Group) String() string {
	switch {
	case g == Group{}:
		return ""
	case g.Deployment != "":
		return g.Namespace + "/" + g.Deployment
	default:
		return strings.Join([]string{g.Namespace, "machineset", g.Set}, "/")
	}
}

// subject names the object that stands for the group.
func (g Group) subject() string {
	if g.Deployment != "" {
		return "machinedeployment/" + g.Deployment
	}
	return "machineset/" + g.Set
}
