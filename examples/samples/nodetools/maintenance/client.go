// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain/runner"
)

// requests are the requests of drains by a client of controller-runtime that reads from the API server.
type requests struct{ client client.Client }

var _ runner.Client = requests{}

func (c requests) Get(ctx context.Context, o machinist.Object) (machinist.Object, error) {
	found := o.(runtime.Object).DeepCopyObject().(client.Object) //nolint:forcetypeassert // typed objects are
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return found, nil
}

func (c requests) List(ctx context.Context, o machinist.Object, index, key string) (all []machinist.Object, _ error) {
	list := map[reflect.Type]client.ObjectList{
		reflect.TypeFor[*corev1.Pod](): &corev1.PodList{}, reflect.TypeFor[*policyv1.PodDisruptionBudget](): &policyv1.PodDisruptionBudgetList{},
		reflect.TypeFor[*appsv1.DaemonSet](): &appsv1.DaemonSetList{},
	}[reflect.TypeOf(o)]
	options := &client.ListOptions{Namespace: o.GetNamespace()}
	if index != "" {
		options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", key) // of pods
	}
	if list == nil { // volumes
		return nil, machinist.ErrNotCached
	}
	if err := c.client.List(ctx, list, options); err != nil {
		return nil, err
	}
	return all, meta.EachListItem(list, func(item runtime.Object) error {
		all = append(all, item.(client.Object)) //nolint:forcetypeassert // typed objects are
		return nil
	})
}

func (c requests) PatchNode(ctx context.Context, name string, patch []byte, options metav1.PatchOptions) (*corev1.Node, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return node, c.client.Patch(ctx, node, client.RawPatch(types.MergePatchType, patch), &client.PatchOptions{Raw: &options})
}

func (c requests) Evict(ctx context.Context, eviction *policyv1.Eviction) error {
	return c.client.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: eviction.ObjectMeta}, eviction)
}

func (c requests) DeletePod(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return c.client.Delete(ctx, pod, &client.DeleteOptions{GracePeriodSeconds: options.GracePeriodSeconds, Preconditions: options.Preconditions})
}
