// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// named returns a machine in a namespace, with a label of that name if it is not empty.
func named(namespace, name, label string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "1"}}
	if label != "" {
		m.Labels = map[string]string{label: "yes"}
	}
	return m
}

// requestsFor returns the requests to a cluster with machines, and to an empty one.
func requestsFor(t *testing.T, machines ...client.Object) requests {
	t.Helper()
	require.NoError(t, v1alpha1.AddToScheme(scheme.Scheme))
	return requests{
		fake.NewClientBuilder().WithObjects(machines...).WithStatusSubresource(&v1alpha1.Machine{}).Build(),
		fake.NewClientBuilder().Build(),
	}
}

// TestRequests_Response_IsTheStoredObjectAlone asserts that a response removes what the argument has.
func TestRequests_Response_IsTheStoredObjectAlone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"Machine","metadata":{"namespace":"a","name":"one"}}`))
	}))
	defer server.Close()
	require.NoError(t, v1alpha1.AddToScheme(scheme.Scheme))
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1alpha1.SchemeGroupVersion.WithKind("Machine"), meta.RESTScopeNamespace)
	live, err := client.New(&rest.Config{Host: server.URL}, client.Options{Mapper: mapper})
	require.NoError(t, err)
	r, m := requests{machines: live}, named("a", "one", "stale")
	read, err := r.Get(t.Context(), m)
	require.NoError(t, err)
	require.Empty(t, read.(*v1alpha1.Machine).Labels)
	patched, err := r.Patch(t.Context(), m, "", []byte(`{}`))
	require.NoError(t, err)
	require.Empty(t, patched.(*v1alpha1.Machine).Labels)
}

func TestRequests_Update_ArgumentIsNotModified(t *testing.T) {
	r := requestsFor(t, named("a", "one", ""))
	read, err := r.Get(t.Context(), named("a", "one", ""))
	require.NoError(t, err)
	m := read.(*v1alpha1.Machine)
	m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning
	written, err := r.Update(t.Context(), m, "status")
	require.NoError(t, err)
	require.Equal(t, v1alpha1.MachineRunning, written.(*v1alpha1.Machine).Status.CurrentStatus.Phase)
	require.NotEqual(t, m.ResourceVersion, written.(*v1alpha1.Machine).ResourceVersion)
	_, err = r.Update(t.Context(), m, "status")
	require.True(t, apierrors.IsConflict(err), "%v", err)
}

func TestRequests_NoObject_NilAndNotFound(t *testing.T) {
	r := requestsFor(t)
	for _, o := range []machinist.Object{named("a", "none", ""), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "none"}}} {
		read, err := r.Get(t.Context(), o)
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.Nil(t, read)
	}
	created, err := r.Create(t.Context(), named("a", "one", ""))
	require.NoError(t, err)
	require.NotNil(t, created)
	created, err = r.Create(t.Context(), named("a", "one", ""))
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	require.Nil(t, created)
}

func TestRequests_List_NamespaceAndSelector(t *testing.T) {
	r := requestsFor(t, named("a", "one", "x"), named("a", "two", ""), named("b", "three", "x"))
	for _, tc := range []struct {
		namespace, selector string
		want                []string
	}{{"", "", []string{"one", "two", "three"}}, {"a", "", []string{"one", "two"}}, {"a", "x=yes", []string{"one"}}, {"", "x", []string{"one", "three"}}} {
		all, err := r.List(t.Context(), named(tc.namespace, "", ""), tc.selector)
		require.NoError(t, err)
		var have []string
		for _, o := range all {
			have = append(have, o.(*v1alpha1.Machine).Name)
		}
		require.Equal(t, tc.want, have, "%v", tc)
	}
	_, err := r.List(t.Context(), named("", "", ""), "=")
	require.Error(t, err)
}

func TestRequests_Delete_Preconditions(t *testing.T) {
	var sent client.DeleteOptions
	r := requests{machines: interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, o ...client.DeleteOption) error {
			sent = client.DeleteOptions{}
			sent.ApplyOptions(o)
			return nil
		},
	})}
	m := named("a", "one", "")
	m.ResourceVersion = "7"
	require.NoError(t, r.Delete(t.Context(), m, false))
	require.Equal(t, &metav1.Preconditions{UID: new(types.UID("1"))}, sent.Preconditions)
	require.NoError(t, r.Delete(t.Context(), m, true))
	require.Equal(t, &metav1.Preconditions{UID: new(types.UID("1")), ResourceVersion: new("7")}, sent.Preconditions)
	require.Error(t, r.Delete(t.Context(), unknown{}, false))
}

// unknown is an object of no API.
type unknown struct{}

func (unknown) GetNamespace() string { return "" }
func (unknown) GetName() string      { return "" }
