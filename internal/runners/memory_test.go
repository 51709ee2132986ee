// SPDX-License-Identifier: Apache-2.0

package runners

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/objects"
)

func secret(uid types.UID, version string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: uid, ResourceVersion: version}}
}

func TestOwn_UntilTheCacheShowsIt_IsNewest(t *testing.T) {
	var own Own[*corev1.Secret]
	cached := secret("1", "1")
	newest, exists := own.Newest(cached)
	require.True(t, exists)
	require.Same(t, cached, newest)

	own.Put(secret("1", "2"))
	newest, exists = own.Newest(cached)
	require.True(t, exists)
	require.Equal(t, "2", newest.ResourceVersion)
	other := secret("2", "1")
	newest, _ = own.Newest(other)
	require.Same(t, other, newest, "another object of the name")

	for _, version := range []string{"2", "3"} {
		own.Put(secret("1", "2"))
		cached = secret("1", version)
		newest, _ = own.Newest(cached)
		require.Same(t, cached, newest)
		require.Empty(t, own.of, "nothing is kept of what the cache shows")
	}
}

func TestOwn_Deleted_DoesNotExistUntilForgotten(t *testing.T) {
	for name, forget := range map[string]func(*Own[*corev1.Secret]){
		"by key": func(own *Own[*corev1.Secret]) { own.Forget(objects.KeyOf(secret("1", ""))) },
		"all":    func(own *Own[*corev1.Secret]) { own.ForgetAll(func(types.NamespacedName) bool { return true }) },
	} {
		var own Own[*corev1.Secret]
		own.PutDeleted(secret("1", "1"))
		_, exists := own.Newest(secret("1", "9"))
		require.False(t, exists, name)
		own.ForgetAll(func(types.NamespacedName) bool { return false })
		_, exists = own.Newest(secret("2", "1"))
		require.True(t, exists, "%s: another object of the name", name)
		_, exists = own.Newest(secret("1", "9"))
		require.False(t, exists, name)
		forget(&own)
		_, exists = own.Newest(secret("1", "9"))
		require.True(t, exists, name)
	}
}

func TestMemory_OtherObjectOfTheName_HasItsOwn(t *testing.T) {
	var memory Memory[int]
	require.Zero(t, memory.Get(secret("1", "")))
	require.Equal(t, 2, memory.Change(secret("1", ""), func(n *int) { *n = 2 }))
	require.Equal(t, 2, memory.Get(secret("1", "")))
	require.Zero(t, memory.Get(secret("2", "")))
	require.Equal(t, 1, memory.Change(secret("2", ""), func(n *int) { *n++ }))
	require.Zero(t, memory.Get(secret("1", "")))
	value, uid := memory.Forget(objects.KeyOf(secret("", "")))
	require.Equal(t, 1, value)
	require.Equal(t, types.UID("2"), uid)
	require.Zero(t, memory.Get(secret("2", "")))
}
