// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// NodeNameOf returns the name of the Node of a machine: the value of the label node, or, without
// the label, a name of the provider that is not a valid label value. A Node name may have 253
// characters, and a label value 63. Empty means that the name is not known, and the Node may be
// found by the provider ID. It is empty for a nil machine.
//
// MCM writes each name into the label. The API server then refuses the write, and the provider ID
// in it is lost, too.
func NodeNameOf(m *v1alpha1.Machine, vm VMView) string {
	if m == nil {
		return ""
	}
	if name := m.Labels[v1alpha1.NodeLabelKey]; name != "" {
		return name
	}
	if !labelValue(vm.NodeName) {
		return vm.NodeName
	}
	return ""
}

// NodeToDelete returns the Node to delete together with a machine, unless [Decide] finds that it is
// not that of the machine: the Node that the machine names, or, if that is missing or not that of the
// machine, the Node with the provider ID of the machine. A nil Node does not exist. It returns nil if
// no Node is left to delete.
func NodeToDelete(m *v1alpha1.Machine, vm VMView, named, sameID *corev1.Node, now time.Time) *corev1.Node {
	strange := func(node *corev1.Node) bool {
		p, _ := proofOf(m, node, vm.Named, now)
		return p == foreign || p == unproven
	}
	if m != nil && sameID != nil && !strange(sameID) && (named == nil || strange(named)) {
		return sameID
	}
	return named
}

// nodeName returns the name of the Node. Empty means that it is not known.
func (l *logic) nodeName() string {
	name := NodeNameOf(l.m, l.in.VM)
	if node := l.in.Node.Node; name == "" && node != nil && !labelValue(node.Name) {
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
	if l.in.Node.NoTarget || l.m.Spec.ProviderID == "" || labelValue(name) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "labels").Key(v1alpha1.NodeLabelKey), facts.Excerpt(name), fmt.Sprintf(
		"the name of the Node has %d characters and cannot be the value of a label, which has at most %d: the label stays empty, and the Node is found by its provider ID",
		len(name), content.LabelValueMaxLength))}
}

// namesNode reports whether the Node has the label with the name of the machine. It is true for a
// name that is not a valid label value.
func (l *logic) namesNode() bool {
	return !labelValue(l.m.Name) || l.in.Node.Node.Labels[v1alpha1.MachineNameLabelKey] == l.m.Name
}

// nodeSubject returns the subject of the Node, or that of the machine if the name of the Node is
// not known.
func (l *logic) nodeSubject() string {
	if name := l.nodeName(); name != "" {
		return "node/" + name
	}
	return "machine/" + l.m.Name
}
