// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Nodes makes the requests for Nodes. The typed client of client-go, clientset.CoreV1().Nodes(),
// implements it. A client needs the rights to get and patch nodes.
type Nodes interface {
	// Get reads a Node.
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Node, error)
	// Patch changes a Node by a JSON merge patch, and returns it as stored. There are no subresources.
	Patch(ctx context.Context, name string, of types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (*corev1.Node, error)
}

var (
	errNoClient   = errors.New("no client")
	errNoNodeName = errors.New("no node name")
	// errNodeReplaced means that the Node is another one of the same name than the caller
	// meant, or than the one that was read first. It was not changed.
	errNodeReplaced = errors.New("the node was replaced by another of the same name")
)

// UpdateNode reads the Node, calls edit with a copy, and stores metadata and spec if edit returns
// true. It returns the Node as stored, or as read. Changes of the status are not stored. A nil
// edit changes nothing.
//
// The write is a patch of what edit has changed, with the UID and the resource version that were
// read, so no change of another writer is lost.
// After a conflict, UpdateNode reads and edits again, at most five times, with pauses of 100 to
// 200 ms, until the context ends. Errors are wrapped: NotFound and Conflict of
// [k8s.io/apimachinery/pkg/api/errors], and errors of edit, can be matched. Conflict means that
// all attempts met one.
func UpdateNode(
	ctx context.Context, nodes Nodes, nodeName string, edit func(node *corev1.Node) (changed bool, err error),
) (node *corev1.Node, changed bool, err error) {
	if edit == nil {
		edit = func(*corev1.Node) (bool, error) { return false, nil }
	}
	if err := usable(nodes, nodeName); err != nil {
		return nil, false, err
	}
	var first *corev1.Node
	err = retryOnConflict(ctx, func() error {
		read, err := nodes.Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if first == nil {
			first = read
		} else if first.UID != read.UID {
			return errNodeReplaced
		}
		node = read.DeepCopy()
		if changed, err = edit(node); err != nil || !changed {
			return err
		}
		patch, err := patchOf(read, node)
		if err != nil {
			return err
		}
		node, err = nodes.Patch(ctx, nodeName, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("node %q: %w", nodeName, err)
	}
	return node, changed, nil
}

// usable returns an error if an argument is missing.
func usable(nodes Nodes, nodeName string) error {
	switch {
	case nodes == nil:
		return errNoClient
	case nodeName == "":
		return errNoNodeName
	}
	return nil
}

// patchOf returns the JSON merge patch from a Node to its edited copy. The UID and the resource version of
// the Node are preconditions.
func patchOf(read, edited *corev1.Node) ([]byte, error) {
	from, to := read.DeepCopy(), edited.DeepCopy()
	from.ResourceVersion, from.UID, from.ManagedFields, from.Status = "", "", nil, corev1.NodeStatus{}
	to.ResourceVersion, to.UID, to.ManagedFields, to.Status = read.ResourceVersion, read.UID, nil, corev1.NodeStatus{}
	before, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(to)
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, before)
}

// retryOnConflict calls attempt until it returns no conflict, at most five times, with pauses of
// 100 to 200 ms. It returns the last error, joined with that of the context if it has ended.
func retryOnConflict(ctx context.Context, attempt func() error) error {
	pause := wait.Backoff{Steps: 5, Duration: 100 * time.Millisecond, Jitter: 1}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := attempt()
		if !apierrors.IsConflict(err) || pause.Steps <= 1 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; the last attempt ended with: %w", ctx.Err(), err)
		case <-time.After(pause.Step()):
		}
	}
}
