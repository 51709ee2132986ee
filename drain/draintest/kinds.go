// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// statusRule says which part of an object a write of the status can reach.
type statusRule int

const (
	// statusAlone is what nearly every custom resource definition declares: a plain write never changes .status, a write
	// to the status subresource changes nothing but .status, and .status is dropped on create.
	statusAlone statusRule = iota
	// statusInline is a kind without the status subresource: .status is a field like any other.
	statusInline
	// statusWithMetadata is how nearly all built-in kinds behave: a write to the status subresource changes .status and
	// metadata (labels, annotations, finalizers), but not .spec.
	statusWithMetadata
)

// Kind is a custom kind that the cluster serves, as a custom resource definition would declare it.
//
// Its Go types (object and list) must be registered in [Options].Scheme; a kind that is not is not served.
type Kind struct {
	// GroupVersionKind names the kind. An empty version or kind is never served.
	GroupVersionKind schema.GroupVersionKind
	// Resource is the plural in the URL; empty means the usual plural of the kind in lower case.
	Resource string
	// Namespaced says whether objects live in namespaces. The zero value is a cluster-scoped kind.
	Namespaced bool
	// InlineStatus is for a definition without the status subresource: .status is a field like any other, a change of it
	// raises the generation, and requests to the subresource find nothing (404).
	InlineStatus bool
}

// kind is what the rules need to know about one served resource.
type kind struct {
	gvk        schema.GroupVersionKind
	gvr        schema.GroupVersionResource
	namespaced bool
	custom     bool
	status     statusRule
	// generation: spec changes raise metadata.generation.
	generation bool
	// unconditional: an update without resourceVersion is accepted.
	unconditional bool
	// upsert: an update of what is not there creates it.
	upsert bool
}

func (k *kind) resource() schema.GroupResource { return k.gvr.GroupResource() }

func (k *kind) isPod() bool    { return k.gvr == podsResource }
func (k *kind) isBudget() bool { return k.gvr == budgetsResource }

var (
	podsResource    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodesResource   = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	budgetsResource = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
)

// clusterScoped lists the built-in kinds that have no namespace; a scheme does not know.
var clusterScoped = setOf(
	"Node", "Namespace", "PersistentVolume", "ComponentStatus",
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration",
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy", "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding",
	"admissionregistration.k8s.io/MutatingAdmissionPolicy", "admissionregistration.k8s.io/MutatingAdmissionPolicyBinding",
	"certificates.k8s.io/CertificateSigningRequest", "certificates.k8s.io/ClusterTrustBundle",
	"flowcontrol.apiserver.k8s.io/FlowSchema", "flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration",
	"networking.k8s.io/IngressClass", "networking.k8s.io/IPAddress", "networking.k8s.io/ServiceCIDR",
	"node.k8s.io/RuntimeClass", "internal.apiserver.k8s.io/StorageVersion",
	"rbac.authorization.k8s.io/ClusterRole", "rbac.authorization.k8s.io/ClusterRoleBinding",
	"resource.k8s.io/DeviceClass", "resource.k8s.io/ResourceSlice", "resource.k8s.io/DeviceTaintRule",
	"scheduling.k8s.io/PriorityClass",
	"storage.k8s.io/StorageClass", "storage.k8s.io/VolumeAttachment", "storage.k8s.io/CSINode",
	"storage.k8s.io/CSIDriver", "storage.k8s.io/VolumeAttributesClass",
	"storagemigration.k8s.io/StorageVersionMigration",
)

// withGeneration lists the built-in kinds whose generation follows their spec. Nodes are not among them.
var withGeneration = setOf(
	"Pod", "PodTemplate", "ReplicationController", "apps/Deployment", "apps/ReplicaSet", "apps/StatefulSet", "apps/DaemonSet",
	"batch/Job", "batch/CronJob", "policy/PodDisruptionBudget", "networking.k8s.io/Ingress", "networking.k8s.io/IngressClass",
	"networking.k8s.io/NetworkPolicy", "discovery.k8s.io/EndpointSlice", "scheduling.k8s.io/PriorityClass",
	"flowcontrol.apiserver.k8s.io/FlowSchema", "flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration",
)

// withPrecondition lists the built-in kinds which refuse an update without resourceVersion.
var withPrecondition = setOf(
	"policy/PodDisruptionBudget", "coordination.k8s.io/Lease", "coordination.k8s.io/LeaseCandidate",
	"storage.k8s.io/VolumeAttachment", "storage.k8s.io/CSINode", "storage.k8s.io/CSIDriver", "storage.k8s.io/CSIStorageCapacity",
	"node.k8s.io/RuntimeClass", "certificates.k8s.io/ClusterTrustBundle", "storagemigration.k8s.io/StorageVersionMigration",
	"admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration",
)

