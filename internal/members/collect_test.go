// SPDX-License-Identifier: Apache-2.0

package members_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/internal/members"
)

func TestCollectFor_Replicas_TimeGrowsWithThem(t *testing.T) {
	for replicas, want := range map[int32]time.Duration{
		-1: 0, 0: 0, 20: 20 * time.Millisecond, 150: 100 * time.Millisecond, 300: 150 * time.Millisecond, 3000: 1500 * time.Millisecond,
	} {
		require.Equal(t, want, members.CollectFor(replicas, 0))
		require.Equal(t, want, members.CollectFor(0, replicas), "machines that are deleted")
	}
}
