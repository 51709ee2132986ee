// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/nodeops"
)

// CordonNode sets a cordon and returns the Node as stored. With a uid, another Node of the same
// name is not changed, and the error says so. An empty uid means any Node of the name.
// The zero Cordon is one patch without a read; others are written as by [UpdateNode]. A Node that does
// not exist is a NotFound error. An invalid cordon is refused without a request.
func CordonNode(ctx context.Context, nodes Nodes, nodeName string, uid types.UID, f nodeops.Cordon, now time.Time) (*corev1.Node, error) {
	if err := f.Validate(); err != nil {
		return nil, fmt.Errorf("node %q: %w", nodeName, err)
	}
	if f == (nodeops.Cordon{Reason: f.Reason}) {
		return patchUnschedulable(ctx, nodes, nodeName, uid)
	}
	node, _, err := UpdateNode(ctx, nodes, nodeName, onlyIf(uid, func(node *corev1.Node) (*corev1.Node, bool) {
		next, changed, _ := f.Set(node, now) // it is valid
		return next, changed
	}))
	return node, err
}

// UncordonNode removes the claim of an owner and the marks that no other claim holds, or without an
// owner the zero Cordon, as [nodeops.Uncordon] does, and writes the Node as [UpdateNode] does. It reports whether the Node was
// written. The uid and the errors are those of [CordonNode].
func UncordonNode(ctx context.Context, nodes Nodes, nodeName string, uid types.UID, owner string) (changed bool, err error) {
	_, changed, err = UpdateNode(ctx, nodes, nodeName, onlyIf(uid, func(node *corev1.Node) (*corev1.Node, bool) {
		return nodeops.Uncordon(node, owner)
	}))
	return changed, err
}

// onlyIf returns an edit that fails for a Node with another uid. Empty means any Node.
func onlyIf(uid types.UID, edit func(*corev1.Node) (*corev1.Node, bool)) func(*corev1.Node) (bool, error) {
	return func(node *corev1.Node) (bool, error) {
		if uid != "" && node.UID != uid {
			return false, errNodeReplaced
		}
		next, changed := edit(node)
		*node = *next
		return changed, nil
	}
}

// patchUnschedulable sets spec.unschedulable with one patch.
func patchUnschedulable(ctx context.Context, nodes Nodes, nodeName string, uid types.UID) (*corev1.Node, error) {
	if err := usable(nodes, nodeName); err != nil {
		return nil, err
	}
	type fields map[string]any
	body := fields{"spec": fields{"unschedulable": true}}
	if uid != "" {
		body["metadata"] = fields{"uid": uid}
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", nodeName, err)
	}
	node, err := nodes.Patch(ctx, nodeName, types.MergePatchType, patch, metav1.PatchOptions{})
	if refusesUID(err) {
		return nil, fmt.Errorf("node %q: %w", nodeName, errNodeReplaced) // err refuses this object, not the request
	}
	if err != nil {
		return nil, fmt.Errorf("node %q: %w", nodeName, err)
	}
	return node, nil
}

// refusesUID reports whether the API server refused a patch because the object has another uid.
func refusesUID(err error) bool {
	cause, ok := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return ok && cause.Field == "metadata.uid"
}
