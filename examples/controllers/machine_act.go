// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// apply carries out one action and adds its result to the observation.
func (r *machineReconciler) apply(ctx context.Context, in *machine.Observation, kept *memory, do machinist.Action) error {
	switch a := do.(type) {
	case machinist.Update:
		return r.update(ctx, in, kept, a)
	case machinist.Delete:
		return r.delete(ctx, in, kept, a)
	case machinist.Refresh:
		return r.lookForNode(ctx, in, a)
	case machine.CallDriver:
		return r.call(ctx, in, kept, a)
	case machine.DrainNode:
		return r.drain(ctx, in, kept, a)
	case machine.DeleteAttachments:
		return r.deleteAttachments(ctx, in, a)
	case machine.CreateToken:
		return r.createToken(ctx, in, kept, a)
	case machine.TakePermit:
		return r.takePermit(ctx, in, a)
	case machine.ReturnPermit:
		r.permits.Release(a.Key, a.Holder, r.cfg.Clock.Now())
		r.failures.revoke(in.Machine.UID)
		in.Permit.Held = false
		return nil
	default:
		return fmt.Errorf("unknown action %T", do)
	}
}

// clients returns the clients of the machines, and of the objects in the target cluster.
func (r *machineReconciler) clients() clients {
	return clients{machines: r.cfg.Machines, core: r.cfg.Target}
}

// update writes the machine or its Node.
func (r *machineReconciler) update(ctx context.Context, in *machine.Observation, kept *memory, u machinist.Update) error {
	if _, ok := u.Object.(*corev1.Node); ok {
		return r.updateNode(ctx, in, u)
	}
	asked := r.cfg.Clock.Now()
	written, err := r.clients().update(ctx, u)
	if err == nil {
		kept.confirmed = asked
	}
	m, _ := written.(*v1alpha1.Machine)
	return r.afterWrite(ctx, in)(m, err)
}

// updateNode writes the Node. After a conflict the next decision uses the newer Node.
func (r *machineReconciler) updateNode(ctx context.Context, in *machine.Observation, u machinist.Update) error {
	written, err := r.clients().update(ctx, u)
	node, _ := written.(*corev1.Node)
	if apierrors.IsConflict(err) {
		node, err = r.cfg.Target.CoreV1().Nodes().Get(ctx, u.Object.GetName(), metav1.GetOptions{})
	}
	return r.observed(in)(node, err)
}

// afterWrite returns a function that puts the machine which a write returned into the observation.
// The observation of a deleted machine has no machine.
func (r *machineReconciler) afterWrite(ctx context.Context, in *machine.Observation) func(*v1alpha1.Machine, error) error {
	return func(m *v1alpha1.Machine, err error) error {
		switch {
		case apierrors.IsNotFound(err):
			r.written.putDeleted(in.Machine.UID)
			in.Machine = nil
			return nil
		case err != nil:
			return err
		}
		for _, e := range machine.Events(in.Machine, m) {
			r.cfg.event(m, e)
		}
		if !m.DeletionTimestamp.IsZero() && len(m.Finalizers) == 0 {
			r.written.putDeleted(m.UID)
			in.Machine = nil
			return nil
		}
		r.written.put(m)
		renamed := in.Machine.Spec.ProviderID != m.Spec.ProviderID
		in.Machine, in.Node = m, r.observeNode(ctx, m, in.VM) // the write may have set the label of the Node
		if renamed {
			in.ProviderID = r.observeProviderID(m)
		}
		if machine.NeedsSiblings(m) && !in.Siblings.Complete {
			in.Siblings = r.groups.siblings(m)
		}
		return nil
	}
}

// observed returns a function that puts the Node which a request returned into the observation.
func (r *machineReconciler) observed(in *machine.Observation) func(*corev1.Node, error) error {
	return func(n *corev1.Node, err error) error {
		switch {
		case apierrors.IsNotFound(err):
			r.putNodeDeleted(in)
			return nil
		case err != nil:
			return err
		}
		r.writtenNode.put(n)
		in.Node.Node = n
		return nil
	}
}

