// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
)

// Update writes an object and returns the written one. It patches a Node: a cache may lack a part of
// it, and the frequent writes of others to other fields are no conflicts. It writes the whole of any
// other object.
func Update(ctx context.Context, r machinist.Requests, u machinist.Update) (machinist.Object, error) {
	if _, node := u.Object.(*corev1.Node); !node {
		return r.Update(ctx, u.Object, u.Subresource)
	}
	data, err := patch(u.Before, u.Object, u.Unchanged)
	if err != nil {
		return nil, fmt.Errorf("patch of node %s: %w", u.Object.GetName(), err)
	}
	return r.Patch(ctx, u.Object, u.Subresource, data)
}

// Get reads an object of the type of o, with its namespace and name. It returns nil if there is none.
func Get[T comparable](ctx context.Context, r machinist.Requests, o machinist.Object) (none T, _ error) {
	live, err := r.Get(ctx, o)
	if err != nil {
		return none, IgnoreNotFound(err)
	}
	return typed[T](live)
}

// List lists the objects of the type of o in its namespace that a selector matches. A nil selector
// matches all.
func List[T any](ctx context.Context, r machinist.Requests, o machinist.Object, selector *metav1.LabelSelector) ([]T, error) {
	matching := ""
	if selector != nil {
		matching = metav1.FormatLabelSelector(selector)
	}
	live, err := r.List(ctx, o, matching)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(live))
	for i, o := range live {
		if all[i], err = typed[T](o); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// typed returns an object of a response. Requests of an importer may return an object of another type.
func typed[T any](o machinist.Object) (T, error) {
	t, ok := o.(T)
	if !ok {
		return t, fmt.Errorf("the response has an object of type %T instead of %T", o, t)
	}
	return t, nil
}

// IgnoreNotFound returns nil for a NotFound error, and other errors unchanged.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// patch returns the strategic merge patch from before to after. Its preconditions are the UID and, if
// unchanged is true, the resource version.
func patch(before, after machinist.Object, unchanged bool) ([]byte, error) {
	typed, ok := before.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("unknown object %T", before)
	}
	base := typed.DeepCopyObject()
	if o, ok := base.(metav1.Object); ok {
		o.SetUID("") // the patch has what the base lacks
		if unchanged {
			o.SetResourceVersion("")
		}
	}
	old, err := fields(base)
	if err != nil {
		return nil, err
	}
	changed, err := fields(after)
	if err != nil {
		return nil, err
	}
	keepEmpty(old, changed)
	difference, err := strategicpatch.CreateTwoWayMergeMapPatch(old, changed, base)
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
	if data, needed := machine.ReleaseNode(node); needed {
		released, err := r.Patch(ctx, node, "", data)
		if err != nil {
			return nil, IgnoreNotFound(err)
		}
		if node, err = typed[*corev1.Node](released); err != nil {
			return nil, err
		}
	}
	err := r.Delete(ctx, node, false)
	switch {
	case IgnoreNotFound(err) != nil:
		return node, err
	case len(node.Finalizers) == 0:
		return nil, nil
	}
	return Get[*corev1.Node](ctx, r, node)
}
