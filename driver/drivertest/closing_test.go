// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClosingLineNamesWhatWasNotChecked(t *testing.T) {
	require.Equal(t, "all 30 promises of the driver contract were checked", closingLine(30, nil))
	require.Equal(t, "28 of 30 promises of the driver contract were checked; the others: A (x); B (y)",
		closingLine(30, []string{"B (y)", "A (x)"}))
}

func TestBooksForgetWhatIsNotEvenShownAnyMore(t *testing.T) {
	c := NewCloud(CloudOptions{})
	v := c.AddVM(VM{Namespace: "shoot", Machine: "m-1"})
	require.True(t, c.Terminate(v.ProviderID))
	require.Empty(t, c.vms)
	require.Empty(t, c.sides)
}
