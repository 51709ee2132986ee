// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
)

// patch carries out a patch of an object or of its status: the patch is applied to the latest state, and the result
// goes the way of an update. A resource version in the patch is a precondition.
func (c *Cluster) patch(k *kind, req request, action clienttesting.PatchActionImpl) (runtime.Object, error) {
	if !writable(k, req.subresource) {
		return nil, notServed()
	}
	if err := checkPatchType(k, action.PatchType); err != nil {
		return nil, err
	}
	before, err := c.get(k, req.namespace, req.name)
	if err != nil {
		return nil, err
	}
	fields, err := applyPatch(k, before, action)
	if err != nil {
		return nil, err
	}
	after, err := c.patched(k, req, action.PatchType == types.StrategicMergePatchType, fields)
	if err != nil {
		return nil, err
	}
	return c.replace(k, req, before, after)
}

// checkPatchType refuses what the server refuses for the kind. Server-side apply, which needs a schema, is not served.
func checkPatchType(k *kind, patchType types.PatchType) error {
	accepted := "application/json-patch+json, application/merge-patch+json"
	switch patchType {
	case types.JSONPatchType, types.MergePatchType:
		return nil
	case types.StrategicMergePatchType:
		if !k.custom {
			return nil
		}
	default:
		if !k.custom {
			accepted += ", application/strategic-merge-patch+json"
		}
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format (" + string(patchType) + ") - accepted media types include: " + accepted,
	}}
}

// applyPatch returns what a patch makes of an object, as the fields of its JSON.
func applyPatch(k *kind, obj runtime.Object, action clienttesting.PatchActionImpl) (map[string]any, error) {
	fields, err := fieldsOf(k, obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if action.PatchType == types.JSONPatchType {
		var operations []map[string]json.RawMessage
		if err := json.Unmarshal(action.Patch, &operations); err != nil {
			return nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
		}
		return applyFree(fields, action)
	}
	var patch map[string]any
	if err := utiljson.Unmarshal(action.Patch, &patch); err != nil {
		return nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
	}
	if action.PatchType == types.MergePatchType {
		if patch == nil {
			return nil, apierrors.NewBadRequest("invalid JSON patch")
		}
		return applyFree(fields, action)
	}
	after, err := strategicpatch.StrategicMergeMapPatch(fields, patch, obj)
	if err != nil {
		return nil, strategicRefusal(err)
	}
	return after, nil
}

// fieldsOf returns an object as JSON would decode.
func fieldsOf(k *kind, obj runtime.Object) (map[string]any, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = k.gvk.GroupVersion().String(), k.gvk.Kind
	return fields, nil
}

// applyFree lets client-go's own reaction apply a patch that needs no schema, on a tracker that holds just this object.
func applyFree(fields map[string]any, action clienttesting.PatchActionImpl) (map[string]any, error) {
	scratch := &patchScratch{obj: &unstructured.Unstructured{Object: fields}}
	action.Subresource = ""
	_, after, err := clienttesting.ObjectReaction(scratch)(action)
	if err != nil {
		// A test that fails, or a path that is not there.
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	free, ok := after.(*unstructured.Unstructured)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("the patch made no object"))
	}
	return free.Object, nil
}

// strategicRefusal is the server's answer to a strategic merge patch that it cannot apply.
func strategicRefusal(err error) error {
	bad := []error{
		mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat,
	}
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case slices.ContainsFunc(bad, is):
		return apierrors.NewBadRequest(err.Error())
	case is(mergepatch.ErrNoListOfLists), is(mergepatch.ErrPatchContentNotMatchRetainKeys):
		return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	default:
		return internal(err.Error())
	}
}

// patched decodes what a patch has made.
func (c *Cluster) patched(k *kind, req request, strategic bool, fields map[string]any) (runtime.Object, error) {
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	refused := func(err error) error {
		return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(data), err.Error())})
	}
	if wrong := wrongType(k, strategic, fields); len(wrong) > 0 && k.custom {
		return nil, apierrors.NewInvalid(k.gvk.GroupKind(), "", wrong)
	} else if len(wrong) > 0 {
		return nil, refused(wrong.ToAggregate())
	}
	obj, err := c.types.New(k.gvk)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if err := utiljson.Unmarshal(data, obj); err != nil {
		return nil, refused(err)
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if !k.custom {
		if obj, _, err = c.fromWire(k, obj); err != nil {
			return nil, err
		}
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	m.SetManagedFields(nil)
	return obj, checkIdentity(req, m)
}

// wrongType says what makes another kind of an object. A strategic merge patch cannot: the server knows the kind.
func wrongType(k *kind, strategic bool, fields map[string]any) field.ErrorList {
	var errs field.ErrorList
	for name, want := range map[string]string{"apiVersion": k.gvk.GroupVersion().String(), "kind": k.gvk.Kind} {
		if got, isText := fields[name].(string); isText && got != want && !strategic {
			errs = append(errs, field.Invalid(field.NewPath(name), got, "must be "+want))
		}
	}
	return errs
}

// checkIdentity refuses a patch that names another object than the request does.
func checkIdentity(req request, after metav1.Object) error {
	if after.GetNamespace() == "" {
		after.SetNamespace(req.namespace)
	}
	if after.GetName() != req.name || after.GetNamespace() != req.namespace {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s/%s) does not match the name on the URL (%s/%s)",
			after.GetNamespace(), after.GetName(), req.namespace, req.name))
	}
	return nil
}

// patchScratch is the tracker of one object which takes the result of a patch without storing it.
type patchScratch struct {
	clienttesting.ObjectTracker // nil: no other method is called for a patch
	obj                         runtime.Object
}

func (s *patchScratch) Get(schema.GroupVersionResource, string, string, ...metav1.GetOptions) (runtime.Object, error) {
	return s.obj, nil
}

func (s *patchScratch) Patch(schema.GroupVersionResource, runtime.Object, string, ...metav1.PatchOptions) error {
	return nil
}
