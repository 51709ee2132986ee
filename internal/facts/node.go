// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// Contradicts reports whether a Node contradicts a machine, which needs no call of the provider. The
// Node has another provider ID, whatever its age, or no ID to compare, no record of the machine, and
// the name of another machine. It is false for a nil machine or Node.
//
// In MCM each Node that exists before the VM belongs to another machine, unless it has the name of
// the machine.
func Contradicts(m *v1alpha1.Machine, node *corev1.Node) bool {
	if m == nil || node == nil {
		return false
	}
	if m.Spec.ProviderID != "" && node.Spec.ProviderID != "" {
		return !nodeops.SameInstance(m.Spec.ProviderID, node.Spec.ProviderID)
	}
	name := node.Labels[v1alpha1.MachineNameLabelKey]
	return name != "" && name != m.Name && !Marked(m, node)
}

// Marked reports whether a Node has the record that it is proven to be that of a machine. Users
// without rights on Nodes cannot write it.
func Marked(m *v1alpha1.Machine, node *corev1.Node) bool {
	return m.UID != "" && node.Annotations[v1alpha1.MachineUIDAnnotation] == string(m.UID)
}

// Proven reports whether a Node has a record that it is proven to be that of a machine: the UID of
// the machine, or, on a Node that joined under another controller, the name of a machine that was
// Running, without another provider ID. A Node without such a record may be that of the machine,
// too. It is false for a nil machine or Node.
func Proven(m *v1alpha1.Machine, node *corev1.Node) bool {
	if m == nil || node == nil {
		return false
	}
	if _, found := node.Annotations[v1alpha1.MachineUIDAnnotation]; found {
		return Marked(m, node)
	}
	traits := TraitsOf(m.Status.CurrentStatus.Phase) // a user who may write Machines may not write their status
	return !Contradicts(m, node) && node.Labels[v1alpha1.MachineNameLabelKey] == m.Name && (traits.MayFail || traits.Updating)
}

// DeletionRequested reports whether a user deletes the machine by its Node: the Node is being
// deleted and has the finalizer, or it has the annotation.
func DeletionRequested(node *corev1.Node) bool {
	return node.Annotations[v1alpha1.TriggerDeletionByMCM] == "true" ||
		!node.DeletionTimestamp.IsZero() && HasFinalizer(node, v1alpha1.NodeFinalizerName)
}

// HasFinalizer reports whether an object has a finalizer.
func HasFinalizer(o metav1.Object, name string) bool { return slices.Contains(o.GetFinalizers(), name) }

// DeletionForced reports whether the label force-deletion of a machine is true.
func DeletionForced(m *v1alpha1.Machine) bool {
	force, err := strconv.ParseBool(m.Labels[v1alpha1.LabelKeyForceDeletion])
	return err == nil && force
}

// forceDrain is the value of [v1alpha1.LabelKeyForceDrain] that forces.
const forceDrain = "True"

// DrainForced reports whether the label force-drain forces the drains of a machine that is not
// being deleted.
func DrainForced(m *v1alpha1.Machine) bool {
	return m.Labels[v1alpha1.LabelKeyForceDrain] == forceDrain
}

// DeletionNoticed returns when the deletion was recorded, or else the deletion timestamp. The
// deletion timestamp is a time of the API server, whose clock may be ahead. If both times are
// missing or in the future, it returns now and false.
func DeletionNoticed(m *v1alpha1.Machine, now time.Time) (time.Time, bool) {
	at, written := m.DeletionTimestamp.Time, m.Status.CurrentStatus
	known := recorded.Known(at, now)
	if own := written.LastUpdateTime.Time; written.Phase == v1alpha1.MachineTerminating && recorded.Known(own, now) && (!known || own.After(at)) {
		at, known = own, true
	}
	return recorded.At(at, now), known
}

// MergeAddresses returns both lists without duplicates, by type and address.
func MergeAddresses(a, b []corev1.NodeAddress) []corev1.NodeAddress {
	merged := slices.Concat(a, b)
	slices.SortFunc(merged, func(a, b corev1.NodeAddress) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Address, b.Address))
	})
	return slices.Compact(merged)
}

// LiveAttachments returns the attachments of a Node without a deletion timestamp, sorted by name.
// Nil attachments are skipped.
func LiveAttachments(node string, attachments []*storagev1.VolumeAttachment) []*storagev1.VolumeAttachment {
	var live []*storagev1.VolumeAttachment
	for _, va := range attachments {
		if va != nil && va.Spec.NodeName == node && va.DeletionTimestamp.IsZero() {
			live = append(live, va.DeepCopy())
		}
	}
	slices.SortStableFunc(live, func(a, b *storagev1.VolumeAttachment) int { return cmp.Compare(a.Name, b.Name) })
	return live
}

// Contradiction returns why a Node contradicts a machine: see [Contradicts].
func Contradiction(m *v1alpha1.Machine, node *corev1.Node) string {
	if id := node.Spec.ProviderID; id != "" && m.Spec.ProviderID != "" {
		return fmt.Sprintf("its provider ID is %q, and that of the machine is %q", Excerpt(id), Excerpt(m.Spec.ProviderID))
	}
	return fmt.Sprintf("its label %s is %q", v1alpha1.MachineNameLabelKey, node.Labels[v1alpha1.MachineNameLabelKey])
}

// ReleaseNode returns the strategic merge patch that removes the finalizer of this controller from
// the Node, and whether it is needed. The patch changes nothing else, so that it cannot conflict
// with other writes. It fails for another Node with the same name. A nil Node needs none.
func ReleaseNode(node *corev1.Node) (patch []byte, needed bool) {
	if node == nil || !HasFinalizer(node, v1alpha1.NodeFinalizerName) {
		return nil, false
	}
	metadata := map[string]any{"$deleteFromPrimitiveList/finalizers": []string{v1alpha1.NodeFinalizerName}}
	if node.UID != "" {
		metadata["uid"] = node.UID
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	return patch, err == nil // the error is always nil for texts
}
