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
	"github.com/machinist-dev/machinist/internal/objects"
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
	return p.afterWrite(ctx, written, err)
}

// afterWrite puts the machine which a request returned into the observation. The observation of a deleted
// machine has no machine. Another machine of its name means that it was deleted.
func (p *pass) afterWrite(ctx context.Context, o machinist.Object, err error) error {
	before, m := p.in.Machine, (*v1alpha1.Machine)(nil)
	if err == nil {
		m, err = objects.Typed[*v1alpha1.Machine](o)
	}
	switch {
	case apierrors.IsNotFound(err), err == nil && m.UID != before.UID:
		p.own.PutDeleted(before)
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
		p.own.PutDeleted(m)
		p.in.Machine = nil
		return nil
	}
	p.own.Put(m)
	_, asked := before.Annotations[v1alpha1.RetryNowAnnotation]
	if _, still := m.Annotations[v1alpha1.RetryNowAnnotation]; asked && !still {
		p.in.VM = p.in.VM.RetryNow() // a pass of a drain is made anyway
	}
	p.in.Machine, p.in.Node = m, p.observeNode(ctx, m) // the write may have set the label of the Node
	if before.Spec.ProviderID != m.Spec.ProviderID {
		p.in.ProviderID = observeProviderID(ctx, p.Reader, m)
	}
	if machine.NeedsSiblings(m) && !p.in.Siblings.Complete {
		p.in.Siblings = p.SiblingsOf(ctx, m)
	}
	return nil
}

// delete deletes the machine, its Node or its bootstrap token.
func (p *pass) delete(ctx context.Context, a machinist.Delete) error {
	if node, ok := a.Object.(*corev1.Node); ok {
		return p.deleteNode(ctx, node)
	}
	if err := p.Requests.Delete(ctx, a.Object, a.Unchanged); objects.IgnoreNotFound(err) != nil {
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
	return p.afterWrite(ctx, live, err)
}

// deleteAttachments deletes the VolumeAttachments of a Node.
func (p *pass) deleteAttachments(ctx context.Context, a machine.DeleteAttachments) error {
	if p.in.Attachments.AskedAt.IsZero() {
		p.in.Attachments.AskedAt = p.now()
	}
	deleted := map[types.UID]bool{}
	for _, va := range a.Attachments {
		if err := p.Requests.Delete(ctx, va, false); objects.IgnoreNotFound(err) != nil {
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
	if err != nil {
		return err
	}
	p.kept.token, _ = created.(*corev1.Secret)
	p.in.Tokens = p.observeTokens(ctx, p.in.Machine)
	return nil
}
