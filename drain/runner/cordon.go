// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/objects"
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
	return noderunner.CordonNode(ctx, nodes{e}, f.Node, f.UID, f.Cordon, f.At)
}

// nodes makes the requests for Nodes by the client of an executor.
type nodes struct{ Executor }

// Get implements [noderunner.Nodes], as Patch does.
func (n nodes) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	node, err := objects.Get[*corev1.Node](ctx, n.Client, "", name)
	if node == nil && err == nil {
		err = notFound(name)
	}
	return node, refusal("get", "nodes", "", err)
}

func (n nodes) Patch(ctx context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Node, error) {
	node, err := n.Client.PatchNode(ctx, name, patch, metav1.PatchOptions{DryRun: n.dryRun()})
	return node, refusal("patch", "nodes", "", err)
}

// notFound returns the error of a Node that does not exist.
func notFound(name string) error {
	return apierrors.NewNotFound(corev1.Resource("nodes"), name)
}

// Uncordon lets pods be scheduled to a Node again, after a drain or instead of one. With the owner of the
// cordon of the policy, it removes the claim of the owner and the marks of the cordon that no other owner
// claims. Without an owner, it undoes the zero cordon, as kubectl uncordon does, unless an owner claims
// the mark: see Uncordon of package nodeops. It does not restore evicted pods, and may be repeated.
//
// Uncordon does nothing for a Node that does not exist. The error is that of the API server, or a missing
// client or name.
func (e Executor) Uncordon(ctx context.Context, nodeName, owner string) error {
	if err := usable(e.Client, nodeName); err != nil {
		return err
	}
	bounded, cancel := e.call(ctx)
	defer cancel()
	changed, err := noderunner.UncordonNode(bounded, nodes{e}, nodeName, "", owner)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if e.Observer != nil && (changed || err != nil) {
		e.Observer.Observe(drain.Progress{Type: drain.ProgressUncordoned, Time: e.clock().Now(), Node: nodeName, Subject: "node/" + nodeName, Err: err})
	}
	if err != nil {
		return fmt.Errorf("drain: uncordon: %w", err)
	}
	return nil
}
