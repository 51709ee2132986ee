// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
	"github.com/machinist-dev/machinist/nodeops"
)

const (
	markValue       = "True" // of the taint and of the annotation of a set
	labelTrue       = "true"
	scaleDownOff    = v1alpha1.ClusterAutoscalerScaleDownDisabledAnnotationKey
	scaleDownOffOur = v1alpha1.ClusterAutoscalerScaleDownDisabledByMCMAnnotationKey
)

// marks are what the Nodes of a set carry because of a rollout.
type marks struct {
	isNew   bool               // the machine is of the new set
	taint   corev1.TaintEffect // of the taint that discourages pods; empty for none
	unlabel bool               // the labels of an update in place are taken off
	hold    bool               // the annotations that hold the autoscaler are put on
	release bool               // they are taken off
}

// markNodes marks the Nodes of all old machines, and takes the marks off those of new
// ones. It compares with what is there, not with what was done before: so Nodes that join
// an old set late are marked, and those of a set that has become the new one again are
// not. Nothing changes before there is a new set.
func (c *pass) markNodes() {
	if a := c.ledger.of(c.newSet); a == nil || a.deleting {
		return
	}
	hold, release := c.autoscalerMarks()
	for _, a := range c.ledger.accounts {
		c.markSet(a)
		for _, m := range a.machines {
			if machineset.Leaving(m) {
				continue
			}
			w := marks{isNew: metav1.IsControlledBy(c.edited(m), c.newSet), unlabel: !updatesInPlace(c.d), hold: hold, release: release}
			if !w.isNew {
				w.taint = c.discourage()
			}
			c.markNode(m, w)
		}
	}
}

// discourage returns the effect of the taint of old Nodes, empty for no taint. A Recreate
// needs none: the old machines are all gone before pods have another place to go.
func (c *pass) discourage() corev1.TaintEffect {
	switch {
	case c.d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType, c.policy.Discourage == DiscourageNone:
		return ""
	case c.policy.Discourage == DiscourageNoSchedule:
		return corev1.TaintEffectNoSchedule
	default:
		return corev1.TaintEffectPreferNoSchedule
	}
}

// autoscalerMarks returns what becomes of the annotations that hold the autoscaler: they
// are put on while old machines are left, and taken off when the rollout is complete. In
// between they stay.
func (c *pass) autoscalerMarks() (hold, release bool) {
	for _, a := range c.ledger.accounts {
		if !a.isNew && (a.counts.Machines > 0 || a.next.Spec.Replicas > 0) {
			return c.policy.HoldAutoscaler, false
		}
	}
	return false, !c.changing() && c.ledger.atRest() && Complete(c.d, statusOf(c.d, c.newSet, c.old, c.now))
}

// markSet says on an old set that its Nodes are marked, for other controllers to see.
func (c *pass) markSet(a *account) {
	_, marked := a.set.Annotations[v1alpha1.PreferNoScheduleKey]
	switch {
	case a.deleting:
	case a.isNew || c.discourage() == "":
		a.unmark()
	case !marked && (a.counts.Present > 0 || a.next.Spec.Replicas > 0):
		metav1.SetMetaDataAnnotation(&a.next.ObjectMeta, v1alpha1.PreferNoScheduleKey, markValue)
		a.changes = append(a.changes, "its nodes are tainted during the rollout")
	}
}

func (a *account) unmark() {
	if _, marked := a.next.Annotations[v1alpha1.PreferNoScheduleKey]; marked {
		delete(a.next.Annotations, v1alpha1.PreferNoScheduleKey)
		a.changes = append(a.changes, "its nodes are no longer tainted")
	}
}

// unmark takes the marks of an old set off one that becomes the new one: those of its
// Nodes, and its annotation. The label that keeps it from growing goes when it is the new
// one.
func (c *pass) unmark(a *account) {
	if a == nil || a.deleting {
		return
	}
	a.unmark()
	for _, m := range a.machines {
		if !machineset.Leaving(m) {
			c.markNode(m, marks{isNew: true, unlabel: !updatesInPlace(c.d)})
		}
	}
}

