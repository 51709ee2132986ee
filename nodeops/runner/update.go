// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

var (
	errNoClient   = errors.New("no client")
	errNoNodeName = errors.New("no node name")
	// ErrNodeReplaced means that the Node is another one of the same name than the caller
	// meant, or than the one that was read first. It was not changed.
	ErrNodeReplaced = errors.New("the node was replaced by another of the same name")
)

// UpdateNode reads the Node, calls edit with a copy, and stores metadata and spec if edit returns
// true. It returns the Node as stored, or as read. Changes of the status are not stored. A nil
// edit changes nothing.
//
// The write carries the resource version that was read, so no change of another writer is lost.
// After a conflict, UpdateNode reads and edits again, at most five times, with pauses of 100 to
// 200 ms, until the context ends. Errors are wrapped: NotFound and Conflict of
// [k8s.io/apimachinery/pkg/api/errors], and errors of edit, can be matched. Conflict means that
// all attempts met one.
func UpdateNode(
	ctx context.Context, c kubernetes.Interface, nodeName string, edit func(node *corev1.Node) (changed bool, err error),
) (node *corev1.Node, changed bool, err error) {
	if edit == nil {
		edit = func(*corev1.Node) (bool, error) { return false, nil }
	}
	nodes, err := nodesOf(c, nodeName)
	if err != nil {
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
			return ErrNodeReplaced
		}
		node = read.DeepCopy()
		if changed, err = edit(node); err != nil || !changed {
			return err
		}
		node, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("node %q: %w", nodeName, err)
	}
	return node, changed, nil
}

// nodesOf returns the client of Nodes, or an error if an argument is missing.
func nodesOf(c kubernetes.Interface, nodeName string) (typedcorev1.NodeInterface, error) {
	switch {
	case c == nil:
		return nil, errNoClient
	case nodeName == "":
		return nil, errNoNodeName
	}
	return c.CoreV1().Nodes(), nil
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
