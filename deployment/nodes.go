// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

const (
	markValue = "True" // of the taint and of the annotation of a set
	labelTrue = "true"
)

// marks are the marks of a rollout on the Nodes of a set.
type marks struct {
	isNew   bool               // the machine is of the new set
	taint   corev1.TaintEffect // empty for no taint
	unlabel bool               // remove the labels of an in-place update
	hold    bool               // disable scale-down by the autoscaler
	release bool               // enable scale-down again
}

// markNodes marks the Nodes of old machines and removes the marks from those of new ones. It
// compares with the observed Nodes. So it also marks Nodes that join an old set late, and unmarks
// those of an old set that has become the new one. It does nothing before the new set exists.
func (c *pass) markNodes() {
	if a := c.ledger.of(c.newSet); a == nil || a.deleting {
		return
	}
	hold, release := c.autoscalerMarks()
	for _, a := range c.ledger.accounts {
		c.markSet(a)
		a.holdJoining(hold && a.isNew)
		for _, m := range a.machines {
			if members.Leaving(m) {
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

// discourage returns the effect of the taint of old Nodes. Empty means no taint: in a Recreate all
// old machines are deleted before new ones exist.
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

// autoscalerMarks reports whether to add or to remove the annotations that disable scale-down by
// the autoscaler. They are added while old machines exist, and removed when the rollout is
// complete.
func (c *pass) autoscalerMarks() (hold, release bool) {
	for _, a := range c.ledger.accounts {
		if !a.isNew && (a.counts.Machines > 0 || a.next.Spec.Replicas > 0) {
			return c.policy.HoldAutoscaler, false
		}
	}
	return false, !c.changing() && c.ledger.atRest() && Complete(c.d, rollout.Counted(c.d, c.newSet, c.old, c.now))
}

// markSet adds the annotation to an old set that says that its Nodes are tainted.
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

// holdJoining adds the annotation to the new set that disables scale-down by the autoscaler for the
// Nodes that join, and removes it from all other sets, and when no old machine is left.
func (a *account) holdJoining(hold bool) {
	switch held := facts.JoinHeld(a.next); {
	case a.deleting || hold == held:
	case hold:
		metav1.SetMetaDataAnnotation(&a.next.ObjectMeta, facts.JoinHeldAnnotation, labelTrue)
		a.changes = append(a.changes, "scale-down of its joining nodes is disabled")
	default:
		delete(a.next.Annotations, facts.JoinHeldAnnotation)
		a.changes = append(a.changes, "scale-down of its joining nodes is no longer disabled")
	}
}

func (a *account) unmark() {
	if _, marked := a.next.Annotations[v1alpha1.PreferNoScheduleKey]; marked {
		delete(a.next.Annotations, v1alpha1.PreferNoScheduleKey)
		a.changes = append(a.changes, "its nodes are no longer tainted")
	}
}

// unmark removes the marks of an old set and of its Nodes when it becomes the new one. The label
// that disables scale-up is removed later.
func (c *pass) unmark(a *account) {
	if a == nil || a.deleting {
		return
	}
	a.unmark()
	for _, m := range a.machines {
		if !members.Leaving(m) {
			c.markNode(m, marks{isNew: true, unlabel: !updatesInPlace(c.d)})
		}
	}
}

// markNode edits the Node of a machine, after other edits of this pass. Unknown Nodes are skipped.
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

// nodeEdit is one change of a Node, as text.
type nodeEdit string

const (
	untaintNode       nodeEdit = "taint removed"
	taintNode         nodeEdit = "tainted during the rollout"
	unlabelNode       nodeEdit = "no longer a candidate for an update in place"
	holdAutoscaler    nodeEdit = "scale-down by the cluster autoscaler is disabled"
	releaseAutoscaler nodeEdit = "scale-down by the cluster autoscaler is enabled again"
)

// nodeEdits are the changes of taint, labels and annotations. Empty means none.
type nodeEdits [3]nodeEdit

// apply makes the change in a Node.
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
		facts.Hold(n)
	case releaseAutoscaler:
		facts.Unhold(n)
	}
}

// edits returns the necessary changes of a Node.
func (w marks) edits(n *corev1.Node, m *v1alpha1.Machine) (due nodeEdits) {
	switch {
	case w.tainted(n):
	case w.taint == "":
		due[0] = untaintNode
	default:
		due[0] = taintNode
	}
	// A machine that is being updated in place keeps the labels until that has ended.
	if w.unlabel && (hasLabel(n, v1alpha1.LabelKeyNodeCandidateForUpdate) || w.isNew && selected(n)) && m.Status.CurrentStatus.Phase != v1alpha1.MachineInPlaceUpdating && !members.Transferred(m) {
		due[1] = unlabelNode
	}
	switch {
	case w.hold && facts.Holdable(n):
		due[2] = holdAutoscaler
	case w.release && facts.HeldByMCM(n) && m.Status.CurrentStatus.PreserveExpiryTime == nil: // a preserved machine needs them too
		due[2] = releaseAutoscaler
	}
	return due
}

func untaint(n *corev1.Node) {
	n.Spec.Taints, _ = nodeops.RemoveTaintKey(n.Spec.Taints, v1alpha1.PreferNoScheduleKey)
}

// tainted reports whether a Node has the right taint, and no other with the same key.
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
