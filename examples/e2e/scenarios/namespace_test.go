// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
)

func TestNamespace_Deleted_MachinesGoAndThenTheNamespace(t *testing.T) {
	t.Parallel()
	o := fastOptions()
	var released atomic.Pointer[time.Time] // when the last VM had gone
	o.AllowDenied = func(r controlplane.Request) bool {
		if r.Code != http.StatusForbidden || r.Namespace == metav1.NamespaceSystem {
			return false
		}
		after := released.Load()
		// A namespace that is being deleted takes nothing new, Events among it; and what
		// its last binding allowed is over when that is gone.
		return r.Verb == "create" || after != nil && r.Time.After(*after)
	}
	s := cluster.Set(t, "deleted", o)
	seen := watchCloud(t, s)
	manager := s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 4, 1, 4)) // who deletes the namespace takes all at once
	roll(t, s, "workers", "large")                          // and in the middle of it
	await(t, seen, drivertest.VMDeletionBegan)
	require.NotEmpty(t, s.Cloud.Snapshot().VMs)

	ctx, namespaces := t.Context(), s.Client.CoreV1().Namespaces()
	require.NoError(t, namespaces.Delete(ctx, s.Namespace, metav1.DeleteOptions{}))
	s.Wait(t, patience, "no VM and no token is left", func(ctx context.Context) (string, error) {
		if n := len(s.Cloud.Snapshot().VMs); n > 0 {
			return "VMs are left", nil
		}
		now := time.Now()
		released.CompareAndSwap(nil, &now)
		tokens, err := s.Tokens(ctx)
		if len(tokens) > 0 {
			return "tokens are left", err
		}
		return "", err
	})
	s.Wait(t, namespacePatience, "the namespace is gone", env.Gone("namespace", namespaces.Get, s.Namespace))
	s.Wait(t, patience, "nothing is left", s.NothingLeft)
	require.True(t, manager.Running(), "its account and its lease are elsewhere")
	require.Contains(t, manager.Log(), "is released: nothing is left there")
}

// TestNamespace_BindingDeletedByHand_KeptWhileThereAreMachines asserts that a binding stays until no object needs it.
func TestNamespace_BindingDeletedByHand_KeptWhileThereAreMachines(t *testing.T) {
	t.Parallel()
	o := fastOptions()
	gone := atomic.Bool{}
	o.AllowDenied = func(r controlplane.Request) bool { return r.Code == http.StatusForbidden && gone.Load() }
	s := cluster.Set(t, "unbound", o)
	s.StartManager(t, "manager")
	ctx := t.Context()
	require.NoError(t, s.Class(ctx, "small"))
	create(t, s, s.Machine("a", "small"))
	s.Wait(t, patience, "the machine runs", running(s, "a"))
	bindings := s.Client.RbacV1().RoleBindings(s.Namespace)
	require.NoError(t, bindings.Delete(ctx, manifests.AccessBinding(manifests.ServiceAccount), metav1.DeleteOptions{}))
	create(t, s, s.Machine("b", "small"))
	s.Wait(t, patience, "another machine runs", running(s, "b"))
	binding, err := bindings.Get(ctx, manifests.AccessBinding(manifests.ServiceAccount), metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, binding.DeletionTimestamp)
	require.True(t, slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Name == manifests.ServiceAccount }))
	removeAll(t, s)
	gone.Store(true)
	s.Wait(t, patience, "the binding is gone", env.Gone("role binding", bindings.Get, manifests.AccessBinding(manifests.ServiceAccount)))
}
