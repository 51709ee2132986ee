// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/nodeops"
)

// CordonError says that a Node could not be cordoned.
type CordonError struct {
	// Node is its name.
	Node string
	// Err is the answer of the API server.
	Err error
}

// Error returns the name of the Node and what the API server said.
func (e *CordonError) Error() string { return fmt.Sprintf("drain: cordon node %s: %v", e.Node, e.Err) }

// Unwrap returns what the API server said.
func (e *CordonError) Unwrap() error { return e.Err }

// cordon sets a cordon and returns the Node with it. A Node that is gone needs none.
func (e Executor) cordon(ctx context.Context, f *drain.SetCordon) (*corev1.Node, error) {
	if f == nil {
		return nil, nil
	}
	ctx, cancel := e.call(ctx)
	defer cancel()
	node, err := nodeops.CordonNode(ctx, e.Client, f.Node, f.UID, f.Cordon, f.At)
	switch {
	case err == nil:
		return node, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	default:
		return nil, &CordonError{Node: f.Node, Err: err}
	}
}

// Abort undoes what a drain with this policy did to a Node: it takes the claim of the
// cordon's owner back, and with it the marks that a cordon had set and no other owner holds.
// Marks that others set stay. Evicted pods are not brought back. Abort may be called at any
// time, again and again, also after a drain that was successful: it opens a Node again after
// its maintenance.
//
// The uid is that of the Node that was drained; empty means any Node of that name. A Node
// that is gone, or that was replaced by another, leaves nothing to undo. Neither does a policy
// that keeps the Node schedulable. The error is [ErrUnusable] without a client or without an
// owner of the cordon, or the answer of the API server.
func (e Executor) Abort(ctx context.Context, nodeName string, uid types.UID, p drain.Policy) error {
	switch {
	case p.KeepSchedulable:
		return nil
	case p.Cordon.Owner == "":
		return missing("owner of the cordon")
	case e.Client == nil:
		return missing("client")
	}
	bounded, cancel := e.call(ctx)
	defer cancel()
	changed, err := nodeops.UncordonNode(bounded, e.Client, nodeName, uid, p.Cordon.Owner)
	if apierrors.IsNotFound(err) || errors.Is(err, nodeops.ErrNodeReplaced) {
		return nil
	}
	if e.Observer != nil && (changed || err != nil) {
		e.Observer.Observe(drain.Progress{Type: drain.ProgressUncordoned, Time: e.clock().Now(), Node: nodeName, Subject: "node/" + nodeName, Err: err})
	}
	if err != nil {
		return fmt.Errorf("drain: abort: %w", err)
	}
	return nil
}
