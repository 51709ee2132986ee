// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/drain"
)

func TestLaddersGoUp(t *testing.T) {
	for _, tt := range []struct {
		name    string
		ladder  drain.Ladder
		rung    int
		problem string // empty if there is none
	}{
		{"the empty ladder is valid", nil, 0, ""},
		{"rungs of the same time are", drain.Ladder{{Action: drain.IgnoreBudgets}, {Action: drain.ForceDeletePods, Grace: time.Second}, {Action: drain.Proceed}}, 0, ""},
		{"a negative time is not", drain.Ladder{{After: -1, Action: drain.IgnoreBudgets}}, 0, "negative"},
		{"a rung before the one below it is not", drain.Ladder{{After: 2, Action: drain.IgnoreBudgets}, {After: 1, Action: drain.Proceed}}, 1, "before the rung below"},
		{"nothing is above going on", drain.Ladder{{Action: drain.Proceed}, {Action: drain.IgnoreBudgets}}, 1, "above the end"},
		{"nothing is above giving up", drain.Ladder{{Action: drain.GiveUp}, {Action: drain.Proceed}}, 1, "above the end"},
		{"less than a second of grace is not", drain.Ladder{{Action: drain.IgnoreBudgets, Grace: 1}}, 0, "less than a second"},
		{"more grace than below is not", drain.Ladder{{Action: drain.IgnoreBudgets, Grace: time.Second}, {Action: drain.IgnoreBudgets}, {Action: drain.ForceDeletePods, Grace: time.Minute}}, 2, "more grace"},
		{"graces that fall are", drain.Ladder{{Action: drain.IgnoreBudgets, Grace: time.Minute}, {Action: drain.IgnoreBudgets, Grace: time.Second}}, 0, ""},
		{"a rung must do something", drain.Ladder{{}}, 0, `the action ""`},
		{"that is known", drain.Ladder{{Action: "Pray"}}, 0, `the action "Pray"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.ladder.Validate()
			if tt.problem == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, fmt.Sprintf("drain: rung %d: ", tt.rung))
			require.ErrorContains(t, err, tt.problem)
		})
	}
}

func TestRungsReadAsText(t *testing.T) {
	for want, rung := range map[string]drain.Rung{
		"after 0s IgnoreBudgets":                {Action: drain.IgnoreBudgets},
		"after 1m0s ForceDeletePods (grace 2s)": {After: time.Minute, Action: drain.ForceDeletePods, Grace: 2 * time.Second},
	} {
		require.Equal(t, want, rung.String())
	}
}
