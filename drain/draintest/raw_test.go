// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestATypeKeepsRawDataIfAnyPartOfItDoes(t *testing.T) {
	t.Parallel()
	type inner struct {
		Spec map[string][]*runtime.RawExtension
	}
	type ring struct {
		Next *ring
		Of   []inner
	}
	require.True(t, keepsRaw(reflect.TypeFor[*runtime.RawExtension]()))
	require.True(t, keepsRaw(reflect.TypeFor[*ring]()))
	require.True(t, keepsRaw(reflect.TypeFor[*struct{ Any any }]()))
	require.False(t, keepsRaw(reflect.TypeFor[*struct {
		Next *struct{ Nodes []corev1.Node }
	}]()), "times, quantities and numbers or texts are values")
}
