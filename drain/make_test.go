// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// anything is a policy that may evict every pod.
var anything = drain.Policy{EvictUnmanaged: true, EvictLocalStorage: true}

// newNode returns a cordoned Node.
func newNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid-node-1"},
		Spec:       corev1.NodeSpec{Unschedulable: true},
	}
}

// openNode returns a Node that is not cordoned.
func openNode() *corev1.Node {
	node := newNode()
	node.Spec.Unschedulable = false
	return node
}

// newPod returns a running pod of a ReplicaSet on node-1, changed by edits.
func newPod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "10",
			Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", TerminationGracePeriodSeconds: ptr.To(int64(30))},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
	ownedBy("ReplicaSet")(pod)
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func ownedBy(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: kind, Name: "owner", UID: types.UID("uid-" + kind), Controller: ptr.To(true),
		}}
	}
}

func unmanaged(p *corev1.Pod) { p.OwnerReferences = nil }

func emptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{
		{Name: "config"}, {Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
}

func mirror(p *corev1.Pod) {
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func withPriority(priority int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Priority = &priority }
}

// terminating deletes a pod with a grace period in seconds that ends at a time after now.
func terminating(end time.Duration, grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: now.Add(end)}
		p.DeletionGracePeriodSeconds = &grace
	}
}

func withFinalizer(p *corev1.Pod) { p.Finalizers = []string{"example.com/job-tracking"} }

// observed returns an observation of a cordoned Node and its pods only.
func observed(pods ...*corev1.Pod) drain.Observation {
	return drain.Observation{Looked: true, Node: newNode(), Pods: drain.All(pods...)}
}
