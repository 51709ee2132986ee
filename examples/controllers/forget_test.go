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
