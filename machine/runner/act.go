// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// apply carries out one action and adds its result to the observation.
func (p *pass) apply(ctx context.Context, do machinist.Action) error {
	switch a := do.(type) {
	case machinist.Update:
		return p.update(ctx, a)
	case machinist.Delete:
		return p.delete(ctx, a)
	case machinist.Refresh:
		return p.lookForNode(ctx, a)
	case machine.CallDriver:
		return p.call(ctx, a)
	case machine.DrainNode:
		return p.drain(ctx, a)
	case machine.DeleteAttachments:
		return p.deleteAttachments(ctx, a)
	case machine.CreateToken:
		return p.createToken(ctx, a)
	case machine.TakePermit:
		return p.takePermit(ctx, a)
	case machine.ReturnPermit:
		p.returnPermit(a)
		return nil
	default:
		return fmt.Errorf("unknown action %T", do)
	}
}

// update writes the machine or its Node.
func (p *pass) update(ctx context.Context, u machinist.Update) error {
	if _, ok := u.Object.(*corev1.Node); ok {
		return p.updateNode(ctx, u)
	}
	asked := p.now()
	written, err := runners.Update(ctx, p.Requests, u)
	if err == nil {
		p.kept.confirmed = asked
	}
	m, _ := written.(*v1alpha1.Machine)
	return p.afterWrite(ctx, m, err)
}

// updateNode writes the Node. After a conflict the next decision uses the newer Node.
func (p *pass) updateNode(ctx context.Context, u machinist.Update) error {
	written, err := runners.Update(ctx, p.Requests, u)
	if apierrors.IsConflict(err) {
		written, err = p.Requests.Get(ctx, u.Object)
	}
	switch node, _ := written.(*corev1.Node); {
	case apierrors.IsNotFound(err):
		p.nodeGone()
	case err != nil:
		return err
	case node != nil:
		p.wroteNode(node)
	}
	return nil
}

// afterWrite puts the machine which a request returned into the observation. The observation of a deleted
// machine has no machine.
func (p *pass) afterWrite(ctx context.Context, m *v1alpha1.Machine, err error) error {
	before := p.in.Machine
	switch {
	case apierrors.IsNotFound(err):
		p.wrote(runners.Gone[*v1alpha1.Machine](before.UID), before)
		p.in.Machine = nil
		return nil
	case err != nil:
		return err
	}
	if p.Report != nil {
		for _, e := range machine.Events(before, m) {
			p.Report(m, e)
		}
	}
	if !m.DeletionTimestamp.IsZero() && len(m.Finalizers) == 0 {
		p.wrote(runners.Gone[*v1alpha1.Machine](m.UID), m)
		p.in.Machine = nil
		return nil
	}
	p.wrote(runners.Put(m), m)
	p.in.Machine, p.in.Node = m, p.observeNode(ctx, m) // the write may have set the label of the Node
	if before.Spec.ProviderID != m.Spec.ProviderID {
		p.in.ProviderID = observeProviderID(ctx, p.Reader, m)
	}
	if machine.NeedsSiblings(m) && !p.in.Siblings.Complete {
		p.in.Siblings = siblings(ctx, p.Reader, m)
	}
	return nil
}

// delete deletes the machine, its Node or its bootstrap token.
func (p *pass) delete(ctx context.Context, a machinist.Delete) error {
	if node, ok := a.Object.(*corev1.Node); ok {
		return p.deleteNode(ctx, node)
	}
	if err := p.Requests.Delete(ctx, a.Object, a.Unchanged); runners.IgnoreNotFound(err) != nil {
		return err
	}
	if token, ok := a.Object.(*corev1.Secret); ok {
		if p.kept.token != nil && p.kept.token.UID == token.UID {
			p.kept.token = nil
		}
		p.kept.tokens = maps.Clone(p.kept.tokens)
		if p.kept.tokens == nil {
			p.kept.tokens = map[types.UID]bool{}
		}
		p.kept.tokens[token.UID] = true
		p.in.Tokens = p.observeTokens(ctx, p.in.Machine)
		return nil
	}
	live, err := p.Requests.Get(ctx, a.Object)
	m, _ := live.(*v1alpha1.Machine)
	return p.afterWrite(ctx, m, err)
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

// deleteAttachments deletes the VolumeAttachments of a Node.
func (p *pass) deleteAttachments(ctx context.Context, a machine.DeleteAttachments) error {
	if p.in.Attachments.AskedAt.IsZero() {
		p.in.Attachments.AskedAt = p.now()
	}
	deleted := map[types.UID]bool{}
	for _, va := range a.Attachments {
		if err := p.Requests.Delete(ctx, va, false); runners.IgnoreNotFound(err) != nil {
			return err
		}
		deleted[va.UID] = true
	}
	p.in.Attachments.Attachments = slices.DeleteFunc(slices.Clone(p.in.Attachments.Attachments),
		func(va *storagev1.VolumeAttachment) bool { return deleted[va.UID] })
	return nil
}

// createToken creates a bootstrap token, if the machine is unchanged on the API server.
func (p *pass) createToken(ctx context.Context, a machine.CreateToken) error {
	if same, err := p.unchanged(ctx); err != nil || !same {
		return err
	}
	token, err := machine.NewBootstrapToken(p.in.Machine, a.Expires, p.TokenGroups, rand.Reader)
	if err != nil {
		return err
	}
	created, err := p.Requests.Create(ctx, token)
	if p.kept.token, _ = created.(*corev1.Secret); err != nil {
		return err
	}
	p.in.Tokens = p.observeTokens(ctx, p.in.Machine)
	return nil
}

// takePermit decides whether a machine may fail: first the Guard, then the replacement limit of its group.
func (p *pass) takePermit(ctx context.Context, a machine.TakePermit) error {
	p.in.Permit = machine.PermitView{Asked: true, Within: a.Within}
	if h := p.ask(ctx, a.VMGone, nil); h.Reason != "" {
		p.in.Permit.Refused = h
		return nil
	}
	if a.Within == 0 { // the group has no limit
		p.in.Permit.Held = true
		return nil
	}
	if _, refused := p.permits().AcquireWithin(a.Within, a.Key, a.Holder, p.now()); refused != nil {
		p.revoke()
		p.in.Permit.Refused.Until = refused.RetryAt
		return nil
	}
	p.in.Permit.Held, p.kept.permit = true, a.Key
	m := p.in.Machine
	live, err := runners.List[*v1alpha1.Machine](ctx, p.Requests, &v1alpha1.Machine{ObjectMeta: inNamespaceOf(m)}, nil)
	if err != nil {
		return err
	}
	// The siblings are counted again while the permit is held. The first lists of a new process may not
	// contain the failures of the process before it.
	p.in.Siblings = among(ctx, p.Reader, m, live)
	if h := p.ask(ctx, a.VMGone, live); h.Reason != "" {
		p.permits().Release(a.Key, a.Holder, p.now())
		p.in.Permit.Held, p.in.Permit.Refused = false, h
	}
	return nil
}

// ask asks the Guard whether the machine may fail.
func (p *pass) ask(ctx context.Context, vmGone bool, live []*v1alpha1.Machine) machinist.Hold {
	if p.Guard == nil {
		return machinist.Hold{}
	}
	return p.Guard.Ask(ctx, p.in.Machine, vmGone, live)
}

func (p *pass) revoke() {
	if p.Guard != nil {
		p.Guard.Revoke(p.in.Machine)
	}
}

func (p *pass) returnPermit(a machine.ReturnPermit) {
	p.permits().Release(a.Key, a.Holder, p.now())
	p.revoke()
	p.in.Permit.Held = false
}
