// SPDX-License-Identifier: Apache-2.0

package draintest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain/draintest"
)

func TestPatch_CustomKind_EachType(t *testing.T) {
	cases := []struct {
		name        string
		kind        types.PatchType
		patch       string
		subresource []string
		check       func(error) bool
		size        int
		phase       string
	}{
		{"a merge patch changes its fields", types.MergePatchType, `{"spec":{"size":7}}`, nil, nil, 7, "Old"},
		{"a patch does not change the status", types.MergePatchType, `{"spec":{"size":7},"status":{"phase":"New"}}`, nil, nil, 7, "Old"},
		{"a status patch does not change the spec", types.MergePatchType, `{"spec":{"size":7},"status":{"phase":"New"}}`, []string{"status"}, nil, 1, "New"},
		{"a stale version is a conflict", types.MergePatchType, `{"metadata":{"resourceVersion":"1"},"spec":{"size":7}}`, nil, apierrors.IsConflict, 1, "Old"},
		{"a stale version of a status is a conflict", types.MergePatchType, `{"metadata":{"resourceVersion":"1"},"status":{"phase":"New"}}`, []string{"status"}, apierrors.IsConflict, 1, "Old"},
		{"another uid is invalid", types.MergePatchType, `{"metadata":{"uid":"x"},"spec":{"size":7}}`, nil, apierrors.IsInvalid, 1, "Old"},
		{"another name is a bad request", types.MergePatchType, `{"metadata":{"name":"x"}}`, nil, apierrors.IsBadRequest, 1, "Old"},
		{"malformed JSON is a bad request", types.MergePatchType, `{`, nil, apierrors.IsBadRequest, 1, "Old"},
		{"a field of another type is invalid", types.MergePatchType, `{"spec":{"size":"big"}}`, nil, apierrors.IsInvalid, 1, "Old"},
		{"a label that is no string is invalid", types.MergePatchType, `{"metadata":{"labels":{"a":1}}}`, nil, apierrors.IsInvalid, 1, "Old"},
		{"no name is a bad request", types.MergePatchType, `{"metadata":null}`, nil, apierrors.IsBadRequest, 1, "Old"},
		{"no namespace means that of the request", types.MergePatchType, `{"metadata":{"namespace":null},"spec":{"size":7}}`, nil, nil, 7, "Old"},
		{"null is a bad request", types.MergePatchType, `null`, nil, apierrors.IsBadRequest, 1, "Old"},
		{"a list is a bad request", types.MergePatchType, `[]`, nil, apierrors.IsBadRequest, 1, "Old"},
		{"a malformed version is an internal error", types.MergePatchType, `{"metadata":{"resourceVersion":"x"}}`, nil, apierrors.IsInternalError, 1, "Old"},
		{"a status patch does not change the metadata", types.MergePatchType, `{"metadata":{"uid":"x","labels":{"a":"1"}},"status":{"phase":"New"}}`, []string{"status"}, nil, 1, "New"},
		{"a strategic patch is not served for a custom kind", types.StrategicMergePatchType, `{"spec":{"size":7}}`, nil, apierrors.IsUnsupportedMediaType, 1, "Old"},
		{"a JSON patch is not served", types.JSONPatchType, `[]`, nil, apierrors.IsUnsupportedMediaType, 1, "Old"},
		{"server-side apply is not served", types.ApplyPatchType, `{}`, nil, apierrors.IsUnsupportedMediaType, 1, "Old"},
		{"an unknown subresource is not found", types.MergePatchType, `{}`, []string{"nothing"}, apierrors.IsNotFound, 1, "Old"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c, _, _ := newCluster(t)
			w := widget("w")
			w.Status.Phase = "Old"
			require.NoError(t, c.Add(w))
			widgets := widgetsOf(c, "ns")
			_, err := widgets.Patch(t.Context(), "w", tc.kind, []byte(tc.patch), metav1.PatchOptions{}, tc.subresource...)
			if tc.check == nil {
				require.NoError(t, err)
			} else {
				require.True(t, tc.check(err), "%v", err)
			}
			got, err := widgets.Get(t.Context(), "w", metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, tc.size, got.Spec.Size)
			require.Equal(t, tc.phase, got.Status.Phase)
		})
	}
	c, _, _ := newCluster(t)
	_, err := widgetsOf(c, "ns").Patch(t.Context(), "w", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestPatch_StrategicMerge_MergesByKey(t *testing.T) {
	c, client, _ := newCluster(t)
	require.NoError(t, c.Add(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}, {Type: "Other", Status: "True"}}},
	}))
	node, err := client.CoreV1().Nodes().PatchStatus(t.Context(), "n", []byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`))
	require.NoError(t, err)
	require.Len(t, node.Status.Conditions, 2)
	require.EqualValues(t, "False", node.Status.Conditions[0].Status)
	node, err = client.CoreV1().Nodes().Patch(t.Context(), "n", types.StrategicMergePatchType,
		[]byte(`{"spec":{"taints":[{"key":"k","effect":"NoSchedule"}],"unschedulable":true}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Len(t, node.Spec.Taints, 1)
	require.True(t, node.Spec.Unschedulable)
}

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

func TestUpdate_EmptyFieldOfCustomKind_IsKept(t *testing.T) {
	c, _, _ := newCluster(t)
	widgets := widgetsOf(c, "ns")
	_, err := widgets.Create(t.Context(), widget("w"), metav1.CreateOptions{})
	require.NoError(t, err)
	got, err := widgets.Patch(t.Context(), "w", types.MergePatchType, []byte(`{"metadata":{"labels":{}},"spec":{"parts":{}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NotNil(t, got.Spec.Parts)
	require.Nil(t, got.Labels, "empty metadata is absent")
	require.EqualValues(t, 2, got.Generation)
}
