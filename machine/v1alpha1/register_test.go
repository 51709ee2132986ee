// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestAddToScheme_RegistersKindsListsAndOptions(t *testing.T) {
	scheme := newScheme(t)
	for _, kind := range kinds {
		require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind(kind)), kind)
		require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind(kind+"List")), kind)
	}
	require.True(t, scheme.Recognizes(v1alpha1.SchemeGroupVersion.WithKind("ListOptions")))
}
