// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestAddToSchemeRegistersTheKindsTheirListsAndTheOptions(t *testing.T) {
	scheme := newScheme(t)
	for _, kind := range kinds {
		require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind(kind)), kind)
		require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind(kind+"List")), kind)
		_, isObject := newObject(t, kind).(metav1.Object)
		require.True(t, isObject, kind)
	}
	require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind("ListOptions")))
	require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind("WatchEvent")))
}

func TestKindAndResourceAreQualifiedWithTheGroup(t *testing.T) {
	require.Equal(t, "Machine.machine.sapcloud.io", v1alpha1.Kind("Machine").String())
	require.Equal(t, "machines.machine.sapcloud.io", v1alpha1.Resource("machines").String())
	require.Equal(t, "machine.sapcloud.io/v1alpha1", v1alpha1.SchemeGroupVersion.String())
}
