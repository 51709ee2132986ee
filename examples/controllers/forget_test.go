// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	clienttesting "k8s.io/client-go/tools/cache/testing"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func withUID(uid types.UID, version string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: uid, ResourceVersion: version}}
}

// TestOn_UIDChangesInAnUpdate_DeletedThenAdded has an informer that missed a deletion, and so
// reports an update to an object with another UID.
func TestOn_UIDChangesInAnUpdate_DeletedThenAdded(t *testing.T) {
	t.Parallel()
	source := clienttesting.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	informer := cache.NewSharedIndexInformer(source, &corev1.Secret{}, 0, cache.Indexers{})
	told, forgotten := make(chan string, 10), make(chan types.UID, 10)
	uid := func(s *corev1.Secret) types.UID {
		if s == nil {
			return "-"
		}
		return s.UID
	}
	on(informer, func(before, after *corev1.Secret) { told <- fmt.Sprintf("%s %s", uid(before), uid(after)) })
	onDelete(informer, func(s *corev1.Secret) { forgotten <- s.UID })
	has := shows[*corev1.Secret](informer)
	go informer.Run(t.Context().Done())
	source.Add(withUID("1", ""))
	require.Equal(t, "- 1", <-told)
	require.True(t, has("1"))
	source.Modify(withUID("1", ""))
	require.Equal(t, "1 1", <-told)
	source.Modify(withUID("2", ""))
	require.Equal(t, "1 -", <-told)
	require.Equal(t, "- 2", <-told)
	require.Equal(t, types.UID("1"), <-forgotten)
	require.False(t, has("1"))
	require.True(t, has("2"))
}

func TestWritten_CacheLostTheObject_HoldsNothing(t *testing.T) {
	t.Parallel()
	shown := true
	l := newWritten[*corev1.Secret](func(types.UID) bool { return shown })
	l.put(withUID("1", "2"))
	got, exists := l.newest(withUID("1", "1"))
	require.True(t, exists)
	require.Equal(t, "2", got.ResourceVersion)

	shown = false
	l.forget("1")
	l.put(withUID("1", "3")) // an answer that comes late
	l.putDeleted("2")
	require.Empty(t, l.held)
}

// TestMachines_PassEndsAfterItsMachineIsForgotten_TokenIsNotKept ends a pass after the cache has
// lost its machine. The memory with the bootstrap token must not come back.
func TestMachines_PassEndsAfterItsMachineIsForgotten_TokenIsNotKept(t *testing.T) {
	t.Parallel()
	shown := true
	r := &machineReconciler{memory: map[types.UID]memory{}, shows: func(types.UID) bool { return shown }}
	r.written = newWritten[*v1alpha1.Machine](r.shows)
	in := machine.Observation{Machine: &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "1"}}}
	kept := memory{token: withUID("t", "1")}
	r.remember(in, kept)
	require.Len(t, r.memory, 1)
	shown = false
	r.forget("1")
	r.remember(in, kept)
	require.Empty(t, r.memory)
}
