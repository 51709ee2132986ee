// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// observeNode returns the Node that the machine or its VM names, or else the Node with its provider ID.
// For a machine that is being deleted, it reads a Node that the Reader lacks from the API server, because
// the Node may have just joined.
func (p *pass) observeNode(ctx context.Context, m *v1alpha1.Machine) machine.NodeView {
	vm := p.in.VM
	if p.in.Machine == nil {
		vm = p.kept.vm
	}
	name, sameID := vm.NodeNameOf(m), nodeWithID(ctx, p.Reader, cmp.Or(vm.Named.ProviderID, m.Spec.ProviderID))
	if name == "" && sameID != nil {
		name = sameID.Name
	}
	view := runners.View(ctx, p.Reader, name)
	if view.NoTarget || name == "" {
		return view
	}
	if view.Looked && view.Node == nil && !m.DeletionTimestamp.IsZero() && p.Requests != nil {
		live, err := objects.Get[*corev1.Node](ctx, p.Requests, "", name)
		view.Looked, view.Node = err == nil, live
	}
	if !view.Looked {
		return machine.NodeView{Name: name}
	}
	view.Node = p.newest(view.Node)
	if !m.DeletionTimestamp.IsZero() {
		view.Node = vm.NodeToDelete(m, view.Node, p.newest(sameID), p.now())
	}
	return view
}

// newest returns the newest known version of a Node, or nil if it was deleted.
func (p *pass) newest(node *corev1.Node) *corev1.Node {
	if node == nil {
		return nil
	}
	if newest, exists := p.nodes.Newest(node); exists {
		return newest
	}
	return nil
}

// wroteNode records a Node that a request returned, until the Reader shows it.
func (p *pass) wroteNode(node *corev1.Node) {
	p.nodes.Put(node)
	p.in.Node.Node = node
}

// nodeGone records that the Node was deleted, until the Reader shows that.
func (p *pass) nodeGone() {
	p.nodes.PutDeleted(p.in.Node.Node)
	p.in.Node.Node = nil
}

// lookForNode reads a Node from the API server and puts it into the observation.
func (p *pass) lookForNode(ctx context.Context, a machinist.Refresh) error {
	view, err := p.outages.Node(ctx, p.Requests, p.in.Machine.Spec.ProviderID, a.Name, p.now())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		p.decided(machine.Decision{Action: a}, err)
	}
	if view.Unanswered {
		p.in.Node.Unanswered = true
		return nil
	}
	p.in.Node = view
	if view.Node != nil {
		p.wroteNode(view.Node)
	}
	return nil
}

// updateNode writes the Node. After a conflict the next decision uses the newer Node. A refused write does not
// keep the pass from judging the health of the machine: its error is that of the pass.
func (p *pass) updateNode(ctx context.Context, u machinist.Update) error {
	written, err := runners.Update(ctx, p.Requests, u)
	if apierrors.IsConflict(err) {
		written, err = p.Requests.Get(ctx, u.Object)
	}
	switch node, _ := written.(*corev1.Node); {
	case apierrors.IsNotFound(err):
		p.nodeGone()
	case refused(err) && p.refused == nil && p.in.Machine.DeletionTimestamp.IsZero():
		p.refused = fmt.Errorf("%s: %w", u, err)
	case err != nil:
		return err
	case node != nil:
		p.wroteNode(node)
	}
	return nil
}

// refused reports whether the API server refuses a write, and not only because the object has another UID.
func refused(err error) bool {
	cause, _ := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) && cause.Field != "metadata.uid"
}

// deleteNode deletes the Node of a machine.
func (p *pass) deleteNode(ctx context.Context, node *corev1.Node) error {
	left, err := runners.DeleteNode(ctx, p.Requests, node)
	switch {
	case left != nil:
		p.wroteNode(left)
	case err == nil:
		p.nodeGone()
	}
	return err
}
