// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
)

// podWithVolume returns a pod of node-1 that uses a claim of its own name.
func podWithVolume(name, ownerKind string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name),
			OwnerReferences: []metav1.OwnerReference{{Kind: ownerKind, Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}}}},
	}
}

// claimOf returns the claim of a pod. Its volume has the prefix "pv-".
func claimOf(pod string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pod}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + pod},
	}
}

// attachmentOf returns the attachment of the volume of a pod to node-1.
func attachmentOf(pod string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "attachment-" + pod},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com", NodeName: "node-1",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv-" + pod)},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
}

// A drain waits up to two minutes until the volume of a database is detached. The volume of a
// DaemonSet stays attached, and the drain does not wait for it.
func ExampleVolumePolicy() {
	policy := drain.Policy{Volumes: drain.VolumePolicy{Wait: true, DetachTimeout: 2 * time.Minute}}
	agent, db := podWithVolume("agent", "DaemonSet"), podWithVolume("db", "StatefulSet")
	in := drain.Observation{
		Looked: true, Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: corev1.NodeSpec{Unschedulable: true}},
		Pods: drain.All(agent, db), Claims: drain.All(claimOf("agent"), claimOf("db")),
		Attachments: drain.All(attachmentOf("agent"), attachmentOf("db")),
	}

	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var state drain.State
	var decision drain.Decision
	step := func(title string, after time.Duration) {
		state, decision = drain.Step(state, in, policy, start.Add(after))
		fmt.Println(title)
		for _, v := range decision.Volumes {
			fmt.Println(" ", v.Action, v.Volume, v.Reason)
		}
	}
	step("the pod runs:", 0)
	in.Pods = drain.All(agent)
	step("the pod is deleted:", 30*time.Second)
	in.Attachments = drain.All(attachmentOf("agent"))
	step("its volume is detached:", 40*time.Second)
	fmt.Println(decision.Outcome)
	// Output:
	// the pod runs:
	//   ignore pv-agent Stays
	//   wait pv-db InUse
	// the pod is deleted:
	//   ignore pv-agent Stays
	//   wait pv-db Detaching
	// its volume is detached:
	//   ignore pv-agent Stays
	// Drained
}
