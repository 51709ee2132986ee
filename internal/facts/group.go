// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
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
// reference of the machine. MCM reads only the label, and does not limit a machine without it.
//
// Without a machine, it is the group of the machines that the set creates.
func GroupOf(m *v1alpha1.Machine, set *v1alpha1.MachineSet) Group {
	switch {
	case m == nil && set == nil:
		return Group{}
	case m == nil:
		m = &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Labels: set.Spec.Template.Labels, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.MachineSetKind))},
		}}
	}
	owner := SetOf(m)
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

// Subject returns the subject of holds about the group.
func (g Group) Subject() string {
	if g.Deployment != "" {
		return "machinedeployment/" + g.Deployment
	}
	return "machineset/" + g.Set
}

// PermitOver reports whether a machine has failed or is being deleted, and counts as such. One that
// is Running or Unknown, or whose in-place update has failed, may have failed without the cache
// showing it.
func PermitOver(m *v1alpha1.Machine) bool {
	return m == nil || !TraitsOf(m.Status.CurrentStatus.Phase).MayFail
}

// FreesReplacement reports what a change of a machine in the cache allows. group means that another
// machine of its [Group] may fail now: the machine counts less towards the replacement limit, leaves
// the group, or is deleted. permit means that the permit which machine.TakePermit took for the machine can
// be returned: the cache shows that the machine has failed or is being deleted, or no longer has it.
// If a machine has recovered instead, machine.Decide returns its permit.
func FreesReplacement(before, after *v1alpha1.Machine) (group, permit bool) {
	permit = PermitOver(after)
	switch {
	case before == nil || before == after:
		return false, permit
	case after == nil || before.UID != after.UID:
		return true, permit
	default:
		return Replacements(after) < Replacements(before) ||
			before.Labels[v1alpha1.LabelKeyMachineDeploymentName] != after.Labels[v1alpha1.LabelKeyMachineDeploymentName] ||
			!slices.EqualFunc(before.OwnerReferences, after.OwnerReferences, SameOwner), permit
	}
}
