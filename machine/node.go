// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"encoding/json"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// syncNode keeps the Node as the machine wants it: the name of the machine, our
// finalizer, the node template, and the virtual capacity of the class.
func (l *logic) syncNode() Decision {
	node, change := l.in.Node.Node, nodeops.Change{}
	if !l.templateApplied {
		var err error
		if change, err = nodeops.SyncTemplate(node, acceptable(nodeTemplate(l.m))); err != nil {
			return l.recordUnreadable(err)
		}
	}
	named := l.namesNode()
	guarded := hasFinalizer(node, v1alpha1.NodeFinalizerName) || !node.DeletionTimestamp.IsZero()
	if change.Node == nil && named && guarded {
		return l.syncCapacity()
	}
	what := change.Text
	if node = change.Node; node == nil {
		node = l.in.Node.Node.DeepCopy()
	}
	if !named {
		node.Labels, what = withKey(node.Labels, v1alpha1.MachineNameLabelKey, l.m.Name), cmp.Or(what, "machine name")
	}
	if !guarded {
		node.Finalizers, what = append(node.Finalizers, v1alpha1.NodeFinalizerName), cmp.Or(what, "finalizer")
	}
	return l.do(UpdateNode{Node: node, What: what}, ReasonNodeOutOfSync, "")
}

// hasTemplate says whether a Node has all that is desired, and that this is recorded
// on it: it needs no merge then, as what was applied before is what is wanted. And
// what a Node has, a Node can have.
func hasTemplate(node *corev1.Node, desired nodeops.Template) bool {
	change, err := nodeops.SyncTemplate(node, desired)
	return err == nil && change.Node == nil && len(change.Ignored) == 0
}

// recordUnreadable waits until the record on the Node is repaired.
func (l *logic) recordUnreadable(err error) Decision {
	return hold(machinist.Hold{
		Subject: l.nodeSubject(), Reason: ReasonNodeOutOfSync, Message: err.Error(), Until: l.now.Add(time.Minute),
	})
}

// syncCapacity keeps the virtual capacity of the class on the Node.
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
	return l.do(UpdateNodeCapacity{Node: change.Node}, ReasonNodeOutOfSync, change.Text)
}

// foreignNode says whether a Node, although the label of the machine names it,
// belongs to another machine: the name of another stands on it, or it was there
// before the machine, with the provider ID of another VM. A Node with the name of
// this machine on it is never foreign, whatever its provider ID: there are clouds
// whose machines and Nodes have no ID in common, and machines that were moved to
// another control plane are younger than their Nodes. A nil machine or Node is not.
//
// MCM takes every Node for foreign that exists when the VM is
// made, unless it has the name of the machine.
func foreignNode(m *v1alpha1.Machine, node *corev1.Node) bool {
	if m == nil || node == nil {
		return false
	}
	switch node.Labels[v1alpha1.MachineNameLabelKey] {
	case m.Name:
		return false
	case "":
	default:
		return true
	}
	older := !node.CreationTimestamp.IsZero() && node.CreationTimestamp.Before(&m.CreationTimestamp)
	return older && m.Spec.ProviderID != "" && node.Spec.ProviderID != "" &&
		!nodeops.SameInstance(m.Spec.ProviderID, node.Spec.ProviderID)
}

// ownNode returns the Node of the machine, or nil if there is none: a Node of
// another machine is not there, as far as this one is concerned.
func (l *logic) ownNode() *corev1.Node {
	if l.in.Node.NoTarget || foreignNode(l.m, l.in.Node.Node) || !l.ownsNode() {
		return nil
	}
	return l.in.Node.Node
}

// nodeTemplate returns what the machine wants its Node to carry. The label with
// the name of the machine is not for the template to set. What no Node can have is
// still there; see [acceptable].
func nodeTemplate(m *v1alpha1.Machine) nodeops.Template {
	t := m.Spec.NodeTemplateSpec
	labels := t.Labels
	if _, ok := labels[v1alpha1.MachineNameLabelKey]; ok {
		labels = maps.Clone(labels)
		delete(labels, v1alpha1.MachineNameLabelKey)
	}
	return nodeops.Template{Labels: labels, Annotations: t.Annotations, Taints: t.Spec.Taints}
}

// deletionRequested reports whether a user asks for the deletion of the machine by its
// Node: the Node is being deleted and waits for our finalizer, or is annotated.
func deletionRequested(node *corev1.Node) bool {
	return node.Annotations[v1alpha1.TriggerDeletionByMCM] == "true" ||
		!node.DeletionTimestamp.IsZero() && hasFinalizer(node, v1alpha1.NodeFinalizerName)
}

// ReleaseNode returns the strategic merge patch that takes our finalizer off the
// Node, and whether there is anything to patch. The patch touches nothing else,
// so that it cannot conflict with those who write the Node at the same time, and
// fails for another Node of the same name. A nil Node needs none.
func ReleaseNode(node *corev1.Node) (patch []byte, needed bool) {
	if node == nil || !hasFinalizer(node, v1alpha1.NodeFinalizerName) {
		return nil, false
	}
	metadata := map[string]any{"$deleteFromPrimitiveList/finalizers": []string{v1alpha1.NodeFinalizerName}}
	if node.UID != "" {
		metadata["uid"] = node.UID
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	return patch, err == nil // which it is: these are texts
}
