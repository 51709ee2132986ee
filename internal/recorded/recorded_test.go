// SPDX-License-Identifier: Apache-2.0

package recorded_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/internal/recorded"
)

func TestRecorded_TimeInTheFuture_IsNotKnownAndCountsAsNow(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		recorded time.Time
		known    bool
		at       time.Time
	}{
		"never":            {time.Time{}, false, time.Time{}},
		"long ago":         {now.AddDate(-56, 0, 0), true, now.AddDate(-56, 0, 0)},
		"now":              {now, true, now},
		"a moment ahead":   {now.Add(1), false, now},
		"in the year 2199": {now.AddDate(173, 0, 0), false, now},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.known, recorded.Known(c.recorded, now))
			require.Equal(t, c.at, recorded.At(c.recorded, now))
		})
	}
}
