// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// errModified is the server's wording for a lost race.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// create carries out a create request: the server fills the system fields, drops the status, and refuses a resource
// version, a foreign namespace and a name that is taken.
func (c *Cluster) create(k *kind, req request, in runtime.Object) (runtime.Object, error) {
	obj, m, err := c.fromWire(k, in)
	if err != nil {
		return nil, err
	}
	if err := placeIn(k, req.namespace, m); err != nil {
		return nil, err
	}
	if m.GetResourceVersion() != "" {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "resourceVersion should not be set on objects to be created",
		}}
	}
	if err := c.name(k, m); err != nil {
		return nil, err
	}
	m.SetUID(c.newUID())
	m.SetCreationTimestamp(metav1.NewTime(c.now()).Rfc3339Copy())
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetGeneration(0)
	if k.generation {
		m.SetGeneration(1)
	}
	initialise(k, obj)
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
	_, isFree := obj.(*unstructured.Unstructured)
	if _, cameFree := in.(*unstructured.Unstructured); isFree && !cameFree {
		return nil, fmt.Errorf("%s is kept as unstructured data because Options.Scheme does not know it, but the request has a %T", k.gvk, in)
	}
	if isFree {
		in.GetObjectKind().SetGroupVersionKind(k.gvk)
	}
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	if err := utiljson.Unmarshal(data, obj); err != nil {
		return nil, err
	}
	if !isFree {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return obj, nil
}

// placeIn settles the namespace of an object from the one of its request.
func placeIn(k *kind, namespace string, m metav1.Object) error {
	switch {
	case k.namespaced && namespace == "":
		return apierrors.NewBadRequest("an empty namespace may not be set during creation")
	case k.namespaced && m.GetNamespace() == "":
		m.SetNamespace(namespace)
	case m.GetNamespace() != namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// maxGeneratedBase is what the server keeps of generateName before it adds five letters.
const maxGeneratedBase = 58

// name generates a missing name and refuses one that is taken.
func (c *Cluster) name(k *kind, m metav1.Object) error {
	if m.GetName() != "" {
		if c.exists(k, m.GetNamespace(), m.GetName()) {
			return apierrors.NewAlreadyExists(k.resource(), m.GetName())
		}
		return nil
	}
	base := m.GetGenerateName()
	if base == "" {
		return invalid(k, "", field.Required(field.NewPath("metadata", "name"), "name or generateName is required"))
	}
	base = base[:min(len(base), maxGeneratedBase)]
	for range 8 {
		m.SetName(base + c.suffix())
		if !c.exists(k, m.GetNamespace(), m.GetName()) {
			return nil
		}
	}
	return apierrors.NewGenerateNameConflict(k.resource(), m.GetName(), 1)
}

func (c *Cluster) exists(k *kind, namespace, name string) bool {
	_, err := c.get(k, namespace, name)
	return err == nil
}

// suffix returns five letters from the server's alphabet, which has no vowels.
func (c *Cluster) suffix() string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	letters := make([]byte, 5)
	for i := range letters {
		letters[i] = alphabet[c.rand.IntN(len(alphabet))]
	}
	return string(letters)
}

// newUID returns a version 4 UUID from the cluster's seed.
func (c *Cluster) newUID() types.UID {
	hi, lo := c.rand.Uint64(), c.rand.Uint64()
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x",
		hi>>32, hi>>16&0xffff, hi&0xfff, lo>>48&0x3fff|0x8000, lo&0xffffffffffff))
}

// initialise sets what the server decides about a new object. The status is dropped, except that of a node, which a
// kubelet may register with its conditions; pods start Pending with the default grace period.
func initialise(k *kind, obj runtime.Object) {
	if k.status != StatusInline && k.gvr != nodesResource {
		clearStatus(obj)
	}
	switch typed := obj.(type) {
	case *corev1.Pod:
		typed.Status.Phase = corev1.PodPending
		defaultPod(typed)
	case *corev1.Namespace:
		typed.Status.Phase = corev1.NamespaceActive
	case *corev1.PersistentVolumeClaim:
		typed.Status.Phase = corev1.ClaimPending
	case *corev1.PersistentVolume:
		typed.Status.Phase = corev1.VolumePending
	}
}

