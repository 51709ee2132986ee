// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMalformedOptionsAreInvalid(t *testing.T) {
	c, _, _ := newCluster(t)
	require.NoError(t, c.Add(widget("w")))
	widgets, perhaps := widgetsOf(c, "ns"), []string{"Perhaps"}
	_, err := widgets.Create(t.Context(), widget("x"), metav1.CreateOptions{DryRun: perhaps})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = widgets.Update(t.Context(), widget("w"), metav1.UpdateOptions{DryRun: perhaps})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = widgets.Patch(t.Context(), "w", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: perhaps})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	policy := metav1.DeletionPropagation("Perhaps")
	for _, opts := range []metav1.DeleteOptions{{DryRun: perhaps}, {PropagationPolicy: &policy}} {
		require.True(t, apierrors.IsInvalid(widgets.Delete(t.Context(), "w", opts)))
		require.True(t, apierrors.IsInvalid(widgets.DeleteCollection(t.Context(), opts, metav1.ListOptions{})))
	}
	for _, opts := range []metav1.ListOptions{
		{ResourceVersionMatch: metav1.ResourceVersionMatchExact}, {ResourceVersionMatch: "Perhaps", ResourceVersion: "1"},
		{ResourceVersionMatch: metav1.ResourceVersionMatchExact, ResourceVersion: "0"},
	} {
		_, err = widgets.List(t.Context(), opts)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
	}
	_, err = widgets.Get(t.Context(), "w", metav1.GetOptions{ResourceVersion: "x"})
	require.True(t, apierrors.IsInternalError(err), "as a server has it: %v", err)
	require.Len(t, c.History(), 1)
}
