// SPDX-License-Identifier: Apache-2.0

package permits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGiveUp_ResultWithTimeout_IsKept(t *testing.T) {
	g := &permitGiver{}
	gt := &gate{permits: 1}
	require.True(t, gt.enter())
	granted, dismissed, unanswered := gt.queue(), gt.queue(), gt.queue()

	require.False(t, g.giveUp(gt, unanswered))
	require.Len(t, gt.waiting, 2)
	require.True(t, gt.exit())
	require.True(t, g.giveUp(gt, granted), "it has the permit already")
	gt.dismiss()
	require.False(t, g.giveUp(gt, dismissed))
	require.Equal(t, 1, gt.taken)
}

func TestTouch_EarlierTime_KeepsTheLater(t *testing.T) {
	gt := &gate{permits: 1}
	gt.touch(2 * time.Second) // got the lock first
	gt.touch(time.Second)     // has read the clock first
	require.Equal(t, time.Second, gt.idle(3*time.Second))
}
