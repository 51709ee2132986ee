// SPDX-License-Identifier: Apache-2.0

// Package placeholders_test holds the constants of packages machine and drain
// that others write into user data and use as defaults.
package placeholders_test

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
