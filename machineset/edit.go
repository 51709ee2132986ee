// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ReleasedAnnotation holds the UID of the owner that let an object go, because
// the owner's selector did not match it any more. It goes when another owner takes
// the object. Without it, a controller that takes away the labels of each new machine
// would make a set create machines for ever.
const ReleasedAnnotation = "machinist.dev/released-by"

// metadataPatch returns a JSON merge patch of fields of the metadata. A merge patch
// replaces lists, so that a list has to be the whole list. The UID and the resource
// version are preconditions: another write in between makes the patch fail with a
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

// An OwnersEdit is what the owner references of one object become.
type OwnersEdit struct {
	// Name, UID and ResourceVersion identify the object as it was read. The write
	// must fail if the UID or the resource version differs.
	Name            string
	UID             types.UID
	ResourceVersion string
	// OwnerReferences is the whole list; it keeps the entries of all other owners. It is
	// not nil.
	OwnerReferences []metav1.OwnerReference
	// ReleasedBy is what the [ReleasedAnnotation] becomes; empty removes it, and nil
	// leaves it.
	ReleasedBy *string
}

// Patch returns the edit as a JSON merge patch (types.MergePatchType) with UID
// and resource version as preconditions. The error is nil for edits of this package.
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
