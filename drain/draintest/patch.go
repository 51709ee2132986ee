// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
)

// patch carries out a patch of an object or of its status: an update of the stored object with the patch. A resource
// version in the patch is a precondition.
func (c *Cluster) patch(k *kind, req request, action clienttesting.PatchActionImpl) (runtime.Object, error) {
	if !writable(req.subresource) {
		return nil, notServed()
	}
	before, err := c.get(k, req.namespace, req.name)
	if err != nil {
		return nil, err
	}
	fields, err := applyPatch(k, before, action)
	if err != nil {
		return nil, err
	}
	after, err := c.patched(k, req, action.PatchType, fields)
	if err != nil {
		return nil, err
	}
	return c.replace(k, req, before, after)
}

// applyPatch returns the patched object as the fields of its JSON. Strategic merge patches are for built-in kinds. JSON
// patches and server-side apply are not served.
func applyPatch(k *kind, obj runtime.Object, action clienttesting.PatchActionImpl) (map[string]any, error) {
	strategic := action.PatchType == types.StrategicMergePatchType && !k.custom
	if !strategic && action.PatchType != types.MergePatchType {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: "patches of this type are not served: " + string(action.PatchType),
		}}
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var fields, patch map[string]any
	if err := utiljson.Unmarshal(data, &fields); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if err := utiljson.Unmarshal(action.Patch, &patch); err != nil {
		return nil, apierrors.NewBadRequest("error decoding patch: " + err.Error())
	}
	if !strategic {
		if patch == nil {
			return nil, apierrors.NewBadRequest("invalid JSON patch")
		}
		return merged(fields, patch), nil
	}
	after, err := strategicpatch.StrategicMergeMapPatch(fields, patch, obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return after, nil
}

// merged applies a JSON merge patch to fields, which it changes.
func merged(fields, patch map[string]any) map[string]any {
	for name, value := range patch {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(fields, name)
		case isObject:
			was, _ := fields[name].(map[string]any)
			if was == nil {
				was = map[string]any{}
			}
			fields[name] = merged(was, inner)
		default:
			fields[name] = value
		}
	}
	return fields
}

// patched decodes the fields of a patched object.
func (c *Cluster) patched(k *kind, req request, patchType types.PatchType, fields map[string]any) (runtime.Object, error) {
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	for name, want := range map[string]string{"apiVersion": k.gvk.GroupVersion().String(), "kind": k.gvk.Kind} {
		if got, isText := fields[name].(string); isText && got != want && patchType == types.MergePatchType {
			path := name
			if !k.custom {
				path = "patch"
			}
			return nil, invalid(k, "", field.Invalid(field.NewPath(path), got, "must be "+want))
		}
	}
	obj, err := c.types.New(k.gvk)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if err := utiljson.Unmarshal(data, obj); err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(data), err.Error())})
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if !k.custom {
		if obj, _, err = c.fromWire(k, obj); err != nil {
			return nil, err
		}
	}
	metaOf(obj).SetManagedFields(nil)
	return obj, checkIdentity(req, metaOf(obj))
}

// checkIdentity returns an error for a patch that changes the name or namespace.
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
