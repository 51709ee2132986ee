// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// statusBehavior is what the status subresource of a kind does.
type statusBehavior int

const (
	// statusOnly is that of most custom kinds: a write changes the object without .status, a status write changes only
	// .status, and a create drops .status.
	statusOnly statusBehavior = iota
	// statusInline is that of a kind without status subresource. A status request is not found (404).
	statusInline
	// statusWithMetadata is that of most built-in kinds: a status write changes .status and metadata.
	statusWithMetadata
)

// Kind is a namespaced custom kind that the cluster serves. [Options].Scheme must have the Go types of its objects and lists.
type Kind struct {
	// GroupVersionKind is the kind. Its resource is the plural of the kind in lower case.
	GroupVersionKind schema.GroupVersionKind
	// NoStatusSubresource means that the kind has no status subresource: .status is an ordinary field.
	NoStatusSubresource bool
}

// kind is a served kind.
type kind struct {
	gvk    schema.GroupVersionKind
	gvr    schema.GroupVersionResource
	custom bool
	status statusBehavior
	// clusterScoped means that objects have no namespace.
	clusterScoped bool
	// generation means that changes of the desired state increment metadata.generation.
	generation bool
	// locked means that an update without resourceVersion is refused.
	locked bool
}

func (k *kind) resource() schema.GroupResource { return k.gvr.GroupResource() }

func (k *kind) isPod() bool    { return k.gvr == podsResource }
func (k *kind) isBudget() bool { return k.gvr == budgetsResource }

var (
	podsResource    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodesResource   = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	budgetsResource = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
)

// builtins are the built-in kinds that the cluster serves.
var builtins = []kind{
	{gvk: corev1.SchemeGroupVersion.WithKind("Pod"), status: statusWithMetadata, generation: true},
	{gvk: corev1.SchemeGroupVersion.WithKind("Node"), status: statusWithMetadata, clusterScoped: true},
	{gvk: corev1.SchemeGroupVersion.WithKind("Namespace"), status: statusWithMetadata, clusterScoped: true},
	{gvk: corev1.SchemeGroupVersion.WithKind("Secret"), status: statusInline},
	{gvk: corev1.SchemeGroupVersion.WithKind("ConfigMap"), status: statusInline},
	{gvk: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), status: statusInline},
	{gvk: corev1.SchemeGroupVersion.WithKind("Event"), status: statusInline},
	{gvk: corev1.SchemeGroupVersion.WithKind("PersistentVolume"), status: statusWithMetadata, clusterScoped: true},
	{gvk: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), status: statusWithMetadata},
	{gvk: corev1.SchemeGroupVersion.WithKind("ReplicationController"), status: statusWithMetadata, generation: true},
	{gvk: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), status: statusWithMetadata, generation: true},
	{gvk: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), status: statusWithMetadata, generation: true},
	{gvk: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), status: statusWithMetadata, generation: true},
	{gvk: appsv1.SchemeGroupVersion.WithKind("Deployment"), status: statusWithMetadata, generation: true},
	{gvk: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), status: statusWithMetadata, generation: true, locked: true},
	{gvk: coordinationv1.SchemeGroupVersion.WithKind("Lease"), status: statusInline, locked: true},
	{gvk: storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), status: statusOnly, clusterScoped: true, locked: true},
}

// servedKinds returns the built-in kinds and the custom ones.
func servedKinds(custom []Kind) map[schema.GroupVersionResource]*kind {
	served := map[schema.GroupVersionResource]*kind{}
	serve := func(k kind) {
		k.gvr, _ = meta.UnsafeGuessKindToResource(k.gvk)
		served[k.gvr] = &k
	}
	for _, k := range builtins {
		serve(k)
	}
	for _, ck := range custom {
		k := kind{gvk: ck.GroupVersionKind, custom: true, generation: true, locked: true}
		if ck.NoStatusSubresource {
			k.status = statusInline
		}
		if k.gvk.Kind != "" && k.gvk.Version != "" {
			serve(k)
		}
	}
	return served
}

// kindOf returns the served kind of an object by its Go type.
func (c *Cluster) kindOf(obj runtime.Object) (*kind, error) {
	gvks, _, err := c.types.ObjectKinds(obj)
	if err != nil {
		return nil, err
	}
	for _, gvk := range gvks {
		for _, k := range c.kinds {
			if k.gvk == gvk {
				return k, nil
			}
		}
	}
	return nil, fmt.Errorf("kind %v is not served", gvks)
}
