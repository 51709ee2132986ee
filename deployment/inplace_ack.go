// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// acknowledge ends the update of machines that have moved. First the Node is given
// back to pods. Once it is, and once the set has reported on a size in which all
// its machines have a place, or names those that have none, the label is taken off
// the machine, and from then on it is one like all others.
func (u *updates) acknowledge() {
	placed := map[*account]bool{}
	for _, a := range u.c.accounts {
		placed[a] = a.reported && a.counts.Present <= int(a.set.Spec.Replicas)+a.named()
	}
	for _, o := range u.units {
		if o.stage != UpdateMoved || o.of.doomed {
			continue
		}
		name := o.machine.Labels[v1alpha1.NodeLabelKey]
		switch {
		case !o.known && name != "":
			u.c.hold(o.machine.Name, ReasonNodeUnknown, fmt.Sprintf("its update is not acknowledged before Node %s is known", name))
		case o.node != nil && marked(o.node):
			giveBack(u.c.editNode(o.node, "its update in place succeeded"))
		case placed[o.of]:
			edit := u.c.editMachine(o.machine, "its set has a place for it")
			delete(edit.Labels, v1alpha1.LabelKeyNodeUpdateResult)
		}
	}
}

// takeBack takes the marks of an update off the Nodes of the new set. They have
// some if the template went back to an earlier one in the middle of an update. An
// update that has begun goes on, and its Node is given back to pods at its end.
func (u *updates) takeBack() {
	for _, o := range u.units {
		if !o.of.isNew || o.node == nil {
			continue
		}
		switch o.stage {
		case UpdateCandidate:
			edit := u.c.editNode(o.node, "its machine is up to date")
			delete(edit.Labels, v1alpha1.LabelKeyNodeCandidateForUpdate)
			delete(edit.Labels, v1alpha1.LabelKeyNodeSelectedForUpdate)
		case UpdateStarted:
			if !hasLabel(o.node, v1alpha1.LabelKeyNodeCandidateForUpdate) {
				u.c.makeCandidate(o.node, "its update has begun and has to end")
			}
		case UpdateDone:
			giveBack(u.c.editNode(o.node, "its update in place succeeded"))
		case NotUpdating, UpdateFailed, UpdateMoved: // nothing to take back
		}
	}
}

// marked says whether a Node carries marks of an update.
func marked(node *corev1.Node) bool {
	return hasLabel(node, v1alpha1.LabelKeyNodeCandidateForUpdate) || selected(node) ||
		hasLabel(node, v1alpha1.LabelKeyNodeUpdateResult)
}

// giveBack ends the update of a Node, which it changes: the marks go, and pods may
// come as soon as the components that they need are there. A cordon of which
// another has recorded that it is his own stays.
func giveBack(node *corev1.Node) {
	delete(node.Labels, v1alpha1.LabelKeyNodeCandidateForUpdate)
	delete(node.Labels, v1alpha1.LabelKeyNodeSelectedForUpdate)
	delete(node.Labels, v1alpha1.LabelKeyNodeUpdateResult)
	delete(node.Annotations, v1alpha1.AnnotationKeyMachineUpdateFailedReason)
	if !cordonedByOthers(node) {
		node.Spec.Unschedulable = false
	}
	taints, _ := nodeops.RemoveTaint(node.Spec.Taints, corev1.Taint{Key: v1alpha1.PreferNoScheduleKey, Effect: corev1.TaintEffectPreferNoSchedule})
	node.Spec.Taints, _ = nodeops.SetTaint(taints, corev1.Taint{Key: v1alpha1.TaintNodeCriticalComponentsNotReady, Effect: corev1.TaintEffectNoSchedule})
}

func cordonedByOthers(node *corev1.Node) bool {
	for _, claim := range nodeops.Fences(node) {
		if claim.Holds(nodeops.MarkUnschedulable) {
			return true
		}
	}
	return false
}
