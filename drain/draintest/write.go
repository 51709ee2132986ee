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

// create carries out a create request: the server fills the system fields, drops the status, and refuses malformed
// metadata, a resource version, a foreign namespace and a name that is taken.
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

// accept commits a change and returns what the client sees; a dry run stops before.
func (c *Cluster) accept(k *kind, req request, before, after runtime.Object) (runtime.Object, error) {
	if req.dryRun {
		return after, nil
	}
	if err := c.commit(k, req, before, after); err != nil {
		return nil, err
	}
	return after.DeepCopyObject(), nil
}

// fromWire returns the object as the server decodes it from the request: of the kind's own type, with times in
// seconds, and sharing nothing with the caller.
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

// maxGeneratedBase is what the server keeps of generateName before it adds five letters.
const maxGeneratedBase = 58

// name generates a missing name, if it can.
func (c *Cluster) name(k *kind, m metav1.Object) {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789" // the server's, without vowels
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

// writable lists the subresources that can be updated and patched.
func writable(subresource string) bool { return subresource == "" || subresource == "status" }

// replace puts after in the place of before, as far as the request may reach. Both belong to it; before is the
// stored state.
func (c *Cluster) replace(k *kind, req request, before, after runtime.Object) (runtime.Object, error) {
	was, err := meta.Accessor(before)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	m, err := meta.Accessor(after)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := checkVersion(k, was, m); err != nil {
		return nil, err
	}
	after = reach(k, req.subresource, before, after)
	if m, err = meta.Accessor(after); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
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

// reach returns what the stored object becomes: after, without the parts that the request cannot change.
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
			keepOwners(after, before)
		}
		return after
	default:
		only := before.DeepCopyObject()
		takeStatus(only, after)
		return only
	}
}

// raisesGeneration reports whether a change is one of the desired state. For deployments, annotations count as well.
func raisesGeneration(k *kind, before, after runtime.Object) bool {
	if !k.generation {
		return false
	}
	if !k.sameDesired(before, after) {
		return true
	}
	if k.custom || k.gvk.Kind != "Deployment" {
		return false
	}
	was, err := meta.Accessor(before)
	if err != nil {
		return false
	}
	m, err := meta.Accessor(after)
	return err == nil && !maps.Equal(was.GetAnnotations(), m.GetAnnotations())
}

// isReleased reports whether an update takes the last finalizer from an object whose grace period is over: it vanishes.
func isReleased(was, m metav1.Object) bool {
	if was.GetDeletionTimestamp() == nil || len(m.GetFinalizers()) > 0 {
		return false
	}
	grace := was.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}
