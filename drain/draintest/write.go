// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// create carries out a create request: it sets the system fields, drops the status, and returns an error for malformed
// metadata, a resource version, another namespace, or a name that exists.
func (c *Cluster) create(k *kind, req request, in runtime.Object) (runtime.Object, error) {
	obj, m, err := c.fromWire(k, in)
	if err != nil {
		return nil, err
	}
	if err := placeIn(k, req.namespace, m); err != nil {
		return nil, err
	}
	c.name(k, m)
	m.SetSelfLink("")
	m.SetCreationTimestamp(metav1.NewTime(c.now()).Rfc3339Copy())
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetGeneration(0)
	if k.generation {
		m.SetGeneration(1)
	}
	initialize(k, obj)
	if errs := apivalidation.ValidateObjectMetaAccessor(m, !k.clusterScoped, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata")); len(errs) > 0 {
		return nil, invalid(k, m.GetName(), errs...)
	}
	if m.GetResourceVersion() != "" {
		return nil, internal("resourceVersion should not be set on objects to be created")
	}
	if c.exists(k, m.GetNamespace(), m.GetName()) {
		return nil, apierrors.NewAlreadyExists(k.resource(), m.GetName())
	}
	m.SetUID(c.newUID())
	return c.accept(k, req, nil, obj)
}

// accept commits a change, unless the request is a dry run, and returns the object.
func (c *Cluster) accept(k *kind, req request, before, after runtime.Object) (runtime.Object, error) {
	if req.dryRun {
		return after, nil
	}
	if err := c.commit(k, req, before, after); err != nil {
		return nil, err
	}
	return after.DeepCopyObject(), nil
}

// fromWire returns the object of a request after encoding and decoding as JSON: a copy of the Go type of its kind, with
// times in seconds.
func (c *Cluster) fromWire(k *kind, in runtime.Object) (runtime.Object, metav1.Object, error) {
	obj, err := c.decode(k, in)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	m.SetManagedFields(nil)
	return obj, m, nil
}

func (c *Cluster) decode(k *kind, in runtime.Object) (runtime.Object, error) {
	if in == nil {
		return nil, errors.New("the request has no object")
	}
	obj, err := c.types.New(k.gvk)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(data, obj); err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return obj, nil
}

// maxGeneratedBase is the longest prefix of a generated name.
const maxGeneratedBase = 58

// name generates a missing name from generateName.
func (c *Cluster) name(k *kind, m metav1.Object) {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789" // that of the API server
	base := m.GetGenerateName()
	if m.GetName() != "" {
		return
	}
	for range 8 {
		if base == "" || m.GetName() != "" && !c.exists(k, m.GetNamespace(), m.GetName()) {
			return
		}
		letters := make([]byte, 5)
		for i := range letters {
			letters[i] = alphabet[c.rand.IntN(len(alphabet))]
		}
		m.SetName(base[:min(len(base), maxGeneratedBase)] + string(letters))
	}
}

func (c *Cluster) exists(k *kind, namespace, name string) bool {
	_, err := c.get(k, namespace, name)
	return err == nil
}

// newUID returns a version 4 UUID from the cluster's seed.
func (c *Cluster) newUID() types.UID {
	hi, lo := c.rand.Uint64(), c.rand.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x",
		hi>>32, hi>>16&0xffff, hi&0xfff, lo>>48&0x3fff|0x8000, lo&0xffffffffffff))
}

// update carries out an update of an object or of its status.
func (c *Cluster) update(k *kind, req request, in runtime.Object) (runtime.Object, error) {
	if !writable(req.subresource) {
		return nil, notServed()
	}
	obj, m, err := c.fromWire(k, in)
	if err != nil {
		return nil, err
	}
	if m.GetName() == "" {
		return nil, apierrors.NewBadRequest("resource name may not be empty")
	}
	if err := placeIn(k, req.namespace, m); err != nil {
		return nil, err
	}
	before, err := c.get(k, m.GetNamespace(), m.GetName())
	if err != nil {
		return nil, err
	}
	if was := uidOf(before); m.GetUID() != "" && m.GetUID() != was {
		return nil, uidConflict(k, m.GetName(), m.GetUID(), was)
	}
	return c.replace(k, req, before, obj)
}

// writable reports whether a subresource can be updated and patched.
func writable(subresource string) bool { return subresource == "" || subresource == "status" }

// replace replaces the stored object before by after, without the parts that the request cannot change. It may change both.
func (c *Cluster) replace(k *kind, req request, before, after runtime.Object) (runtime.Object, error) {
	was := metaOf(before)
	if err := checkVersion(k, was, metaOf(after)); err != nil {
		return nil, err
	}
	after = reach(k, req.subresource, before, after)
	m := metaOf(after)
	tidyMeta(m)
	keepSystemFields(was, m)
	if err := checkUpdate(k, was, m); err != nil {
		return nil, err
	}
	if raisesGeneration(k, before, after) {
		m.SetGeneration(was.GetGeneration() + 1)
	}
	if k.same(before, after) {
		return before, nil
	}
	if isReleased(was, m) {
		if req.dryRun {
			return after, nil
		}
		return after, c.commit(k, req, before, nil)
	}
	return c.accept(k, req, before, after)
}

// reach returns after without the parts that the request cannot change.
func reach(k *kind, subresource string, before, after runtime.Object) runtime.Object {
	switch {
	case subresource != "status":
		if k.status != statusInline {
			takeStatus(after, before)
		}
		return after
	case k.status == statusWithMetadata:
		takeDesired(after, before)
		if k.isPod() {
			metaOf(after).SetOwnerReferences(ownersOf(before))
		}
		return after
	default:
		only := before.DeepCopyObject()
		takeStatus(only, after)
		return only
	}
}

// raisesGeneration reports whether a change increments the generation: a change of the desired state, or of the annotations
// of a deployment.
func raisesGeneration(k *kind, before, after runtime.Object) bool {
	annotated := !k.custom && k.gvk.Kind == "Deployment" && !maps.Equal(metaOf(before).GetAnnotations(), metaOf(after).GetAnnotations())
	return k.generation && (annotated || !k.sameDesired(before, after))
}

// isReleased reports whether an update removes the last finalizer of a deleted object whose grace period is over. Such an
// object is removed.
func isReleased(was, m metav1.Object) bool {
	if was.GetDeletionTimestamp() == nil || len(m.GetFinalizers()) > 0 {
		return false
	}
	grace := was.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}