// markNode brings the Node of a machine to what it should carry, on top of what this pass
// has edited already. Nodes that are not known are left out.
func (c *pass) markNode(m *v1alpha1.Machine, w marks) {
	n, _ := c.in.nodeOf(m)
	if n == nil || n.DeletionTimestamp != nil {
		return
	}
	now := n
	if e := c.nodes[n.Name]; e != nil {
		now = e.next
	}
	due := w.edits(now, m)
	if due == (nodeEdits{}) || !c.mayEditNode(n) {
		return
	}
	var why []string
	for _, e := range due {
		if e != "" {
			why = append(why, string(e))
		}
	}
	next := c.editNode(n, strings.Join(why, ", "))
	for _, e := range due {
		e.apply(next, w.taint)
	}
}

// A nodeEdit is one change of a Node, and the reason for it.
type nodeEdit string

const (
	untaintNode       nodeEdit = "taint removed"
	taintNode         nodeEdit = "tainted during the rollout"
	unlabelNode       nodeEdit = "no longer a candidate for an update in place"
	holdAutoscaler    nodeEdit = "scale-down by the cluster autoscaler is disabled"
	releaseAutoscaler nodeEdit = "scale-down by the cluster autoscaler is enabled again"
)

// nodeEdits are the changes of taint, labels and annotations; empty for those not due.
type nodeEdits [3]nodeEdit

// apply changes a Node.
func (e nodeEdit) apply(n *corev1.Node, effect corev1.TaintEffect) {
	switch e {
	case untaintNode:
		untaint(n)
	case taintNode:
		untaint(n)
		n.Spec.Taints, _ = nodeops.SetTaint(n.Spec.Taints, corev1.Taint{Key: v1alpha1.PreferNoScheduleKey, Value: markValue, Effect: effect})
	case unlabelNode:
		unlabel(n)
	case holdAutoscaler:
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, scaleDownOff, labelTrue)
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, scaleDownOffOur, labelTrue)
	case releaseAutoscaler:
		delete(n.Annotations, scaleDownOffOur)
		if n.Annotations[scaleDownOff] == labelTrue {
			delete(n.Annotations, scaleDownOff)
		}
	}
}

// edits returns what has to change in a Node.
func (w marks) edits(n *corev1.Node, m *v1alpha1.Machine) (due nodeEdits) {
	switch {
	case w.tainted(n):
	case w.taint == "":
		due[0] = untaintNode
	default:
		due[0] = taintNode
	}
	// A machine that is being updated in place keeps the labels until that has ended.
	if w.unlabel && (hasLabel(n, v1alpha1.LabelKeyNodeCandidateForUpdate) || w.isNew && selected(n)) && m.Status.CurrentStatus.Phase != v1alpha1.MachineInPlaceUpdating && !machineset.Transferred(m) {
		due[1] = unlabelNode
	}
	_, disabled := n.Annotations[scaleDownOff]
	_, ours := n.Annotations[scaleDownOffOur]
	switch {
	case w.hold && !disabled && !ours: // a user's own annotation, without ours, is left alone
		due[2] = holdAutoscaler
	case w.release && ours && m.Status.CurrentStatus.PreserveExpiryTime == nil: // a preserved machine needs them too
		due[2] = releaseAutoscaler
	}
	return due
}

func untaint(n *corev1.Node) {
	n.Spec.Taints, _ = nodeops.RemoveTaintKey(n.Spec.Taints, v1alpha1.PreferNoScheduleKey)
}

// tainted reports whether a Node has the taint that it should have, and not the same key
// with another effect.
func (w marks) tainted(n *corev1.Node) bool {
	var all, right int
	for _, t := range n.Spec.Taints {
		if t.Key == v1alpha1.PreferNoScheduleKey {
			all++
			if t.Effect == w.taint && t.Value == markValue {
				right++
			}
		}
	}
	if w.taint == "" {
		return all == 0
	}
	return all == 1 && right == 1
}
