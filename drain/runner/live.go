// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
)

// Live is the Reader of the API server, for the objects and indexes of a drain. It makes requests in each
// call, so it is for one observation, such as a dry run. In a loop use [Informers] or [Executor.Run].
type Live struct {
	// Client of the cluster.
	Client kubernetes.Interface
}

// Get implements [machinist.Reader]. It reads a Node, a PersistentVolumeClaim or a PersistentVolume.
func (l Live) Get(ctx context.Context, o machinist.Object) (found machinist.Object, err error) {
	if l.Client == nil {
		return nil, missing("client")
	}
	if o.GetName() == "" { // the client would return an error
		return nil, nil
	}
	switch o.(type) {
	case *corev1.Node:
		found, err = l.Client.CoreV1().Nodes().Get(ctx, o.GetName(), metav1.GetOptions{})
	case *corev1.PersistentVolumeClaim:
		found, err = l.Client.CoreV1().PersistentVolumeClaims(o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
	case *corev1.PersistentVolume:
		found, err = l.Client.CoreV1().PersistentVolumes().Get(ctx, o.GetName(), metav1.GetOptions{})
	default:
		return nil, fmt.Errorf("%w: %T", machinist.ErrNotCached, o)
	}
	if err != nil {
		return nil, objects.IgnoreNotFound(err)
	}
	return found, nil
}

// List implements [machinist.Reader]. It lists the pods of a Node, the PodDisruptionBudgets or DaemonSets
// of a namespace, or all VolumeAttachments, because the API server cannot select them by an index.
func (l Live) List(ctx context.Context, o machinist.Object, index, key string) ([]machinist.Object, error) {
	if l.Client == nil {
		return nil, missing("client")
	}
	switch o.(type) {
	case *corev1.Pod:
		if err := usable(l.Client, key); err != nil {
			return nil, err
		}
		of := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", key).String()}
		list, err := l.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, of)
		if err != nil {
			return nil, err
		}
		return pointers[*corev1.Pod](list.Items), nil
	case *policyv1.PodDisruptionBudget:
		list, err := l.Client.PolicyV1().PodDisruptionBudgets(o.GetNamespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return pointers[*policyv1.PodDisruptionBudget](list.Items), nil
	case *appsv1.DaemonSet:
		list, err := l.Client.AppsV1().DaemonSets(o.GetNamespace()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return pointers[*appsv1.DaemonSet](list.Items), nil
	case *storagev1.VolumeAttachment:
		list, err := l.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		all := pointers[*storagev1.VolumeAttachment](list.Items)
		return slices.DeleteFunc(all, func(o machinist.Object) bool { return !hasKey(o, index, key) }), nil
	default:
		return nil, fmt.Errorf("%w: %T", machinist.ErrNotCached, o)
	}
}

// hasKey reports whether an object has a key of an index.
func hasKey(o machinist.Object, index, key string) bool {
	return slices.ContainsFunc(Indexes(), func(i machinist.Index) bool {
		return i.Name == index && slices.Contains(i.Keys(o), key)
	})
}

// pointers returns pointers to the items of a list.
func pointers[P objects.Pointer[T], T any](items []T) []machinist.Object {
	all := make([]machinist.Object, len(items))
	for i := range items {
		all[i] = P(&items[i])
	}
	return all
}
