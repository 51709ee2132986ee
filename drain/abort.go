// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/nodeops"
)

// ErrNoOwner is returned by [Executor.Abort] if the fence of the policy has no owner, so
// that nobody remembers what the drain did to the Node.
var ErrNoOwner = errors.New("drain: the fence has no owner")

// Abort undoes what a drain with this policy did to a Node: it takes the claim of the
// fence's owner back, and with it the marks that a fence had set and nobody else holds. What others
// did to the Node stays, also what they did since. Pods that went are not brought back.
// It may be called at any time, again and again, also after a drain that was successful:
// it is how a Node is opened again after its maintenance.
//
// The uid is that of the Node that was drained; empty means whichever has the name. A Node
// that is gone, or that was replaced by another, leaves nothing to undo. A policy that keeps the Node
// schedulable did nothing to it. The error is [ErrNoOwner], [ErrNoClient], or what the API
// server said.
func (e Executor) Abort(ctx context.Context, nodeName string, uid types.UID, p Policy) error {
	switch {
	case p.KeepSchedulable:
		return nil
	case p.Fence.Owner == "":
		return ErrNoOwner
	case e.Client == nil:
		return ErrNoClient
	}
	bounded, cancel := e.call(ctx)
	defer cancel()
	changed, err := nodeops.UnfenceNode(bounded, e.Client, nodeName, uid, p.Fence.Owner)
	if apierrors.IsNotFound(err) || errors.Is(err, nodeops.ErrNodeReplaced) {
		return nil
	}
	if e.Observer != nil && (changed || err != nil) {
		e.Observer.Observe(Event{Type: EventUnfenced, Time: e.clock().Now(), Node: nodeName, Subject: nodeSubject(nodeName), Err: err})
	}
	if err != nil {
		return fmt.Errorf("drain: abort: %w", err)
	}
	return nil
}