func defaultPod(pod *corev1.Pod) {
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	if *pod.Spec.TerminationGracePeriodSeconds < 0 {
		*pod.Spec.TerminationGracePeriodSeconds = 1
	}
	if pod.Spec.RestartPolicy == "" {
		pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
}

// update carries out an update of an object or of its status.
func (c *Cluster) update(k *kind, req request, in runtime.Object) (runtime.Object, error) {
	if !writable(k, req.subresource) {
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
		if m.GetUID() != "" && apierrors.IsNotFound(err) {
			return nil, uidConflict(k, m.GetName(), m.GetUID(), "")
		}
		return nil, err
	}
	if was := uidOf(before); m.GetUID() != "" && m.GetUID() != was {
		return nil, uidConflict(k, m.GetName(), m.GetUID(), was)
	}
	return c.replace(k, req, before, obj)
}

// writable lists the subresources that can be updated and patched.
func writable(k *kind, subresource string) bool {
	switch subresource {
	case "":
		return true
	case "status":
		return k.status != StatusInline
	case "ephemeralcontainers", "resize":
		return k.isPod()
	case "finalize":
		return k.gvk.Kind == "Namespace" && !k.custom
	default:
		return false
	}
}

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
	if err := checkMeta(k, was, m); err != nil {
		return nil, err
	}
	after = reach(k, req.subresource, before, after)
	if m, err = meta.Accessor(after); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	keepSystemFields(was, m)
	if raisesGeneration(k, before, after) {
		m.SetGeneration(was.GetGeneration() + 1)
	}
	if same(before, after) {
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

// checkVersion is the optimistic lock. Without a version, most built-in kinds are updated whatever their state;
// custom kinds refuse.
func checkVersion(k *kind, was, m metav1.Object) error {
	switch m.GetResourceVersion() {
	case was.GetResourceVersion():
		return nil
	case "":
		if k.unconditional {
			m.SetResourceVersion(was.GetResourceVersion())
			return nil
		}
		return invalid(k, was.GetName(), field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"))
	default:
		if _, err := parseVersion(m.GetResourceVersion()); err != nil {
			return invalid(k, was.GetName(), field.Invalid(field.NewPath("metadata", "resourceVersion"), m.GetResourceVersion(), err.Error()))
		}
		return apierrors.NewConflict(k.resource(), was.GetName(), errModified)
	}
}

// checkMeta refuses changes of metadata that nobody may make.
func checkMeta(k *kind, was, m metav1.Object) error {
	path := field.NewPath("metadata")
	var errs field.ErrorList
	if m.GetUID() != "" && m.GetUID() != was.GetUID() {
		errs = append(errs, field.Invalid(path.Child("uid"), m.GetUID(), "field is immutable"))
	}
	if m.GetName() != was.GetName() || m.GetNamespace() != was.GetNamespace() {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s/%s) does not match the name on the URL (%s/%s)",
			m.GetNamespace(), m.GetName(), was.GetNamespace(), was.GetName()))
	}
	if was.GetDeletionTimestamp() == nil && m.GetDeletionTimestamp() != nil {
		errs = append(errs, field.Invalid(path.Child("deletionTimestamp"), m.GetDeletionTimestamp(), "field is immutable"))
	}
	if was.GetDeletionTimestamp() != nil {
		extra := slices.DeleteFunc(slices.Clone(m.GetFinalizers()), func(f string) bool {
			return slices.Contains(was.GetFinalizers(), f)
		})
		if len(extra) > 0 {
			errs = append(errs, field.Forbidden(path.Child("finalizers"), fmt.Sprintf(
				"no new finalizers can be added if the object is being deleted, found new finalizers %q", strings.Join(extra, ", "))))
		}
	}
	if len(errs) > 0 {
		return invalid(k, was.GetName(), errs...)
	}
	return nil
}

// reach returns what the stored object becomes: after, without the parts that the request cannot change.
func reach(k *kind, subresource string, before, after runtime.Object) runtime.Object {
	switch {
	case subresource != "status":
		if k.status != StatusInline {
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

// keepOwners undoes a change of owner references, which the status of a pod cannot carry.
func keepOwners(to, from runtime.Object) {
	if m, err := meta.Accessor(to); err == nil {
		m.SetOwnerReferences(ownersOf(from))
	}
}

// keepSystemFields undoes changes of what belongs to the server.
func keepSystemFields(was, m metav1.Object) {
	m.SetUID(was.GetUID())
	m.SetCreationTimestamp(was.GetCreationTimestamp())
	m.SetDeletionTimestamp(was.GetDeletionTimestamp())
	m.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	m.SetGeneration(was.GetGeneration())
	m.SetSelfLink(was.GetSelfLink())
	m.SetGenerateName(was.GetGenerateName())
	m.SetResourceVersion(was.GetResourceVersion())
	m.SetManagedFields(was.GetManagedFields())
}

// raisesGeneration says whether a change is one of the desired state. For deployments, annotations count as well.
func raisesGeneration(k *kind, before, after runtime.Object) bool {
	if !k.generation {
		return false
	}
	if !sameDesired(before, after, k.status == StatusInline && k.custom) {
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

// isReleased says whether an update takes the last finalizer from an object whose grace period is over: it vanishes.
func isReleased(was, m metav1.Object) bool {
	if was.GetDeletionTimestamp() == nil || len(m.GetFinalizers()) > 0 {
		return false
	}
	grace := was.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// uidConflict is the server's answer to an update that names another incarnation, or one that is gone.
func uidConflict(k *kind, name string, want, got types.UID) error {
	return apierrors.NewConflict(k.resource(), name, fmt.Errorf("precondition failed: UID in precondition: %s, UID in object meta: %s", want, got))
}

func invalid(k *kind, name string, errs ...*field.Error) error {
	return apierrors.NewInvalid(k.gvk.GroupKind(), name, errs)
}
