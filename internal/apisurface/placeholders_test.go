// SPDX-License-Identifier: Apache-2.0

package apisurface_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine"
)

func TestPlaceholders_Values_AsMCM(t *testing.T) {
	require.Equal(t, "<<BOOTSTRAP_TOKEN>>", machine.BootstrapTokenPlaceholder)
	require.Equal(t, "<<MACHINE_NAME>>", machine.MachineNamePlaceholder)
	require.Equal(t, 2*time.Hour, drain.DefaultMachineDrainTimeout)
}
