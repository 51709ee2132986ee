// SPDX-License-Identifier: Apache-2.0

package runners_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/client"
)

// TestUpdate_LastEntriesRemoved_EntriesOfOthersStay removes the only annotation, label and finalizer of
// a Node in a cache, while another client has added others.
func TestUpdate_LastEntriesRemoved_EntriesOfOthersStay(t *testing.T) {
	t.Parallel()
	cluster := draintest.New(draintest.Options{})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n", Annotations: map[string]string{"ours": "1"}, Labels: map[string]string{"ours": "1"}, Finalizers: []string{"example.com/ours"},
	}}
	require.NoError(t, cluster.Add(node))
	nodes := cluster.Client().CoreV1().Nodes()
	cached, err := nodes.Get(t.Context(), "n", metav1.GetOptions{})
	require.NoError(t, err)
	newer := cached.DeepCopy()
	newer.Annotations["theirs"], newer.Labels["theirs"] = "1", "1"
	newer.Finalizers = append(newer.Finalizers, "example.com/theirs")
	_, err = nodes.Update(t.Context(), newer, metav1.UpdateOptions{})
	require.NoError(t, err)

	next := cached.DeepCopy()
	next.Annotations, next.Labels, next.Finalizers = nil, nil, nil
	stored, err := runners.Update(t.Context(), client.New(nil, cluster.Client()), machinist.Update{Before: cached, Object: next})
	require.NoError(t, err)
	patched := stored.(*corev1.Node) //nolint:forcetypeassert // only in a test
	theirs := map[string]string{"theirs": "1"}
	require.Equal(t, theirs, patched.GetAnnotations())
	require.Equal(t, theirs, patched.GetLabels())
	require.Equal(t, []string{"example.com/theirs"}, patched.GetFinalizers())
}

// TestUpdate_Subresource_OnlyItsPartIsSent changes everything of a Node at once.
func TestUpdate_Subresource_OnlyItsPartIsSent(t *testing.T) {
	t.Parallel()
	before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "7"}}
	after := before.DeepCopy()
	after.Spec.Unschedulable, after.Status.Phase = true, corev1.NodeRunning
	for subresource, want := range map[string]string{
		"":       `{"metadata":{"uid":"u"},"spec":{"unschedulable":true}}`,
		"status": `{"metadata":{"uid":"u"},"status":{"phase":"Running"}}`,
	} {
		sent := &patches{}
		_, err := runners.Update(t.Context(), sent, machinist.Update{Before: before, Object: after, Subresource: subresource})
		require.NoError(t, err)
		require.JSONEq(t, want, sent.data)
	}
	_, err := runners.Update(t.Context(), &patches{}, machinist.Update{Object: after})
	require.ErrorContains(t, err, "patch of node n")
}

// patches keeps the last patch.
type patches struct {
	machinist.Requests
	data string
}

func (p *patches) Patch(_ context.Context, o machinist.Object, _ string, data []byte) (machinist.Object, error) {
	p.data = string(data)
	return o, nil
}
