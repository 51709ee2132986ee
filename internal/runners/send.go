// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/objects"
)

// Update writes an object and returns the written one. It patches a Node: a cache may lack a part of
// it, and the frequent writes of others to other fields are no conflicts. It writes the whole of any
// other object.
func Update(ctx context.Context, r machinist.Requests, u machinist.Update) (machinist.Object, error) {
	after, ok := u.Object.(*corev1.Node)
	if !ok {
		return r.Update(ctx, u.Object, u.Subresource)
	}
	before, _ := u.Before.(*corev1.Node)
	if before == nil {
		return nil, fmt.Errorf("patch of node %s: unknown object %T", after.Name, u.Before)
	}
	data, err := patch(partOf(before, u.Subresource), partOf(after, u.Subresource), u.Unchanged)
	if err != nil {
		return nil, fmt.Errorf("patch of node %s: %w", after.Name, err)
	}
	return r.Patch(ctx, u.Object, u.Subresource, data)
}

// List lists the objects of a namespace, or of all, that a selector matches. A nil selector matches all.
func List[P objects.Pointer[T], T any](ctx context.Context, r machinist.Requests, namespace string, selector *metav1.LabelSelector) ([]P, error) {
	matching, o := "", P(new(T))
	if selector != nil {
		matching = metav1.FormatLabelSelector(selector)
	}
	o.SetNamespace(namespace)
	live, err := r.List(ctx, o, matching)
	return objects.All[P](live, err)
}

// partOf returns what a request with a subresource may write of a Node: the metadata and the spec, or the
// metadata and the status. The API server ignores the rest.
func partOf(node *corev1.Node, subresource string) *corev1.Node {
	part := &corev1.Node{TypeMeta: node.TypeMeta, ObjectMeta: node.ObjectMeta}
	part.ManagedFields = nil
	if subresource == "" {
		part.Spec = node.Spec
	} else {
		part.Status = node.Status
	}
	return part
}

// patch returns the strategic merge patch from before to after. Its preconditions are the UID and, if
// unchanged is true, the resource version.
func patch(before, after *corev1.Node, unchanged bool) ([]byte, error) {
	base := *before
	base.UID = "" // the patch has what the base lacks
	if unchanged {
		base.ResourceVersion = ""
	}
	old, err := fields(&base)
	if err != nil {
		return nil, err
	}
	changed, err := fields(after)
	if err != nil {
		return nil, err
	}
	keepEmpty(old, changed)
	difference, err := strategicpatch.CreateTwoWayMergeMapPatch(old, changed, &base)
	if err != nil {
		return nil, err
	}
	return json.Marshal(difference)
}

// fields returns an object as its JSON fields.
func fields(o any) (map[string]any, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(data, &out)
}

// keepEmpty adds the maps and lists of the metadata that have become empty to the changed object. The
// patch then removes their entries, and not those that others have added since.
func keepEmpty(old, changed map[string]any) {
	before, _ := old["metadata"].(map[string]any)
	after, _ := changed["metadata"].(map[string]any)
	for key, value := range before {
		if _, found := after[key]; found {
			continue
		}
		switch value.(type) {
		case map[string]any:
			after[key] = map[string]any{}
		case []any:
			after[key] = []any{}
		}
	}
}

// DeleteNode removes the finalizer of the machine controller from a Node and deletes the Node. It returns
// the newest version of the Node, also with an error, and nil for a deleted Node.
func DeleteNode(ctx context.Context, r machinist.Requests, node *corev1.Node) (*corev1.Node, error) {
	if data, needed := facts.ReleaseNode(node); needed {
		released, err := r.Patch(ctx, node, "", data)
		if err != nil {
			return nil, objects.IgnoreNotFound(err)
		}
		if node, err = objects.Typed[*corev1.Node](released); err != nil {
			return nil, err
		}
	}
	err := r.Delete(ctx, node, false)
	switch {
	case objects.IgnoreNotFound(err) != nil:
		return node, err
	case len(node.Finalizers) == 0:
		return nil, nil
	}
	return objects.Get[*corev1.Node](ctx, r, "", node.Name)
}