// createdByUpdate lists the built-in kinds of which an update creates what is not there.
var createdByUpdate = setOf(
	"coordination.k8s.io/Lease", "coordination.k8s.io/LeaseCandidate", "node.k8s.io/RuntimeClass", "Event", "Service", "Endpoints", "LimitRange",
	"rbac.authorization.k8s.io/Role", "rbac.authorization.k8s.io/RoleBinding",
	"rbac.authorization.k8s.io/ClusterRole", "rbac.authorization.k8s.io/ClusterRoleBinding",
)

// withBareStatus lists the built-in kinds whose status cannot carry metadata, as that of custom kinds.
var withBareStatus = setOf(
	"storage.k8s.io/VolumeAttachment", "networking.k8s.io/ServiceCIDR", "resource.k8s.io/ResourceClaim",
	"resource.k8s.io/DeviceTaintRule", "storagemigration.k8s.io/StorageVersionMigration",
	"admissionregistration.k8s.io/ValidatingAdmissionPolicy",
)

func setOf(kinds ...string) map[schema.GroupKind]bool {
	set := make(map[schema.GroupKind]bool, len(kinds))
	for _, k := range kinds {
		group, name, found := strings.Cut(k, "/")
		if !found {
			group, name = "", k
		}
		set[schema.GroupKind{Group: group, Kind: name}] = true
	}
	return set
}

// builtins are the kinds of client-go's scheme which are objects with metadata. Built once; never modified.
var builtins = sync.OnceValue(func() map[schema.GroupVersionResource]*kind {
	kinds := map[schema.GroupVersionResource]*kind{}
	for gvk, typ := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == runtime.APIVersionInternal || !servable(typ) {
			continue
		}
		gvr, _ := meta.UnsafeGuessKindToResource(gvk)
		k := &kind{
			gvk: gvk, gvr: gvr,
			namespaced:    !clusterScoped[gvk.GroupKind()],
			generation:    withGeneration[gvk.GroupKind()],
			unconditional: !withPrecondition[gvk.GroupKind()],
			upsert:        createdByUpdate[gvk.GroupKind()],
			status:        statusInline,
		}
		if _, has := typ.FieldByName("Status"); has {
			k.status = statusWithMetadata
			if withBareStatus[gvk.GroupKind()] {
				k.status = statusAlone
			}
		}
		kinds[gvr] = k
	}
	return kinds
})

// servable says whether a Go type is an object that is kept: it has metadata and is neither a list nor a request.
func servable(typ reflect.Type) bool {
	field, has := typ.FieldByName("ObjectMeta")
	if !has || field.Type != reflect.TypeFor[metav1.ObjectMeta]() {
		return false
	}
	switch typ.Name() {
	case "Eviction", "Scale", "Binding", "TokenRequest", "PodStatusResult":
		return false
	default:
		return !strings.HasSuffix(typ.Name(), "Review")
	}
}

// servedKinds returns the built-in kinds and the custom ones; a custom kind replaces a built-in one of the same resource.
func servedKinds(custom []Kind) map[schema.GroupVersionResource]*kind {
	served := map[schema.GroupVersionResource]*kind{}
	maps.Copy(served, builtins())
	for _, ck := range custom {
		gvk := ck.GroupVersionKind
		if gvk.Kind == "" || gvk.Version == "" {
			continue
		}
		gvr, _ := meta.UnsafeGuessKindToResource(gvk)
		if ck.Resource != "" {
			gvr.Resource = ck.Resource
		}
		k := &kind{gvk: gvk, gvr: gvr, namespaced: ck.Namespaced, custom: true, generation: true}
		if ck.InlineStatus {
			k.status = statusInline
		}
		served[gvr] = k
	}
	return served
}

// kindOf finds the served kind of an object by its Go type.
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

// typing makes objects of the given scheme, then of client-go's. It is what client-go's object tracker asks for types.
type typing []*runtime.Scheme

func (t typing) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	for _, s := range t {
		if s.Recognizes(gvk) {
			return s.New(gvk)
		}
	}
	return nil, runtime.NewNotRegisteredErrForKind("draintest", gvk)
}

func (t typing) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	var gvks []schema.GroupVersionKind
	var err error
	for _, s := range t {
		var more []schema.GroupVersionKind
		if more, _, err = s.ObjectKinds(obj); err == nil {
			gvks = append(gvks, more...)
		}
	}
	if len(gvks) > 0 {
		return gvks, false, nil
	}
	return nil, false, err
}

func (t typing) Recognizes(gvk schema.GroupVersionKind) bool {
	for _, s := range t {
		if s.Recognizes(gvk) {
			return true
		}
	}
	return false
}
