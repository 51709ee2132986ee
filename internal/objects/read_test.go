// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"context"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
)

// filling is a Reader that writes what it finds into the object that it was given, as those of controller-runtime do.
type filling struct{ asked []corev1.Node }

func (r *filling) Get(_ context.Context, o machinist.Object) (machinist.Object, error) {
	node := o.(*corev1.Node) //nolint:forcetypeassert // only in a test
	r.asked = append(r.asked, *node)
	if node.Name == "missing" {
		node.Labels = map[string]string{"half": "read"}
		return nil, nil
	}
	node.Spec.ProviderID = "of " + node.Name
	return node, nil
}

func (r *filling) List(_ context.Context, o machinist.Object, _, _ string) ([]machinist.Object, error) {
	r.asked = append(r.asked, *o.(*corev1.Node)) //nolint:forcetypeassert // only in a test
	return nil, nil
}

func TestGet_ReaderFillsTheObject_EachReadAsksAnew(t *testing.T) {
	t.Parallel()
	r := &filling{}
	for range 100 {
		r.asked = nil
		a, err := objects.Get[*corev1.Node](t.Context(), r, "", "a")
		require.NoError(t, err)
		_, err = objects.Get[*corev1.Node](t.Context(), r, "n", "missing")
		require.NoError(t, err)
		_, err = objects.In[*corev1.Node](t.Context(), r, "n")
		require.NoError(t, err)
		_, err = objects.List[*corev1.Node](t.Context(), r, "index", "key")
		require.NoError(t, err)
		require.Equal(t, "of a", a.Spec.ProviderID, "no later read writes into a result")
		var want [4]corev1.Node
		want[0].Name, want[1].Name, want[1].Namespace, want[2].Namespace = "a", "missing", "n", "n"
		require.Equal(t, want[:], r.asked)
	}
}

// found is a Reader of one Node.
type found struct{ node *corev1.Node }

func (r found) Get(context.Context, machinist.Object) (machinist.Object, error) { return r.node, nil }

func TestGet_Cached_MakesNoObject(t *testing.T) {
	r := found{&corev1.Node{}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const runs = 1000
	for range runs {
		_, _ = objects.Get[*corev1.Node](t.Context(), r, "", "n")
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/runs, uint64(unsafe.Sizeof(corev1.Node{})), "bytes for each read")
}
