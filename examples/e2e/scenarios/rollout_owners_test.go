// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// otherOwner creates an object that owns others beside their controllers, and returns
// how they refer to it.
func otherOwner(t *testing.T, s *env.Env) metav1.OwnerReference {
	t.Helper()
	made, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: made.Name, UID: made.UID}
}

// beside returns a patch that adds an owner to an object.
func beside(t *testing.T, o metav1.Object, owner metav1.OwnerReference) string {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.GetUID(), "ownerReferences": append(slices.Clone(o.GetOwnerReferences()), owner),
	}})
	require.NoError(t, err)
	return string(patch)
}

// relabel sets the label of a machine by which the selectors of a deployment and its
// sets select.
func relabel(t *testing.T, s *env.Env, machine, value string) {
	t.Helper()
	_, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).Patch(t.Context(), machine, mergePatch, []byte(`{"metadata":{"labels":{"name":"`+value+`"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// ownedBy holds when exactly these own a machine or a set, in any order.
func ownedBy[T metav1.Object](get func(context.Context, string, metav1.GetOptions) (T, error), name string, want ...metav1.OwnerReference) env.Condition {
	return func(ctx context.Context) (string, error) {
		o, err := get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return name, err
		}
		have := o.GetOwnerReferences()
		for _, w := range want {
			if len(have) != len(want) || !slices.ContainsFunc(have, func(h metav1.OwnerReference) bool { return h.UID == w.UID }) {
				text, err := json.Marshal(have)
				return "the owners are " + string(text), err
			}
		}
		return "", nil
	}
}

func TestOwners_MachineReleasedAndAdopted_OtherOwnersAreKept(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "owners", fastOptions())
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 2, 1, 0))
	api, theirs := s.Machines.MachineV1alpha1().Machines(s.Namespace), otherOwner(t, s)
	ours := *metav1.NewControllerRef(setOf(t, s, "small"), v1alpha1.SchemeGroupVersion.WithKind("MachineSet"))
	all := machines(t, s)
	m := &all[0]
	_, err := api.Patch(t.Context(), m.Name, mergePatch, []byte(beside(t, m, theirs)), metav1.PatchOptions{})
	require.NoError(t, err)

	relabel(t, s, m.Name, "other")
	s.Wait(t, patience, "it is let go", ownedBy(api.Get, m.Name, theirs))
	require.Equal(t, string(ours.UID), machine(t, s, m.Name).Annotations["machinist.dev/released-by"])
	s.Wait(t, patience, "and replaced", allRun(s, 3))

	annotate(t, s, all[1].Name, v1alpha1.MachinePriority, "1") // it is the one to go
	relabel(t, s, m.Name, "workers")
	s.Wait(t, patience, "it is taken", ownedBy(api.Get, m.Name, theirs, ours))
	s.Wait(t, patience, "another goes", gone(s, all[1].Name))
	taken := machine(t, s, m.Name)
	require.Equal(t, ours.UID, controller(taken))
	require.NotContains(t, taken.Annotations, "machinist.dev/released-by")
	s.Wait(t, patience, "all is as before", allRun(s, 2))
	s.Wait(t, patience, "and reported", s.Complete("workers"))
	require.Len(t, arrivals(s), 3)
	removeAll(t, s)
}

func TestOwners_SetReleasedAndAdopted_OtherOwnersAreKept(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "setowners", fastOptions())
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 2, 1, 0))
	api, theirs := s.Machines.MachineV1alpha1().MachineSets(s.Namespace), otherOwner(t, s)
	ours := *metav1.NewControllerRef(deploymentNamed(t, s, "workers"), v1alpha1.SchemeGroupVersion.WithKind("MachineDeployment"))
	first := setOf(t, s, "small")
	before := machines(t, s)
	patchSet(t, s, first.Name, beside(t, first, theirs))

	patchSet(t, s, first.Name, `{"metadata":{"labels":{"name":"other"}}}`)
	s.Wait(t, patience, "it is let go", ownedBy(api.Get, first.Name, theirs))
	s.Wait(t, patience, "another set takes its place, and the machines stay with it", allRun(s, 4))

	patchSet(t, s, first.Name, `{"metadata":{"labels":{"name":"workers"}}}`)
	s.Wait(t, patience, "it is taken", ownedBy(api.Get, first.Name, theirs, ours))
	s.Wait(t, patience, "the other set is not needed any more", allRun(s, 2))
	s.Wait(t, patience, "all is as before", s.Complete("workers"))
	allOf(t, s, first, 2)
	for _, m := range before {
		require.Nil(t, machine(t, s, m.Name).DeletionTimestamp)
	}
	removeAll(t, s)
}
