// SPDX-License-Identifier: Apache-2.0

package nodeops

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
	errNoClient   = errors.New("nodeops: no client")
	errNoNodeName = errors.New("nodeops: no node name")
	// ErrNodeReplaced is returned when the node was deleted and created again under the same
	// name between two attempts at one write. Nothing was written to the new one.
	ErrNodeReplaced = errors.New("nodeops: the node was replaced by another of the same name")
)

// UpdateNode reads the node, lets edit change it, and stores metadata and spec; changes of
// the status are not stored. It returns the node as stored, or as read if edit changed
// nothing, in which case nothing is written. The Node that edit gets is a copy of its own; edit
// may be called several times, each time with what the API server has by then. A nil edit
// changes nothing.
//
// The write carries the version that was read, so that no change of another writer is
// lost: if there was one, the API server refuses, and edit gets the new state. That happens at most
// five times, with 100 to 200 ms in between, and ends with the context. Errors are wrapped:
// NotFound and Conflict of [k8s.io/apimachinery/pkg/api/errors] are recognised, and so is whatever
// edit returned. Conflict means that all attempts met one.
func UpdateNode(
	ctx context.Context, c kubernetes.Interface, nodeName string, edit func(node *corev1.Node) (changed bool, err error),
) (_ *corev1.Node, changed bool, err error) {
	return modify(ctx, c, nodeName, edit, func(nodes typedcorev1.NodeInterface, node *corev1.Node) (*corev1.Node, error) {
		return nodes.Update(ctx, node, metav1.UpdateOptions{})
	})
}

// updateNodeStatus is UpdateNode for the status subresource. The API server then stores
// status and metadata; changes of the spec are not stored.
func updateNodeStatus(
	ctx context.Context, c kubernetes.Interface, nodeName string, edit func(node *corev1.Node) (changed bool, err error),
) (_ *corev1.Node, changed bool, err error) {
	return modify(ctx, c, nodeName, edit, func(nodes typedcorev1.NodeInterface, node *corev1.Node) (*corev1.Node, error) {
		return nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	})
}

// modify is the loop of read, edit and write.
func modify(
	ctx context.Context, c kubernetes.Interface, nodeName string, edit func(*corev1.Node) (changed bool, err error),
	write func(typedcorev1.NodeInterface, *corev1.Node) (*corev1.Node, error),
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
		node, err = write(nodes, node)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("node %q: %w", nodeName, err)
	}
	return node, changed, nil
}

// nodesOf returns the client for nodes, or says what is missing.
func nodesOf(c kubernetes.Interface, nodeName string) (typedcorev1.NodeInterface, error) {
	switch {
	case c == nil:
		return nil, errNoClient
	case nodeName == "":
		return nil, errNoNodeName
	}
	return c.CoreV1().Nodes(), nil
}

// retryOnConflict calls attempt until it does not end in a conflict, at most five times,
// with a pause of 100 to 200 ms, as the reference system meant to. It returns the last error, and the
// end of the context together with it.
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
