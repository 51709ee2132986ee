// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// metadataPatch returns a JSON merge patch of fields of the metadata. As a merge
// patch replaces lists, a list has to be the whole list, and the UID and the
// resource version go with it: whoever wrote in between makes the patch fail with
// a conflict instead of losing a line.
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
	// OwnerReferences is the whole list, with the entries of all other owners;
	// not nil.
	OwnerReferences []metav1.OwnerReference
	// ReleasedBy is what the [ReleasedAnnotation] becomes; empty removes it, and nil
	// leaves it.
	ReleasedBy *string
}

// Patch returns the edit as a JSON merge patch (types.MergePatchType) with UID
// and resource version as preconditions. The error is never other than nil for
// edits of this package.
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

// A FinalizersEdit is what the finalizers of one object become.
type FinalizersEdit struct {
	// Name, UID and ResourceVersion identify the object as it was read. The write
	// must fail if the UID or the resource version differs.
	Name            string
	UID             types.UID
	ResourceVersion string
	// Finalizers is the whole list, with those of everybody else in their order;
	// not nil.
	Finalizers []string
}

// Patch returns the edit as a JSON merge patch (types.MergePatchType) with UID
// and resource version as preconditions. The error is never other than nil for
// edits of this package.
func (e FinalizersEdit) Patch() ([]byte, error) {
	list := e.Finalizers
	if list == nil {
		list = []string{}
	}
	return metadataPatch(e.UID, e.ResourceVersion, map[string]any{"finalizers": list})
}
