// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var statusScenarios = []scenario{
	{"status-of-custom-kinds", statusOfCustomKinds},
	{"status-of-nodes", statusOfNodes},
	{"status-of-pods", statusOfPods},
	{"status-of-volume-attachments", statusOfAttachments},
	{"status-and-metadata-in-one-patch", statusAndMetadataInOnePatch},
}

// overwrite changes everything in the metadata that a client can change.
func overwrite(m metav1.Object) {
	m.SetLabels(labeled("overwritten", "yes"))
	m.SetAnnotations(labeled("overwritten", "yes"))
	m.SetFinalizers([]string{"example.com/overwritten"})
	m.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Writer", Name: "m", UID: otherUID}})
	m.SetGeneration(m.GetGeneration() + 40)
	m.SetCreationTimestamp(metav1.Unix(0, 0))
}

var overwritten = []string{
	"metadata/labels/overwritten", "metadata/annotations/overwritten", "metadata/finalizers", "metadata/ownerReferences", "metadata/generation",
}

func statusOfCustomKinds(w *world) {
	m := w.machine("m", func(m *v1alpha1.Machine) {
		m.Spec.ProviderID, m.Status.LastKnownState = "one", "dropped"
	})
	w.say("created: provider %q state %q", m.Spec.ProviderID, m.Status.LastKnownState)
	both := m.DeepCopy()
	both.Spec.ProviderID, both.Status.LastKnownState = "two", "dropped"
	m, err := w.machineAPI().Update(w.ctx(), both, metav1.UpdateOptions{})
	w.got("update of spec and status", m, err, "spec/providerID", "status/lastKnownState", "metadata/generation")
	only := m.DeepCopy()
	only.Status.LastKnownState = "dropped"
	same, err := w.machineAPI().Update(w.ctx(), only, metav1.UpdateOptions{})
	w.got("update of the status alone", same, err, "status/lastKnownState", "metadata/generation")
	w.version("update of the status alone", m, same)

	mine := m.DeepCopy()
	mine.Spec.ProviderID, mine.Status.LastKnownState = "dropped", "one"
	mine.Status.CurrentStatus.Phase = v1alpha1.MachinePending
	overwrite(mine)
	m, err = w.machineAPI().UpdateStatus(w.ctx(), mine, metav1.UpdateOptions{})
	w.got("status update of everything", m, err, append([]string{"spec/providerID", "status/lastKnownState", "status/currentStatus"}, overwritten...)...)
	mine = m.DeepCopy()
	overwrite(mine)
	quiet, err := w.machineAPI().UpdateStatus(w.ctx(), mine, metav1.UpdateOptions{})
	w.got("status update of metadata alone", quiet, err, overwritten...)
	w.version("status update of metadata alone", m, quiet)
	m, err = w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"overwritten":"yes"},"finalizers":["example.com/overwritten"]},"spec":{"providerID":"dropped"},"status":{"lastKnownState":"two"}}`),
		metav1.PatchOptions{}, "status")
	w.got("status patch of everything", m, err, append([]string{"spec/providerID", "status/lastKnownState"}, overwritten...)...)
	m, err = w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType,
		[]byte(`{"spec":{"providerID":"three"},"status":{"lastKnownState":"dropped"}}`), metav1.PatchOptions{})
	w.got("plain patch of everything", m, err, "spec/providerID", "status/lastKnownState", "metadata/generation")
	overwrite(m)
	m, err = w.machineAPI().Update(w.ctx(), m, metav1.UpdateOptions{})
	w.got("plain update of metadata", m, err, overwritten...)
	m, err = w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.got("plain patch of the finalizers", m, err, "metadata/finalizers")
	got, err := w.machineAPI().Get(w.ctx(), "m", metav1.GetOptions{})
	w.got("get", got, err, "spec/providerID", "status/lastKnownState")

	class, err := w.machines.MachineV1alpha1().MachineClasses(w.ns).Create(w.ctx(), &v1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: "c"}, ProviderSpec: runtime.RawExtension{Raw: []byte(`{"a":"z","b":[1,{"x":null}]}`)},
	}, metav1.CreateOptions{})
	w.got("class: create", class, err, "providerSpec", "metadata/generation")
	_, err = w.machines.MachineV1alpha1().MachineClasses(w.ns).Patch(w.ctx(), "c", types.MergePatchType, []byte(`{"status":{}}`), metav1.PatchOptions{}, "status")
	w.did("class: status patch", err)
}

func statusOfNodes(w *world) {
	node := w.node("n", func(n *corev1.Node) {
		n.Labels = labeled("a", "1")
		n.Status.Conditions = []corev1.NodeCondition{{Type: "Custom", Status: corev1.ConditionTrue}}
	})
	w.say("created with conditions: %d", len(node.Status.Conditions))
	plain := node.DeepCopy()
	plain.Status.Conditions[0].Status = corev1.ConditionFalse
	plain.Labels["b"] = "2"
	plain.Spec.Unschedulable = true
	// A controller may write to the node at the same time; the version is not what this is about.
	plain.ResourceVersion = ""
	node, err := w.nodeAPI().Update(w.ctx(), plain, metav1.UpdateOptions{})
	w.got("plain update of everything", node, err, "metadata/labels/b", "spec/unschedulable", "status/conditions")

	mine := node.DeepCopy()
	overwrite(mine)
	mine.Spec.Unschedulable = false
	mine.Spec.Taints = []corev1.Taint{{Key: "overwritten", Effect: corev1.TaintEffectNoSchedule}}
	mine.Status.Conditions[0].Status = corev1.ConditionUnknown
	mine.ResourceVersion = ""
	node, err = w.nodeAPI().UpdateStatus(w.ctx(), mine, metav1.UpdateOptions{})
	w.got("status update of everything", node, err, append([]string{"spec/unschedulable", "status/conditions"}, overwritten...)...)
	for _, taint := range node.Spec.Taints {
		if taint.Key == "overwritten" {
			w.say("the status update tainted the node")
		}
	}
	node, err = w.nodeAPI().Patch(w.ctx(), node.Name, types.StrategicMergePatchType,
		[]byte(`{"metadata":{"labels":{"patched":"yes"},"finalizers":null},"spec":{"unschedulable":null},"status":{"conditions":[{"type":"Custom","status":"True"}]}}`),
		metav1.PatchOptions{}, "status")
	w.got("status patch of everything", node, err, "metadata/labels/patched", "metadata/finalizers", "spec/unschedulable", "status/conditions")
	node, err = w.nodeAPI().Patch(w.ctx(), node.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.got("plain patch of the finalizers", node, err, "metadata/finalizers")
}

func statusOfPods(w *world) {
	pod := w.pod("p", "", labeled("a", "1"), func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Message = "dropped"
	})
	w.got("created", pod, nil, "status/phase", "status/message", "metadata/generation", "spec/terminationGracePeriodSeconds", "spec/restartPolicy")
	plain := pod.DeepCopy()
	plain.Status.Phase = corev1.PodRunning
	plain.Labels["b"] = "2"
	pod, err := w.podAPI().Update(w.ctx(), plain, metav1.UpdateOptions{})
	w.got("plain update of everything", pod, err, "metadata/labels", "status/phase", "metadata/generation")

	mine := pod.DeepCopy()
	overwrite(mine)
	mine.Spec.NodeName = "overwritten"
	mine.Status.Phase, mine.Status.Message = corev1.PodRunning, "mine"
	pod, err = w.podAPI().UpdateStatus(w.ctx(), mine, metav1.UpdateOptions{})
	w.got("status update of everything", pod, err, append([]string{"spec/nodeName", "status/phase", "status/message"}, overwritten...)...)
	pod, err = w.podAPI().Patch(w.ctx(), "p", types.StrategicMergePatchType,
		[]byte(`{"metadata":{"annotations":{"patched":"yes"},"finalizers":null},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`),
		metav1.PatchOptions{}, "status")
	w.got("status patch of everything", pod, err, "metadata/annotations/patched", "metadata/finalizers")
	pod, err = w.podAPI().Patch(w.ctx(), "p", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.got("plain patch of the finalizers", pod, err, "metadata/finalizers")
}

func statusOfAttachments(w *world) {
	api := w.kube.StorageV1().VolumeAttachments()
	name := w.own("va")
	w.t.Cleanup(func() { _ = api.Delete(w.afterwards(), name, metav1.DeleteOptions{}) })
	va, err := api.Create(w.ctx(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "example.com", NodeName: w.own("n"), Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv")}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	}, metav1.CreateOptions{})
	w.got("created", va, err, "status", "metadata/generation")
	va.Status.Attached = true
	va, err = api.UpdateStatus(w.ctx(), va, metav1.UpdateOptions{})
	w.got("status update", va, err, "status")
	overwrite(va)
	va.Status.Attached = false
	va, err = api.UpdateStatus(w.ctx(), va, metav1.UpdateOptions{})
	w.got("status update of everything", va, err, append([]string{"status"}, overwritten...)...)
	plain := va.DeepCopy()
	plain.Labels = labeled("b", "2")
	plain.Status.Attached = true
	va, err = api.Update(w.ctx(), plain, metav1.UpdateOptions{})
	w.got("plain update of everything", va, err, "status", "metadata/labels")
	va.ResourceVersion = ""
	_, err = api.Update(w.ctx(), va, metav1.UpdateOptions{})
	w.did("update without version", err)
	va, err = api.Patch(w.ctx(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.got("plain patch of the finalizers", va, err, "metadata/finalizers")
	w.did("delete", api.Delete(w.ctx(), name, metav1.DeleteOptions{}))
	_, err = api.Get(w.ctx(), name, metav1.GetOptions{})
	w.did("get", err)
}

// statusAndMetadataInOnePatch shows that a label and a status need two writes.
func statusAndMetadataInOnePatch(w *world) {
	m := w.machine("m")
	label := m.DeepCopy()
	label.Labels = labeled(v1alpha1.NodeLabelKey, "n")
	labeledMachine, err := w.machineAPI().Update(w.ctx(), label, metav1.UpdateOptions{})
	w.got("the label first", labeledMachine, err, "metadata/labels")
	m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
	_, err = w.machineAPI().UpdateStatus(w.ctx(), m, metav1.UpdateOptions{})
	w.did("then the status, on the version before the label", err)
	labeledMachine.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
	m, err = w.machineAPI().UpdateStatus(w.ctx(), labeledMachine, metav1.UpdateOptions{})
	w.got("then the status, on the version with the label", m, err, "metadata/labels", "status/currentStatus/phase")
}
