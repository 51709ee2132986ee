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

// syncNode writes what the Node lacks: the name of the machine, the finalizer, the node template,
// and the virtual capacity of the class.
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

// hasTemplate reports whether a Node has all of a template, and whether this is recorded on it.
// Such a Node needs no merge. Values that are already on the Node are valid.
func hasTemplate(node *corev1.Node, desired nodeops.Template) bool {
	change, err := nodeops.SyncTemplate(node, desired)
	return err == nil && change.Node == nil && len(change.Ignored) == 0
}

// recordUnreadable waits until the record of the applied template on the Node is repaired.
func (l *logic) recordUnreadable(err error) Decision {
	return hold(machinist.Hold{
		Subject: l.nodeSubject(), Reason: ReasonNodeOutOfSync, Message: err.Error(), Until: l.now.Add(time.Minute),
	})
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
	return l.do(UpdateNodeCapacity{Node: change.Node}, ReasonNodeOutOfSync, change.Text)
}

// foreignNode reports whether the Node that the label of a machine names belongs to another
// machine: it has the name of another machine, or it is older than the machine and has another
// provider ID. A Node with the name of the machine belongs to it, whatever its provider ID. Some
// providers use different IDs for machines and Nodes, and a machine that was moved to another
// control plane is younger than its Node. It is false for a nil machine or Node.
//
// In MCM each Node that exists before the VM belongs to another machine, unless it has the name of
// the machine.
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

// ownNode returns the Node of the machine. It returns nil if there is none, or if the Node belongs
// to another machine.
func (l *logic) ownNode() *corev1.Node {
	if l.in.Node.NoTarget || foreignNode(l.m, l.in.Node.Node) || !l.ownsNode() {
		return nil
	}
	return l.in.Node.Node
}

// nodeTemplate returns the template of the Node. It has no label with the name of the machine,
// which the template cannot set. Its invalid entries are removed by [acceptable].
func nodeTemplate(m *v1alpha1.Machine) nodeops.Template {
	t := m.Spec.NodeTemplateSpec
	labels := t.Labels
	if _, ok := labels[v1alpha1.MachineNameLabelKey]; ok {
		labels = maps.Clone(labels)
		delete(labels, v1alpha1.MachineNameLabelKey)
	}
	return nodeops.Template{Labels: labels, Annotations: t.Annotations, Taints: t.Spec.Taints}
}

// deletionRequested reports whether a user deletes the machine by its Node: the Node is being
// deleted and has the finalizer, or it has the annotation.
func deletionRequested(node *corev1.Node) bool {
	return node.Annotations[v1alpha1.TriggerDeletionByMCM] == "true" ||
		!node.DeletionTimestamp.IsZero() && hasFinalizer(node, v1alpha1.NodeFinalizerName)
}

// ReleaseNode returns the strategic merge patch that removes the finalizer of this controller from
// the Node, and whether it is needed. The patch changes nothing else, so that it cannot conflict
// with other writes. It fails for another Node with the same name. A nil Node needs none.
func ReleaseNode(node *corev1.Node) (patch []byte, needed bool) {
	if node == nil || !hasFinalizer(node, v1alpha1.NodeFinalizerName) {
		return nil, false
	}
	metadata := map[string]any{"$deleteFromPrimitiveList/finalizers": []string{v1alpha1.NodeFinalizerName}}
	if node.UID != "" {
		metadata["uid"] = node.UID
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	return patch, err == nil // the error is always nil for texts
}
