// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// accessPeriod is the time between two checks of the RoleBinding of the manager.
const accessPeriod = 30 * time.Second

// releaseAccess removes the finalizer of the RoleBinding in the namespace of the machines, once it
// is being deleted and no object there needs the manager. It runs until the context ends. Without
// such a RoleBinding it does nothing.
func (m *manager) releaseAccess(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		waits, err := m.releaseOnce(ctx)
		switch {
		case apierrors.IsForbidden(err):
			return // it acts by other rights
		case err != nil && ctx.Err() == nil:
			m.log.Error("failed", "kind", "rolebinding", "key", m.s.Namespace+"/"+m.binding(), "err", err)
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

// releaseOnce checks once, and returns the objects that the RoleBinding still waits for.
func (m *manager) releaseOnce(ctx context.Context) (waits string, err error) {
	bindings := m.clients.control.RbacV1().RoleBindings(m.s.Namespace)
	binding, err := bindings.Get(ctx, m.binding(), metav1.GetOptions{})
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

// binding returns the name of the RoleBinding of this program.
func (m *manager) binding() string {
	switch m.s.Part() {
	case controllers.Machines, controllers.MachinesAlone:
		return manifests.AccessBinding(manifests.MachineController)
	case controllers.Sets:
		return manifests.AccessBinding(manifests.MachineControllerManager)
	default:
		return manifests.AccessBinding(manifests.ServiceAccount)
	}
}

// left counts the objects in the namespace that need this program, or returns "". Machines, classes
// and their secrets need a machine-controller. Sets and deployments need a
// machine-controller-manager. It asks the API server, not a cache.
func (m *manager) left(ctx context.Context) (string, error) {
	api, all := m.clients.machines.MachineV1alpha1(), metav1.ListOptions{}
	var waits []string
	var failed []error
	count := func(kind string, n func() (int, error)) {
		switch n, err := n(); {
		case err != nil:
			failed = append(failed, err)
		case n > 0:
			waits = append(waits, fmt.Sprintf("%d %s", n, kind))
		}
	}
	if m.part != controllers.Sets {
		count("machines", func() (int, error) { l, err := api.Machines(m.s.Namespace).List(ctx, all); return items(l, err) })
		count("machine classes", func() (int, error) { l, err := api.MachineClasses(m.s.Namespace).List(ctx, all); return items(l, err) })
		count("of their secrets", func() (int, error) { return m.guardedSecrets(ctx) })
	}
	if m.part == controllers.All || m.part == controllers.Sets {
		count("machine sets", func() (int, error) { l, err := api.MachineSets(m.s.Namespace).List(ctx, all); return items(l, err) })
		count("machine deployments", func() (int, error) {
			l, err := api.MachineDeployments(m.s.Namespace).List(ctx, all)
			return items(l, err)
		})
	}
	return strings.Join(waits, ", "), errors.Join(failed...)
}

// items returns the number of objects in a list.
func items(list runtime.Object, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return meta.LenList(list), nil
}

// guardedSecrets counts the secrets that have the finalizer of the machine controllers.
func (m *manager) guardedSecrets(ctx context.Context) (int, error) {
	secrets, err := m.clients.control.CoreV1().Secrets(m.s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	guarded := 0
	for _, s := range secrets.Items {
		if slices.Contains(s.Finalizers, v1alpha1.MCFinalizerName) {
			guarded++
		}
	}
	return guarded, nil
}
