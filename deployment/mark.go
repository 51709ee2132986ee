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

// marks are what the Nodes of a set carry because of a roll-out.
type marks struct {
	taint      corev1.TaintEffect // of the taint that discourages pods; empty for none
	candidate  bool               // may be selected for an update
	labels     bool               // whether the labels of candidates are dealt with here
	autoscaler mark
}

// A mark is put on, taken off, or left as it is.
type mark int

const (
	leave mark = iota
	putOn
	takeOff
)

// markNodes marks the Nodes of all old machines, and takes the marks back from
// those of new ones. It looks at what is there, not at what was done before: so
// Nodes that join an old set late are marked, and those of a set that has become
// the new one again are not. Nothing changes before there is a new set.
func (c *pass) markNodes() {
	a := c.account(c.newSet)
	if a == nil || a.doomed {
		return
	}
	hold := c.autoscalerMark()
	for _, a := range c.accounts {
		c.markSet(a)
		for _, m := range a.machines {
			if !machineset.Leaving(m) {
				c.markNode(m, c.marksOf(c.home(a, m), hold))
			}
		}
	}
}

// marksOf returns what the Nodes of a set should carry.
func (c *pass) marksOf(a *account, hold mark) marks {
	inPlace := c.d.Spec.Strategy.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType
	w := marks{autoscaler: hold, labels: !inPlace}
	if !a.isNew {
		w.taint = c.discourage()
		w.candidate = c.policy.ByLabel && c.d.Spec.Strategy.Type != v1alpha1.RecreateMachineDeploymentStrategyType
	}
	return w
}

// discourage returns the effect of the taint of old Nodes, empty for no taint. A
// Recreate needs none: the old machines are all gone before there is another
// place to go.
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

// autoscalerMark says what becomes of the annotations that hold the autoscaler:
// they are on while old machines are left, and off when the roll-out is complete;
// in between they stay as they are.
func (c *pass) autoscalerMark() mark {
	for _, a := range c.accounts {
		if !a.isNew && (a.counts.Machines > 0 || a.next.Spec.Replicas > 0) {
			if c.policy.HoldAutoscaler {
				return putOn
			}
			return leave
		}
	}
	if !c.changing() && c.ledger().atRest() && Complete(c.d, Status(c.d, c.newSet, c.old, c.now)) {
		return takeOff
	}
	return leave
}

// home returns the set that a machine belongs to after this pass.
func (c *pass) home(a *account, m *v1alpha1.Machine) *account {
	e := c.edits.machines[m.Name]
	if e == nil {
		return a
	}
	owner := metav1.GetControllerOfNoCopy(e.next)
	for _, b := range c.accounts {
		if owner != nil && owner.UID == b.set.UID {
			return b
		}
	}
	return a
}

// markSet says on an old set that its Nodes are marked, for others to see.
func (c *pass) markSet(a *account) {
	_, marked := a.set.Annotations[v1alpha1.PreferNoScheduleKey]
	switch {
	case a.doomed:
	case a.isNew || c.discourage() == "":
		c.unmarkSet(a)
	case !marked && (a.counts.Present > 0 || a.next.Spec.Replicas > 0):
		if a.next.Annotations == nil {
			a.next.Annotations = map[string]string{}
		}
		a.next.Annotations[v1alpha1.PreferNoScheduleKey] = markValue
		a.changes = append(a.changes, "its Nodes are discouraged")
	}
}

func (c *pass) unmarkSet(a *account) {
	if _, marked := a.next.Annotations[v1alpha1.PreferNoScheduleKey]; marked {
		delete(a.next.Annotations, v1alpha1.PreferNoScheduleKey)
		a.changes = append(a.changes, "its Nodes are discouraged no more")
	}
}

// rehabilitate takes the marks of an old set from one that becomes the new one:
// those of its Nodes, and its annotation. The label that keeps it from growing
// goes when it is the new one.
func (c *pass) rehabilitate(a *account) {
	if a == nil || a.doomed {
		return
	}
	c.unmarkSet(a)
	w := marks{labels: c.d.Spec.Strategy.Type != v1alpha1.InPlaceUpdateMachineDeploymentStrategyType}
	for _, m := range a.machines {
		if !machineset.Leaving(m) {
			c.markNode(m, w)
		}
	}
}

