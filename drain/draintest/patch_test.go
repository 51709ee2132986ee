// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain/draintest"
)

func FuzzPatch(f *testing.F) {
	f.Add("application/merge-patch+json", []byte(`{"spec":{"size":7},"metadata":{"finalizers":["a/b"]}}`), "")
	f.Add("application/json-patch+json", []byte(`[{"op":"remove","path":"/metadata"}]`), "")
	f.Add("application/merge-patch+json", []byte(`{"metadata":null}`), "status")
	f.Add("application/json-patch+json", []byte(`[{"op":"add","path":"","value":3}]`), "")
	f.Fuzz(func(t *testing.T, kind string, patch []byte, subresource string) {
		c := draintest.New(draintest.Options{})
		if err := c.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}}); err != nil {
			t.Fatal(err)
		}
		nodes := c.Client().CoreV1().Nodes()
		_, err := nodes.Patch(t.Context(), "n", types.PatchType(kind), patch, metav1.PatchOptions{}, subresource)
		if err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
			t.Fatalf("not an API error: %v", err)
		}
		node, err := nodes.Get(t.Context(), "n", metav1.GetOptions{})
		if err != nil || node.Name != "n" || node.UID != "u" {
			t.Fatalf("the node is damaged: %v %v", node, err)
		}
	})
}
