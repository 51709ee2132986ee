// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// get reads an object, which has to exist.
func get[T any](t *testing.T, read func(context.Context, string, metav1.GetOptions) (T, error), name string) T {
	t.Helper()
	o, err := read(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return o
}

// list reads the objects that match.
func list[T any](t *testing.T, read func(context.Context, metav1.ListOptions) (T, error), which metav1.ListOptions) T {
	t.Helper()
	objects, err := read(t.Context(), which)
	require.NoError(t, err)
	return objects
}

func create[T any](t *testing.T, write func(context.Context, T, metav1.CreateOptions) (T, error), o T) T {
	t.Helper()
	created, err := write(t.Context(), o, metav1.CreateOptions{})
	require.NoError(t, err)
	return created
}

// patchFunc is the method Patch of a typed client.
type patchFunc[T any] func(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)

// merge sends a merge patch, which has to succeed.
func merge[T any](t *testing.T, write patchFunc[T], name, data string) {
	t.Helper()
	_, err := write(t.Context(), name, types.MergePatchType, []byte(data), metav1.PatchOptions{})
	require.NoError(t, err)
}

// answer lets f answer the requests of the controllers with an error. Those without one are carried out.
func (r *harness) answer(verb, resource string, f func(clienttesting.Action) error) {
	r.t.Helper()
	clients, ok := r.machines.(*fake.Clientset)
	require.True(r.t, ok)
	clients.PrependReactor(verb, resource, func(a clienttesting.Action) (bool, apiruntime.Object, error) {
		err := f(a)
		return err != nil, nil, err
	})
}

// requests counts the requests of the controllers that match.
func (r *harness) requests(verb, resource string, match func(clienttesting.Action) bool) *atomic.Int32 {
	r.t.Helper()
	n := &atomic.Int32{}
	r.answer(verb, resource, func(a clienttesting.Action) error {
		if match(a) {
			n.Add(1)
		}
		return nil
	})
	return n
}

// every matches every request.
func every(clienttesting.Action) bool { return true }

// record records the Events of the controllers.
func (r *harness) record() *record.FakeRecorder {
	events := record.NewFakeRecorder(1000)
	r.events = events
	return events
}

// ofClass returns the spec of a machine of a class.
func ofClass(name string) v1alpha1.MachineSpec {
	return v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: name}}
}