// markNode brings the Node of a machine to what it should carry, on top of what
// this pass has changed already. Nodes that are not known are left out.
func (c *pass) markNode(m *v1alpha1.Machine, w marks) {
	n, _ := c.nodeOf(m)
	if n == nil || n.DeletionTimestamp != nil {
		return
	}
	now := n
	if e := c.edits.nodes[n.Name]; e != nil {
		now = e.next
	}
	if w.differ(now, m) && c.mayEditNode(n) {
		w.apply(c.editNode(n, w.changes(now, m)), m)
	}
}

// differ says whether a Node carries something else than it should.
func (w marks) differ(n *corev1.Node, m *v1alpha1.Machine) bool {
	return !w.tainted(n) || w.relabels(n, m) || w.holds(n) || w.releases(n, m)
}

// changes says what has to change in a Node.
func (w marks) changes(n *corev1.Node, m *v1alpha1.Machine) string {
	var why []string
	if !w.tainted(n) {
		if w.taint == "" {
			why = append(why, "pods are welcome again")
		} else {
			why = append(why, "pods should go elsewhere")
		}
	}
	if w.relabels(n, m) {
		if w.candidate {
			why = append(why, "candidate for an update")
		} else {
			why = append(why, "no candidate for an update any more")
		}
	}
	switch {
	case w.holds(n):
		why = append(why, "the autoscaler keeps away")
	case w.releases(n, m):
		why = append(why, "the autoscaler may come back")
	}
	return strings.Join(why, ", ")
}

// apply makes a Node carry what it should.
func (w marks) apply(n *corev1.Node, m *v1alpha1.Machine) {
	if !w.tainted(n) {
		n.Spec.Taints, _ = nodeops.RemoveTaintKey(n.Spec.Taints, v1alpha1.PreferNoScheduleKey)
		if w.taint != "" {
			n.Spec.Taints, _ = nodeops.SetTaint(n.Spec.Taints, corev1.Taint{Key: v1alpha1.PreferNoScheduleKey, Value: markValue, Effect: w.taint})
		}
	}
	switch {
	case !w.relabels(n, m):
	case w.candidate:
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate] = v1alpha1.LabelValueNodeCandidateForReplacement
	default:
		delete(n.Labels, v1alpha1.LabelKeyNodeCandidateForUpdate)
		delete(n.Labels, v1alpha1.LabelKeyNodeSelectedForUpdate)
	}
	switch {
	case w.holds(n):
		if n.Annotations == nil {
			n.Annotations = map[string]string{}
		}
		n.Annotations[scaleDownOff], n.Annotations[scaleDownOffOur] = labelTrue, labelTrue
	case w.releases(n, m):
		delete(n.Annotations, scaleDownOffOur)
		if n.Annotations[scaleDownOff] == labelTrue {
			delete(n.Annotations, scaleDownOff)
		}
	}
}

// tainted says whether a Node has the taint that it should have, and not the same
// with another effect.
func (w marks) tainted(n *corev1.Node) bool {
	found := false
	for _, t := range n.Spec.Taints {
		if t.Key != v1alpha1.PreferNoScheduleKey {
			continue
		}
		if t.Effect != w.taint || t.Value != markValue || found {
			return false
		}
		found = true
	}
	return found == (w.taint != "")
}

// relabels says whether the labels of candidates change. A machine that is being
// updated in place keeps them until that has ended.
func (w marks) relabels(n *corev1.Node, m *v1alpha1.Machine) bool {
	value, candidate := n.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate]
	switch {
	case !w.labels:
		return false
	case m.Status.CurrentStatus.Phase == v1alpha1.MachineInPlaceUpdating, machineset.Transferred(m):
		return false
	case w.candidate:
		return value != v1alpha1.LabelValueNodeCandidateForReplacement
	default:
		return candidate
	}
}

// holds says whether the annotations that hold the autoscaler are missing. Those
// of a user, who has put only the first, are the user's affair.
func (w marks) holds(n *corev1.Node) bool {
	if w.autoscaler != putOn {
		return false
	}
	_, disabled := n.Annotations[scaleDownOff]
	_, ours := n.Annotations[scaleDownOffOur]
	return !disabled && !ours
}

// releases says whether the annotations that hold the autoscaler are taken back.
// They stay on the Node of a preserved machine, which needs them too.
func (w marks) releases(n *corev1.Node, m *v1alpha1.Machine) bool {
	if w.autoscaler != takeOff || m.Status.CurrentStatus.PreserveExpiryTime != nil {
		return false
	}
	_, ours := n.Annotations[scaleDownOffOur]
	return ours
}
