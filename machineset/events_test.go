// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/machineset"
)

func TestASetTellsOfItsMachines(t *testing.T) {
	boom := errors.New("boom")
	require.Equal(t, "Normal SuccessfulCreate Created Machine: m", machineset.Created("m", nil).String())
	require.Equal(t, "Warning FailedCreate Error creating: boom", machineset.Created("m", boom).String())
	require.Equal(t, "Normal SuccessfulDelete Deleted machine: m", machineset.Deleted("m", nil).String())
	require.Equal(t, "Warning FailedDelete Error deleting: boom", machineset.Deleted("m", boom).String())
}
