// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/manager/manifests"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// accessPeriod is how often the RoleBinding of the manager is looked at.
const accessPeriod = 10 * time.Second

// releaseAccess lets the RoleBinding with which the manager acts in the namespace of
// the machines go, once it is being deleted and nothing there needs the manager any
// more, until the context ends. A manager that was installed without it has nothing
// to do.
func (m *manager) releaseAccess(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		waits, err := m.releaseOnce(ctx)
		switch {
		case apierrors.IsForbidden(err):
			return // it acts by other rights
		case err != nil && ctx.Err() == nil:
			m.log.Error("failed", "kind", "rolebinding", "key", m.s.Namespace+"/"+manifests.AccessBinding, "err", err)
		case waits != said && waits != "":
			m.log.Warn("the access of the manager to the namespace is being deleted, and is kept until the machines are gone", "waitsFor", waits)
		}
		said = waits
		select {
		case <-ctx.Done():
		case <-time.After(accessPeriod):
		}
	}
}

// releaseOnce looks once, and returns what the RoleBinding still waits for.
func (m *manager) releaseOnce(ctx context.Context) (waits string, err error) {
	bindings := m.clients.control.RbacV1().RoleBindings(m.s.Namespace)
	binding, err := bindings.Get(ctx, manifests.AccessBinding, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	case binding.DeletionTimestamp.IsZero() || !slices.Contains(binding.Finalizers, manifests.AccessFinalizer):
		return "", nil
	}
	if waits, err = m.left(ctx); waits != "" || err != nil {
		return waits, err
	}
	released := binding.DeepCopy()
	released.Finalizers = slices.DeleteFunc(released.Finalizers, func(f string) bool { return f == manifests.AccessFinalizer })
	if _, err = bindings.Update(ctx, released, metav1.UpdateOptions{}); err == nil {
		m.log.Info("the access of the manager to the namespace is released: nothing is left there")
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // it has gone, or is looked at again
		err = nil
	}
	return "", err
}

// left returns what there is in the namespace that needs a manager, and nothing if
// there is nothing. The API server is asked, not a cache.
func (m *manager) left(ctx context.Context) (string, error) {
	api, all := m.clients.machines.MachineV1alpha1(), metav1.ListOptions{}
	machines, err1 := api.Machines(m.s.Namespace).List(ctx, all)
	sets, err2 := api.MachineSets(m.s.Namespace).List(ctx, all)
	deployments, err3 := api.MachineDeployments(m.s.Namespace).List(ctx, all)
	classes, err4 := api.MachineClasses(m.s.Namespace).List(ctx, all)
	secrets, err5 := m.clients.control.CoreV1().Secrets(m.s.Namespace).List(ctx, all)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return "", err
	}
	guarded := 0
	for _, s := range secrets.Items {
		if slices.Contains(s.Finalizers, v1alpha1.MCFinalizerName) {
			guarded++
		}
	}
	counts := []int{len(machines.Items), len(sets.Items), len(deployments.Items), len(classes.Items), guarded}
	if slices.Max(counts) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d machines, %d machine sets, %d machine deployments, %d machine classes, %d of their secrets",
		counts[0], counts[1], counts[2], counts[3], counts[4]), nil
}
