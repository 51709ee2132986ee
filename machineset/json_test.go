// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machineset"
)

func TestDecision_JSON_NamesObjectsWithoutZeroTimes(t *testing.T) {
	preserve := "now"
	data, err := json.Marshal(machineset.Decision{
		Reason: machineset.ReasonTooMany,
		Actions: []machineset.Action{
			machineset.SetFinalizers{Name: "workers", UID: "1", Reason: machineset.ReasonSetDeleting},
			machineset.Sync{Name: "a", UID: "2", Preserve: &preserve},
			machineset.Look{Name: "b"},
			machineset.Delete{Name: "c", UID: "3", Reason: machineset.ReasonTooMany, By: "Health"},
			machineset.Create{Count: 2},
		},
		Holds:     []machinist.Hold{{Subject: "machine/b", Reason: machineset.ReasonNotSeen, Message: "not in the cache"}},
		NextCheck: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	})
	require.NoError(t, err)
	require.JSONEq(t, `{
		"reason": "TooManyMachines",
		"actions": [
			{"type": "SetFinalizers", "subject": "machineset/workers", "uid": "1", "reason": "MachineSetDeleting", "text": "remove finalizer from set workers"},
			{"type": "Sync", "subject": "machine/a", "uid": "2", "reason": "OutOfSync", "text": "update preservation of machine a"},
			{"type": "Look", "subject": "machine/b", "reason": "NotSeen", "text": "look for machine b"},
			{"type": "Delete", "subject": "machine/c", "uid": "3", "reason": "TooManyMachines", "text": "delete machine c: TooManyMachines, chosen by Health"},
			{"type": "Create", "count": 2, "reason": "TooFewMachines", "text": "create 2 machines"}
		],
		"holds": [{"subject": "machine/b", "reason": "NotSeen", "message": "not in the cache"}],
		"nextCheck": "2026-03-01T12:00:00Z"
	}`, string(data))

	for _, actions := range [][]machineset.Action{nil, {nil}, {machineset.Create{}}} {
		_, err = json.Marshal(machineset.Decision{Actions: actions})
		require.NoError(t, err)
	}
}
