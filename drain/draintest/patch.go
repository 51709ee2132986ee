// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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
	patched, err := applyPatch(before, action)
	if err != nil {
		return nil, err
	}
	after, _, err := c.fromWire(k, patched)
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

// applyPatch lets client-go's own reaction do the work on a tracker that holds just this object.
func applyPatch(obj runtime.Object, action clienttesting.PatchActionImpl) (runtime.Object, error) {
	if !json.Valid(action.Patch) {
		return nil, apierrors.NewBadRequest("error decoding patch: not valid JSON")
	}
	scratch := &patchScratch{obj: obj.DeepCopyObject()}
	action.Subresource = ""
	_, patched, err := clienttesting.ObjectReaction(scratch)(action)
	if err == nil {
		return patched, nil
	}
	if action.PatchType == types.JSONPatchType && isOperationList(action.Patch) {
		// A test that fails, or a path that is not there.
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return nil, apierrors.NewBadRequest(err.Error())
}

func isOperationList(patch []byte) bool {
	var operations []map[string]json.RawMessage
	return json.Unmarshal(patch, &operations) == nil
}

// patchScratch is the tracker of one object which takes the result of a patch without storing it.
type patchScratch struct {
	clienttesting.ObjectTracker // nil: no other method is called for a patch
	obj                         runtime.Object
}

func (s *patchScratch) Get(schema.GroupVersionResource, string, string, ...metav1.GetOptions) (runtime.Object, error) {
	if s.obj == nil {
		return nil, errors.New("no object to patch")
	}
	return s.obj, nil
}

func (s *patchScratch) Patch(schema.GroupVersionResource, runtime.Object, string, ...metav1.PatchOptions) error {
	return nil
}
