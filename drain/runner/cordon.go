// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain"
	noderunner "github.com/machinist-dev/machinist/nodeops/runner"
)

// cordonError is the error of a Node that could not be cordoned.
type cordonError struct{ error }

// Unwrap returns the error of the API server.
func (e cordonError) Unwrap() error { return e.error }

// cordon sets a cordon and returns the Node with it. A Node that does not exist needs no cordon.
func (e Executor) cordon(ctx context.Context, f *drain.SetCordon) (*corev1.Node, error) {
	if f == nil {
		return nil, nil
	}
	ctx, cancel := e.call(ctx)
	defer cancel()
	node, err := e.setCordon(ctx, f)
	switch {
	case err == nil:
		return node, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	default:
		return nil, cordonError{fmt.Errorf("drain: cordon node %s: %w", f.Node, err)}
	}
}

// setCordon writes the cordon. In a dry run the API server only checks the write.
func (e Executor) setCordon(ctx context.Context, f *drain.SetCordon) (*corev1.Node, error) {
	if !e.DryRun {
		return noderunner.CordonNode(ctx, e.Client, f.Node, f.UID, f.Cordon, f.At)
	}
	nodes := e.Client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, f.Node, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if node, _, err = f.Cordon.Set(node, f.At); err != nil {
		return nil, err
	}
	return nodes.Update(ctx, node, metav1.UpdateOptions{DryRun: e.dryRun()})
}

// Abort uncordons the Node of a drain with this policy: it removes the claim of the owner of the
// cordon, and the marks of the cordon that no other owner has claimed. It does not restore evicted
// pods. Abort may be repeated, and may also be called after a successful drain and a maintenance.
//
// The uid is that of the drained Node. Empty means any Node of that name. Abort does nothing for a
// Node that does not exist or was replaced, and for a policy that keeps the Node schedulable. The
// error is that of the API server, or a missing client or owner of the cordon.
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
	changed, err := noderunner.UncordonNode(bounded, e.Client, nodeName, uid, p.Cordon.Owner)
	if apierrors.IsNotFound(err) || errors.Is(err, noderunner.ErrNodeReplaced) {
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
