// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Live is the [Reader] of the API server. It makes requests in each call, so it is for one
// observation, such as a dry run. In a loop use [Informers] or [Executor.Run].
type Live struct {
	// Client of the cluster.
	Client kubernetes.Interface
}

// Node reads a Node. It returns nil if the Node does not exist.
func (l Live) Node(ctx context.Context, name string) (*corev1.Node, error) {
	nodes, err := eachOf(l, []string{name}, func(name string) (*corev1.Node, error) {
		return l.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	return nodes[0], nil
}

// PodsOn lists the pods of a Node.
func (l Live) PodsOn(ctx context.Context, node string) ([]*corev1.Pod, error) {
	if err := usable(l.Client, node); err != nil {
		return nil, err
	}
	list, err := l.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return nil, err
	}
	return pointers(list.Items), nil
}

// BudgetsIn lists the PodDisruptionBudgets of each namespace.
func (l Live) BudgetsIn(ctx context.Context, namespaces []string) ([]*policyv1.PodDisruptionBudget, error) {
	return eachIn(l, namespaces, func(namespace string) ([]policyv1.PodDisruptionBudget, error) {
		list, err := l.Client.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	})
}

// DaemonSetsIn lists the DaemonSets of each namespace.
func (l Live) DaemonSetsIn(ctx context.Context, namespaces []string) ([]*appsv1.DaemonSet, error) {
	return eachIn(l, namespaces, func(namespace string) ([]appsv1.DaemonSet, error) {
		list, err := l.Client.AppsV1().DaemonSets(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	})
}

// AttachmentsOf lists all VolumeAttachments, because the API server cannot select them by Node, and
// returns those of the Node and of the volumes.
func (l Live) AttachmentsOf(ctx context.Context, node string, volumes []string) ([]*storagev1.VolumeAttachment, error) {
	if l.Client == nil {
		return nil, missing("client")
	}
	list, err := l.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var attachments []*storagev1.VolumeAttachment
	for _, attachment := range pointers(list.Items) {
		if attachment.Spec.NodeName == node || slices.Contains(volumes, volumeOfAttachment(attachment)) {
			attachments = append(attachments, attachment)
		}
	}
	return attachments, nil
}

// ClaimsOf reads each PersistentVolumeClaim.
func (l Live) ClaimsOf(ctx context.Context, claims []types.NamespacedName) ([]*corev1.PersistentVolumeClaim, error) {
	return eachOf(l, claims, func(claim types.NamespacedName) (*corev1.PersistentVolumeClaim, error) {
		return l.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	})
}

// VolumesOf reads each PersistentVolume.
func (l Live) VolumesOf(ctx context.Context, names []string) ([]*corev1.PersistentVolume, error) {
	return eachOf(l, names, func(name string) (*corev1.PersistentVolume, error) {
		return l.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	})
}

// eachIn lists the objects of each namespace.
func eachIn[T any](l Live, namespaces []string, list func(namespace string) ([]T, error)) ([]*T, error) {
	if l.Client == nil {
		return nil, missing("client")
	}
	var all []*T
	for _, namespace := range namespaces {
		items, err := list(namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, pointers(items)...)
	}
	return all, nil
}

// eachOf reads objects one by one, without those that do not exist.
func eachOf[K, T any](l Live, keys []K, get func(key K) (*T, error)) ([]*T, error) {
	if l.Client == nil {
		return nil, missing("client")
	}
	var all []*T
	for _, key := range keys {
		found, err := get(key)
		switch {
		case err == nil:
			all = append(all, found)
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return all, nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