// putNodeDeleted records that the Node was deleted, until the cache shows that.
func (r *machineReconciler) putNodeDeleted(in *machine.Observation) {
	r.writtenNode.putDeleted(in.Node.Node.UID)
	in.Node.Node = nil
}

// delete deletes the machine, its Node or its bootstrap token.
func (r *machineReconciler) delete(ctx context.Context, in *machine.Observation, kept *memory, a machinist.Delete) error {
	if node, ok := a.Object.(*corev1.Node); ok {
		return r.deleteNode(ctx, in, node)
	}
	if err := r.clients().remove(ctx, a); ignoreNotFound(err) != nil {
		return err
	}
	if token, ok := a.Object.(*corev1.Secret); ok {
		if kept.token != nil && kept.token.UID == token.UID {
			kept.token = nil
		}
		r.writtenToken.putDeleted(token.UID)
		in.Tokens = r.observeTokens(in.Machine, kept)
		return nil
	}
	return r.afterWrite(ctx, in)(r.cfg.Machines.MachineV1alpha1().Machines(a.Object.GetNamespace()).Get(ctx, a.Object.GetName(), metav1.GetOptions{}))
}

// deleteNode deletes the Node of a machine.
func (r *machineReconciler) deleteNode(ctx context.Context, in *machine.Observation, node *corev1.Node) error {
	node, err := deleteNode(ctx, r.cfg.Target, node)
	if node == nil && err == nil { // it had no finalizers
		r.putNodeDeleted(in)
		return nil
	}
	if node != nil {
		r.writtenNode.put(node)
		in.Node.Node = node
	}
	return err
}

// deleteNode removes the finalizer of this manager from a Node and deletes the Node. It returns the
// newest version of the Node, also with an error, and nil for a deleted Node.
func deleteNode(ctx context.Context, target kubernetes.Interface, node *corev1.Node) (*corev1.Node, error) {
	nodes := target.CoreV1().Nodes()
	if patch, needed := machine.ReleaseNode(node); needed {
		released, err := nodes.Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return nil, ignoreNotFound(err)
		}
		node = released
	}
	err := nodes.Delete(ctx, node.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(node.UID))})
	switch {
	case ignoreNotFound(err) != nil:
		return node, err
	case len(node.Finalizers) == 0:
		return nil, nil
	}
	left, err := nodes.Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	return left, nil
}

// deleteAttachments deletes the VolumeAttachments of a Node.
func (r *machineReconciler) deleteAttachments(ctx context.Context, in *machine.Observation, a machine.DeleteAttachments) error {
	if in.Attachments.AskedAt.IsZero() {
		in.Attachments.AskedAt = r.cfg.Clock.Now()
	}
	deleted := map[types.UID]bool{}
	for _, va := range a.Attachments {
		if err := r.clients().remove(ctx, machinist.Delete{Object: va}); ignoreNotFound(err) != nil {
			return err
		}
		deleted[va.UID] = true
	}
	in.Attachments.Attachments = slices.DeleteFunc(slices.Clone(in.Attachments.Attachments),
		func(va *storagev1.VolumeAttachment) bool { return deleted[va.UID] })
	return nil
}

// createToken creates a bootstrap token, if the machine is unchanged on the API server.
func (r *machineReconciler) createToken(ctx context.Context, in *machine.Observation, kept *memory, a machine.CreateToken) error {
	if same, err := r.unchanged(ctx, in, kept); err != nil || !same {
		return err
	}
	token, err := machine.NewBootstrapToken(in.Machine, a.Expires, r.cfg.TokenGroups, rand.Reader)
	if err != nil {
		return err
	}
	created, err := r.clients().create(ctx, token)
	if kept.token, _ = created.(*corev1.Secret); err != nil {
		return err
	}
	in.Tokens = r.observeTokens(in.Machine, kept)
	return nil
}
