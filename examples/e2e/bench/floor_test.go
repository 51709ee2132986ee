// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// sampleOf returns a sample as an API server returns it.
func sampleOf(t *testing.T, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	require.NoError(t, err)
	return &unstructured.Unstructured{Object: fields}
}

// newFloor returns a loop over a cluster in memory, with a Secret and a Node to begin with.
func newFloor(t *testing.T) (*floor, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	client := dynamicfake.NewSimpleDynamicClient(scheme)
	node := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1"}}
	node.Status.NodeInfo.KubeletVersion = "v1"
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "other", Finalizers: []string{"f"}}}
	f := &floor{client: client, namespace: "floor", templates: samples{}, pools: map[string][]*object{}}
	for name, sample := range map[string]runtime.Object{"nodes": node, "secrets": secret} {
		f.templates[name] = template(sampleOf(t, sample), f.namespace)
		_, err := f.create(t.Context(), name)
		require.NoError(t, err)
	}
	client.ClearActions()
	return f, client
}

// sent counts the writes that a client has made.
func sent(client *dynamicfake.FakeDynamicClient) writes {
	of := writes{}
	for _, a := range client.Actions() {
		of[write{a.GetResource().Resource, a.GetSubresource(), a.GetVerb()}]++
	}
	return of
}

func TestFloor_Writes_EachMade(t *testing.T) {
	create := writes{
		{"nodes", "", "create"}: 10, {"nodes", "status", "patch"}: 10, {"nodes", "", "update"}: 13,
		{"secrets", "", "create"}: 10, {"secrets", "", "delete"}: 10,
	}
	roll := writes{{"nodes", "", "create"}: 10, {"nodes", "", "delete"}: 10, {"nodes", "status", "update"}: 25}
	remove := writes{{"nodes", "", "delete"}: 10, {"nodes", "", "patch"}: 20, {"secrets", "", "patch"}: 1}
	for _, parallel := range []int{1, 4, 50} {
		f, client := newFloor(t)
		for _, of := range []writes{create, roll, remove} {
			client.ClearActions()
			require.NoError(t, f.play(t.Context(), of, 10, parallel))
			require.Equal(t, of, sent(client))
		}
		require.Len(t, f.pools["nodes"], 1)
		require.Len(t, f.pools["secrets"], 1)
	}
}

func TestFloor_Conflict_WrittenAgain(t *testing.T) {
	f, client := newFloor(t)
	refused := 0
	client.PrependReactor("update", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if refused++; refused > 2 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), "n", nil)
	})
	require.NoError(t, f.play(t.Context(), writes{{"nodes", "", "update"}: 1}, 1, 1))
	require.Equal(t, writes{{"nodes", "", "update"}: 3, {"nodes", "", "get"}: 2}, sent(client))
}

func TestFloor_UnknownKind_LeftOut(t *testing.T) {
	f, client := newFloor(t)
	require.NoError(t, f.play(t.Context(), writes{{"pods", "", "create"}: 3, {"nodes", "", "create"}: 2}, 2, 2))
	require.Equal(t, writes{{"nodes", "", "create"}: 2}, sent(client))
}

func TestFloor_MoreDeletionsThanObjects_Error(t *testing.T) {
	f, _ := newFloor(t)
	err := f.play(t.Context(), writes{{"nodes", "", "delete"}: 2}, 2, 1)
	require.ErrorIs(t, err, errNoObject)
	require.ErrorContains(t, err, "delete nodes")
}

func TestTemplate_Sample_WithoutWhatIsItsOwn(t *testing.T) {
	f, _ := newFloor(t)
	secret, node := f.templates["secrets"], f.templates["nodes"]
	require.Empty(t, secret.GetFinalizers())
	require.Equal(t, "floor", secret.GetNamespace())
	require.Empty(t, node.GetUID())
	require.Empty(t, node.GetNamespace())
	require.Equal(t, "v1", node.Object["status"].(map[string]any)["nodeInfo"].(map[string]any)["kubeletVersion"])

	event := template(sampleOf(t, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "other"}, InvolvedObject: corev1.ObjectReference{Namespace: "other", Name: "o"},
	}), "floor")
	require.Equal(t, "floor", event.Object["involvedObject"].(map[string]any)["namespace"])
}

func TestKinds_Status_FieldOfTheStatus(t *testing.T) {
	for name, k := range kinds {
		require.True(t, strings.HasSuffix(name, "s"))
		require.Equal(t, name, k.resource.Resource)
		require.Equal(t, len(k.status) > 0, k.value != nil, name)
		if len(k.status) > 0 {
			require.Equal(t, "status", k.status[0])
		}
	}
}
