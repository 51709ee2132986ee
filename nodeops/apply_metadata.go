// SPDX-License-Identifier: Apache-2.0

package nodeops

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// SetLabelsOnNode gives the node the labels, and leaves its others alone. It is one patch of just
// these keys, which needs no version, meets no conflict, and changes nothing at the API server if
// the node has the labels already. No labels: no call. Errors are wrapped, and recognised by their kind.
func SetLabelsOnNode(ctx context.Context, c kubernetes.Interface, nodeName string, labels map[string]string) error {
	return patchMetadata(ctx, c, nodeName, "labels", valuesOf(labels))
}

// RemoveLabelsFromNode takes the labels with these keys from the node, in the way of
// [SetLabelsOnNode].
func RemoveLabelsFromNode(ctx context.Context, c kubernetes.Interface, nodeName string, keys ...string) error {
	return patchMetadata(ctx, c, nodeName, "labels", nothingFor(keys))
}

// SetAnnotationsOnNode gives the node the annotations, in the way of [SetLabelsOnNode].
func SetAnnotationsOnNode(ctx context.Context, c kubernetes.Interface, nodeName string, annotations map[string]string) error {
	return patchMetadata(ctx, c, nodeName, "annotations", valuesOf(annotations))
}

// RemoveAnnotationsFromNode takes the annotations with these keys from the node, in the way of
// [SetLabelsOnNode].
func RemoveAnnotationsFromNode(ctx context.Context, c kubernetes.Interface, nodeName string, keys ...string) error {
	return patchMetadata(ctx, c, nodeName, "annotations", nothingFor(keys))
}

// patchMetadata sends a merge patch that sets the keys of one map of the metadata, and removes
// those with nil.
func patchMetadata(ctx context.Context, c kubernetes.Interface, nodeName, field string, values map[string]*string) error {
	nodes, err := nodesOf(c, nodeName)
	if err != nil {
		return err
	}
	if len(values) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: values}})
	if err != nil {
		return fmt.Errorf("node %q: %w", nodeName, err)
	}
	if _, err := nodes.Patch(ctx, nodeName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("node %q: %w", nodeName, err)
	}
	return nil
}

// valuesOf returns m as the body of a patch; an empty key is left out.
func valuesOf(m map[string]string) map[string]*string {
	values := make(map[string]*string, len(m))
	for key, value := range m {
		if key != "" {
			values[key] = &value
		}
	}
	return values
}

// nothingFor returns the body of a patch that removes the keys; an empty key is left out.
func nothingFor(keys []string) map[string]*string {
	values := make(map[string]*string, len(keys))
	for _, key := range keys {
		if key != "" {
			values[key] = nil
		}
	}
	return values
}
