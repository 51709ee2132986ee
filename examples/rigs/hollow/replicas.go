// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"cmp"
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// Replicas simulates the ReplicaSet controller and the pod garbage collector for a cluster in
// memory. It creates, deletes and counts the pods of ReplicaSets, and removes pods whose Node was
// deleted. It adopts no pods. It is for one goroutine.
type Replicas struct {
	// Client is the client for the cluster.
	Client kubernetes.Interface
}

// Step handles all ReplicaSets once. The next step repeats failed writes. It returns their errors.
func (r *Replicas) Step(ctx context.Context) error {
	sets, err := r.Client.AppsV1().ReplicaSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := r.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	nodes, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	there := map[string]bool{"": true}
	for i := range nodes.Items {
		there[nodes.Items[i].Name] = true
	}
	var errs []error
	var alive []*corev1.Pod
	for _, p := range pointers(pods.Items) {
		if there[p.Spec.NodeName] {
			alive = append(alive, p)
			continue
		}
		errs = append(errs, r.delete(ctx, p, ptr.To(int64(0))))
	}
	for _, set := range pointers(sets.Items) {
		if set.DeletionTimestamp == nil {
			errs = append(errs, r.apply(ctx, set, replicate(set, alive)))
		}
	}
	return errors.Join(errs...)
}

// replication contains the creations and deletions for a ReplicaSet.
type replication struct {
	create int
	remove []*corev1.Pod
	status appsv1.ReplicaSetStatus
}

// replicate returns the creations and deletions for a ReplicaSet. Pods with the lowest rank are
// deleted first.
func replicate(set *appsv1.ReplicaSet, pods []*corev1.Pod) replication {
	var active []*corev1.Pod
	out := replication{status: *set.Status.DeepCopy()}
	out.status.Replicas, out.status.ReadyReplicas, out.status.AvailableReplicas, out.status.FullyLabeledReplicas = 0, 0, 0, 0
	out.status.ObservedGeneration = set.Generation
	for _, p := range pods {
		if owner := metav1.GetControllerOf(p); owner == nil || owner.UID != set.UID || p.DeletionTimestamp != nil || hasEnded(p) {
			continue
		}
		active = append(active, p)
		out.status.Replicas++
		out.status.FullyLabeledReplicas++
		if isTrue(p, corev1.PodReady) {
			out.status.ReadyReplicas++
			out.status.AvailableReplicas++
		}
	}
	want := 1
	if set.Spec.Replicas != nil {
		want = max(0, int(*set.Spec.Replicas))
	}
	out.create = max(0, want-len(active))
	slices.SortFunc(active, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	out.remove = active[:max(0, len(active)-want)]
	return out
}

// rank returns the rank of a pod for deletions: pods without Node have the lowest, ready pods the
// highest.
func rank(p *corev1.Pod) int {
	switch {
	case p.Spec.NodeName == "":
		return 0
	case !isTrue(p, corev1.PodReady):
		return 1
	default:
		return 2
	}
}

// apply carries out a replication.
func (r *Replicas) apply(ctx context.Context, set *appsv1.ReplicaSet, needs replication) error {
	var errs []error
	for range needs.create {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: set.Namespace, GenerateName: set.Name + "-", Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
			},
			Spec: *set.Spec.Template.Spec.DeepCopy(),
		}
		_, err := r.Client.CoreV1().Pods(set.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		errs = append(errs, err)
	}
	for _, p := range needs.remove {
		errs = append(errs, r.delete(ctx, p, nil))
	}
	if !equality.Semantic.DeepEqual(set.Status, needs.status) {
		after := set.DeepCopy()
		after.Status = needs.status
		_, err := r.Client.AppsV1().ReplicaSets(set.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (r *Replicas) delete(ctx context.Context, p *corev1.Pod, grace *int64) error {
	return ignoreNotFound(r.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &p.UID},
	}))
}
