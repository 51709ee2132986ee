// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOfManyMachinesThatAreNotAvailableSomeAreToldOneByOne(t *testing.T) {
	d := rolling(8, 1, 0)
	dec := rollPlan(d, rollSet(d, "c1", 8, 8, 0))
	require.Len(t, dec.Holds, 6)
	require.Equal(t, "md-c1-04", dec.Holds[4].Subject)
	require.Equal(t, "md-c1", dec.Holds[5].Subject)
	require.Equal(t, "3 more machines are not available", dec.Holds[5].Message)
}
