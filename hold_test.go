// SPDX-License-Identifier: Apache-2.0

package machinist_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
)

func TestHold_String_HasNoTimes(t *testing.T) {
	now := time.Unix(1000, 0)
	require.Equal(t, "machine a: Waiting", machinist.Hold{Subject: "machine a", Reason: "Waiting"}.String())
	require.Equal(t, "machine a: Waiting: for b", machinist.Hold{
		Subject: "machine a", Reason: "Waiting", Message: "for b", Since: now, Until: now,
	}.String())
}

func TestEarliest_AnyOrder_IgnoresZero(t *testing.T) {
	a, b := time.Unix(1, 0), time.Unix(2, 0)
	for _, times := range [][]time.Time{{a}, {a, b}, {b, a}, {{}, a}, {a, {}}, {b, {}, a}} {
		require.Equal(t, a, machinist.Earliest(times...), "%v", times)
	}
	require.Zero(t, machinist.Earliest())
	require.Zero(t, machinist.Earliest(time.Time{}, time.Time{}))
	require.Zero(t, testing.AllocsPerRun(10, func() { machinist.Earliest(a, b) }))
}
