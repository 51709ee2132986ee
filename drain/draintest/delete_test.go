// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestDelete_Finalizer_ObjectStays(t *testing.T) {
	c, _, clock := newCluster(t)
	widgets := widgetsOf(c, "ns")
	in := widget("w")
	in.Finalizers = []string{"a/one", "a/two"}
	_, err := widgets.Create(t.Context(), in, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, widgets.Delete(t.Context(), "w", metav1.DeleteOptions{}))
	clock.Step(5e9)
	require.NoError(t, widgets.Delete(t.Context(), "w", metav1.DeleteOptions{}), "a second deletion is no error")

	w, err := widgets.Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, w.DeletionTimestamp.Time.Equal(start))
	require.Zero(t, *w.DeletionGracePeriodSeconds)

	w.Finalizers = append(w.Finalizers, "a/three")
	_, err = widgets.Update(t.Context(), w, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.ErrorContains(t, err, "no new finalizers can be added if the object is being deleted")

	w.Finalizers, w.DeletionTimestamp = []string{"a/two"}, nil
	w, err = widgets.Update(t.Context(), w, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NotNil(t, w.DeletionTimestamp, "a deletion cannot be reverted")

	w.Finalizers = nil
	_, err = widgets.Update(t.Context(), w, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = widgets.Get(t.Context(), "w", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	history := c.History()
	require.Nil(t, history[len(history)-1].After)
	require.True(t, apierrors.IsNotFound(widgets.Delete(t.Context(), "w", metav1.DeleteOptions{})))
}

// child returns a widget with owners.
func child(name string, owners ...*Widget) *Widget {
	w := widget(name)
	for _, owner := range owners {
		w.OwnerReferences = append(w.OwnerReferences, metav1.OwnerReference{
			APIVersion: "example.org/v1", Kind: "Widget", Name: owner.Name, UID: owner.UID,
		})
	}
	return w
}

func TestDelete_Owner_DeletesDependents(t *testing.T) {
	c, _, _ := newCluster(t)
	widgets := widgetsOf(c, "ns")
	create := func(w *Widget) *Widget {
		got, err := widgets.Create(t.Context(), w, metav1.CreateOptions{})
		require.NoError(t, err)
		return got
	}
	there := func(name string) *Widget {
		w, err := widgets.Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		require.NoError(t, err)
		return w
	}
	owner, other := create(widget("owner")), create(widget("other"))
	mid := create(child("mid", owner))
	create(child("leaf", mid))
	create(child("shared", owner, other))
	held := child("held", owner)
	held.Finalizers = []string{"x/y"}
	create(held)
	require.NoError(t, c.Add(child("foreign", &Widget{ObjectMeta: metav1.ObjectMeta{Name: "never", UID: "was-here"}})))

	require.NoError(t, widgets.Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	require.Nil(t, there("mid"))
	require.Nil(t, there("leaf"))
	require.NotNil(t, there("held").DeletionTimestamp, "a finalizer holds it")
	require.Len(t, there("shared").OwnerReferences, 1, "another owner keeps it")

	create(child("late", owner))
	c.Tick()
	require.Nil(t, there("late"), "its owner was deleted before")
	require.NotNil(t, there("foreign"), "an owner that never existed is ignored")

	require.NoError(t, widgets.Delete(t.Context(), "other", metav1.DeleteOptions{}))
	require.Nil(t, there("shared"))
}

func TestDelete_OwnerWithFinalizer_KeepsDependents(t *testing.T) {
	c, client, _ := newCluster(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n-uid", Finalizers: []string{"x/y"}}}
	w := widget("w")
	w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "n-uid"}}
	require.NoError(t, c.Add(node, w))
	require.NoError(t, client.CoreV1().Nodes().Delete(t.Context(), "n", metav1.DeleteOptions{}))
	_, err := widgetsOf(c, "ns").Get(t.Context(), "w", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().Nodes().Patch(t.Context(), "n", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = widgetsOf(c, "ns").Get(t.Context(), "w", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}
