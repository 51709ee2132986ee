// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// syncNode writes what the Node lacks: the name of the machine, the finalizer, the node template,
// and the virtual capacity of the class. A Node that joins during a rollout also gets the annotations
// that disable its scale-down, in the same write.
func (l *logic) syncNode() Decision {
	if l.in.Node.Refused {
		return Decision{}
	}
	node, change := l.in.Node.Node, nodeops.Change{}
	if !l.templateApplied {
		var err error
		wanted, _ := facts.Acceptable(facts.NodeTemplate(l.m))
		if change, err = nodeops.SyncTemplate(node, wanted); err != nil {
			return l.recordUnreadable(err)
		}
	}
	named := l.namesNode()
	kept := facts.HasFinalizer(node, v1alpha1.NodeFinalizerName) || !node.DeletionTimestamp.IsZero()
	if change.Node == nil && named && kept {
		return l.syncCapacity() // a missing mark alone is no reason to write: it would cost a call and a write for each machine
	}
	what := change.Text
	if node = change.Node; node == nil {
		node = l.in.Node.Node.DeepCopy()
	}
	if !named {
		metav1.SetMetaDataLabel(&node.ObjectMeta, v1alpha1.MachineNameLabelKey, l.m.Name)
		what = cmp.Or(what, "machine name")
	}
	if !kept {
		node.Finalizers, what = append(node.Finalizers, v1alpha1.NodeFinalizerName), cmp.Or(what, "finalizer")
		if facts.HoldJoining(l.m, node) { // the deployment enables it again
			what += ", scale-down by the cluster autoscaler is disabled"
		}
	}
	return l.writeNode(withMark(node, l.m), what, reasonNodeOutOfSync)
}

// withMark adds the mark of the machine to a Node, and returns the Node.
func withMark(node *corev1.Node, m *v1alpha1.Machine) *corev1.Node {
	if m.UID != "" {
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, v1alpha1.MachineUIDAnnotation, string(m.UID))
	}
	return node
}

// markNode marks the Node of a machine that is being deleted. Another process can then continue,
// although the provider does not name a deleted VM.
func (l *logic) markNode() Decision {
	node := l.ownNode()
	if node == nil || l.m.UID == "" || facts.Marked(l.m, node) {
		return Decision{}
	}
	return l.writeNode(withMark(node.DeepCopy(), l.m), "UID of the machine", reasonDeleting)
}

// hasTemplate reports whether a Node has all of a template, and whether this is recorded on it.
// Such a Node needs no merge. Values that are already on the Node are valid.
func hasTemplate(node *corev1.Node, desired nodeops.Template) bool {
	change, err := nodeops.SyncTemplate(node, desired)
	return err == nil && change.Node == nil && len(change.Ignored) == 0
}

// recordUnreadable waits until the record of the applied template on the Node is repaired.
func (l *logic) recordUnreadable(err error) Decision {
	return hold(l.until(l.nodeSubject(), reasonNodeOutOfSync, err.Error(), time.Minute))
}

// syncCapacity writes the virtual capacity of the class to the Node.
func (l *logic) syncCapacity() Decision {
	c := l.in.Class.Class
	if c == nil || c.NodeTemplate == nil {
		return Decision{}
	}
	change, err := nodeops.SyncCapacity(l.in.Node.Node, c.NodeTemplate.VirtualCapacity)
	if err != nil {
		return l.recordUnreadable(err)
	}
	if change.Node == nil {
		return Decision{}
	}
	return l.do(machinist.Update{
		Before: l.in.Node.Node, Object: change.Node, Subresource: status, Changes: []string{"virtual capacity"},
	}, reasonNodeOutOfSync, change.Text)
}

// writeNode returns a decision that writes metadata and spec of the Node. Taints are one list, and a
// write replaces all of them. It is then made only if the Node is unchanged.
func (l *logic) writeNode(node *corev1.Node, what string, r machinist.Reason) Decision {
	before := l.in.Node.Node
	return l.do(machinist.Update{
		Before: before, Object: node, Changes: []string{what},
		Unchanged: !slices.EqualFunc(before.Spec.Taints, node.Spec.Taints, facts.SameTaint),
	}, r, "")
}

