// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestClass_NamedByATemplate_StaysUntilTheDeploymentIsDeleted asserts that a class keeps its finalizer
// for a deployment without machines, which may be scaled up at any time.
func TestClass_NamedByATemplate_StaysUntilTheDeploymentIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ctx, api := t.Context(), r.machines.MachineV1alpha1()
		r.tick = time.Second
		r.start()
		r.create("m")
		r.deploy(ctx, 0)
		class := func() *v1alpha1.MachineClass {
			c, err := api.MachineClasses(namespace).Get(ctx, "class", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			require.NoError(t, err)
			return c
		}
		r.remove("m")
		r.eventually("machine deleted", func() bool { return r.gone(ctx, "m") })
		time.Sleep(time.Minute)
		require.NoError(t, api.MachineClasses(namespace).Delete(ctx, "class", metav1.DeleteOptions{}))
		time.Sleep(time.Minute)
		require.NotNil(t, class(), "the class is deleted although a deployment needs it")
		require.True(t, slices.Contains(class().Finalizers, v1alpha1.MCMFinalizerName))

		require.NoError(t, api.MachineDeployments(namespace).Delete(ctx, "d", metav1.DeleteOptions{}))
		r.eventually("class deleted", func() bool { return class() == nil })
	})
}

// TestClass_OfAnEmptyOldSet_CanBeDeleted asserts that the history of a deployment does not keep the
// classes of former templates, and that no moment is without the finalizer of the new one.
func TestClass_OfAnEmptyOldSet_CanBeDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		ctx, api := t.Context(), r.machines.MachineV1alpha1()
		r.tick = time.Second
		r.start()
		r.create("m")
		create(t, api.MachineClasses(namespace).Create, &v1alpha1.MachineClass{
			ObjectMeta: metav1.ObjectMeta{Name: "next"}, Provider: "simulated", SecretRef: &corev1.SecretReference{Namespace: namespace, Name: "class"},
		})
		r.remove("m")
		r.deploy(ctx, 1)
		time.Sleep(time.Minute)
		r.patchDeployment(`{"spec":{"paused":true,"template":{"spec":{"class":{"name":"next"}}}}}`)
		r.eventually("the template alone has the finalizer of the new class", func() bool {
			next, err := api.MachineClasses(namespace).Get(ctx, "next", metav1.GetOptions{})
			return err == nil && slices.Contains(next.Finalizers, v1alpha1.MCMFinalizerName)
		})
		time.Sleep(time.Minute) // the status is written
		r.patchDeployment(`{"spec":{"paused":false}}`)
		time.Sleep(time.Minute)
		sets := list(t, api.MachineSets(namespace).List, metav1.ListOptions{})
		require.Len(t, sets.Items, 2, "the old set is kept for a rollback")
		require.NoError(t, api.MachineClasses(namespace).Delete(ctx, "class", metav1.DeleteOptions{}))
		r.eventually("old class deleted", func() bool {
			_, err := api.MachineClasses(namespace).Get(ctx, "class", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	})
}
