// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

func TestTyped_DeletedFinalStateUnknown_CallsWithTheObject(t *testing.T) {
	t.Parallel()
	var got []string
	f := typed(func(s *corev1.Secret) { got = append(got, string(s.UID)) })
	f(withUID("1", ""))
	f(cache.DeletedFinalStateUnknown{Key: "ns/name", Obj: withUID("2", "")})
	f(cache.DeletedFinalStateUnknown{Key: "ns/name", Obj: nil})
	f(cache.DeletedFinalStateUnknown{Key: "ns/name", Obj: &corev1.Pod{}})
	require.Equal(t, []string{"1", "2"}, got)
}
