// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ReleasedAnnotation has the UID of the owner that released an object because its selector did not
// match. Another owner that adopts the object removes it. It bounds the machines that are created
// if another client removes the labels of each new machine.
const ReleasedAnnotation = "machinist.dev/released-by"

// metadataPatch returns a JSON merge patch of metadata fields. A merge patch replaces lists. The
// UID and the resource version are preconditions: after another write the patch fails with a
// conflict.
func metadataPatch(uid types.UID, resourceVersion string, metadata map[string]any) ([]byte, error) {
	if uid != "" {
		metadata["uid"] = uid
	}
	if resourceVersion != "" {
		metadata["resourceVersion"] = resourceVersion
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, fmt.Errorf("encoding patch of metadata: %w", err)
	}
	return patch, nil
}

// OwnersEdit is a change of the owner references of one object.
type OwnersEdit struct {
	// Name, UID and ResourceVersion identify the object as it was read. The write must fail if the
	// UID or the resource version differs.
	Name            string
	UID             types.UID
	ResourceVersion string
	// OwnerReferences is the whole list, including those of other owners. It is not nil.
	OwnerReferences []metav1.OwnerReference
	// ReleasedBy is the new [ReleasedAnnotation]. Empty removes it, nil keeps it.
	ReleasedBy *string
}

// Patch returns the edit as a JSON merge patch (types.MergePatchType) with UID and resource version
// as preconditions. The error is nil for edits of this package.
func (e OwnersEdit) Patch() ([]byte, error) {
	list := e.OwnerReferences
	if list == nil {
		list = []metav1.OwnerReference{}
	}
	metadata := map[string]any{"ownerReferences": list}
	if e.ReleasedBy != nil {
		var value any // null removes
		if *e.ReleasedBy != "" {
			value = *e.ReleasedBy
		}
		metadata["annotations"] = map[string]any{ReleasedAnnotation: value}
	}
	return metadataPatch(e.UID, e.ResourceVersion, metadata)
}