// writeCondition returns a decision that writes a condition of the Node. The condition of an update
// in place is written only if the Node is unchanged, so that a finished update does not begin
// again.
func (l *logic) writeCondition(c corev1.NodeCondition, r machinist.Reason) Decision {
	node := l.in.Node.Node.DeepCopy()
	node.Status.Conditions = nodeops.CloneAndAddCondition(node.Status.Conditions, c)
	return l.do(machinist.Update{
		Before: l.in.Node.Node, Object: node, Subresource: status, Unchanged: c.Type == v1alpha1.NodeInPlaceUpdate,
		Changes: []string{fmt.Sprintf("condition %s=%s (%s)", c.Type, c.Status, c.Reason)},
	}, r, "")
}

// NodeNameOf returns the name of the Node of a machine: the value of the label node, or, without
// the label, a name of the provider that is not a valid label value. A Node name may have 253
// characters, and a label value 63. Empty means that the name is not known, and the Node may be
// found by the provider ID. It is empty for a nil machine.
//
// MCM writes each name into the label. The API server then refuses the write, and the provider ID
// in it is lost, too.
func (v VMView) NodeNameOf(m *v1alpha1.Machine) string {
	if m == nil {
		return ""
	}
	if name := m.Labels[v1alpha1.NodeLabelKey]; name != "" {
		return name
	}
	if !facts.LabelValue(v.NodeName) {
		return v.NodeName
	}
	return ""
}

// NodeToDelete returns the Node to delete together with a machine, unless [Decide] finds that it is
// not that of the machine: the Node that the machine names, or, if that is missing or not that of
// the machine, the Node with the provider ID of the machine. A nil Node does not exist. It returns
// nil if no Node is left to delete.
func (v VMView) NodeToDelete(m *v1alpha1.Machine, named, sameID *corev1.Node, now time.Time) *corev1.Node {
	strange := func(node *corev1.Node) bool {
		p, _ := proofOf(m, node, v.Named, now)
		return p == foreign || p == unproven
	}
	if m != nil && sameID != nil && !strange(sameID) && (named == nil || strange(named)) {
		return sameID
	}
	return named
}

// nodeName returns the name of the Node. Empty means that it is not known.
func (l *logic) nodeName() string {
	name := l.in.VM.NodeNameOf(l.m)
	if node := l.in.Node.Node; name == "" && node != nil && !facts.LabelValue(node.Name) {
		return node.Name
	}
	return name
}

// nodeLooked reports whether the Node was read by its name.
func (l *logic) nodeLooked() bool {
	view, label := l.in.Node, l.m.Labels[v1alpha1.NodeLabelKey]
	return view.Looked && (view.Node != nil || label != "" || view.Name == l.nodeName())
}

// ignoredNodeName returns the error for a Node name that is not a valid label value. It is reported
// after the provider ID is recorded.
func (l *logic) ignoredNodeName() field.ErrorList {
	name := l.nodeName()
	if l.in.Node.NoTarget || l.m.Spec.ProviderID == "" || facts.LabelValue(name) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "labels").Key(v1alpha1.NodeLabelKey), facts.Excerpt(name), fmt.Sprintf(
		"the name of the Node has %d characters and cannot be the value of a label, which has at most %d: the label stays empty, and the Node is found by its provider ID",
		len(name), content.LabelValueMaxLength))}
}

// namesNode reports whether the Node has the label with the name of the machine. It is true for a
// name that is not a valid label value.
func (l *logic) namesNode() bool {
	return !facts.LabelValue(l.m.Name) || l.in.Node.Node.Labels[v1alpha1.MachineNameLabelKey] == l.m.Name
}

// nodeSubject returns the subject of the Node, or that of the machine if the name of the Node is
// not known.
func (l *logic) nodeSubject() string {
	if name := l.nodeName(); name != "" {
		return "node/" + name
	}
	return "machine/" + l.m.Name
}

// ErrNoTarget is the error of a reader of Nodes if machines join no cluster: see NoTarget of [NodeView].
var ErrNoTarget = errors.New("the machines join no cluster")
