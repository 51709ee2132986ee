// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Group is the machines among which replacements are limited: those of one MachineDeployment, or of
// one MachineSet without a deployment. A machine with the zero Group is not limited.
type Group struct {
	// Namespace is the namespace of the machines.
	Namespace string
	// Deployment is the name of the MachineDeployment. It is empty for a MachineSet
	// without a deployment.
	Deployment string
	// Set is the name of the MachineSet, if there is no Deployment.
	Set string
}

// GroupOf returns the group of a machine. set is the MachineSet that controls the machine, or nil
// if it is not known or does not exist. A set with another UID than the owner reference is ignored.
//
// The group is that of the MachineDeployment in the owner reference of the set, or else in the
// label "name" of the machine, as in MCM. Without both it is that of the MachineSet in the owner
// reference of the machine. MCM reads only the label, and does not limit a machine without it. A
// nil machine has no group.
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

// NeedsSiblings reports whether [Decide] may read the siblings of a machine: in the phases in which
// a machine can fail because of its health. It is false for nil.
func NeedsSiblings(m *v1alpha1.Machine) bool {
	return m != nil && m.DeletionTimestamp.IsZero() && leads(m.Status.CurrentStatus.Phase, reasonHealthTimeout)
}

// setOf returns the reference to the MachineSet that controls a machine, or nil.
func setOf(m *v1alpha1.Machine) *metav1.OwnerReference {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil && owner.Kind == "MachineSet" {
		return owner
	}
	return nil
}

// String returns a text that differs for each group. It is empty for the zero Group.
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

// subject returns the subject of holds about the group.
func (g Group) subject() string {
	if g.Deployment != "" {
		return "machinedeployment/" + g.Deployment
	}
	return "machineset/" + g.Set
}
