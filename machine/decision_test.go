// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestDecision_JSON_ActionIsText(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m := &v1alpha1.Machine{}
	m.Name = "m-1"
	for name, tc := range map[string]struct {
		d    machine.Decision
		want string
	}{
		"zero": {machine.Decision{}, `{}`},
		"action": {
			machine.Decide(machine.Observation{Machine: m}, machine.DefaultPolicy(), at),
			`{"action":"update machine: finalizer","reason":"New","nextCheck":"2026-03-01T12:00:05Z"}`,
		},
		"hold": {
			machine.Decision{Reason: machine.ReasonFrozen, Message: "frozen", Holds: []machinist.Hold{
				machine.Freeze{Frozen: true, Since: at.Add(-time.Hour), Message: "control"}.Hold(at),
			}},
			`{"reason":"Frozen","message":"frozen","holds":[{"subject":"api-server","reason":"Frozen",` +
				`"message":"nothing is created, failed or replaced: control","since":"2026-03-01T11:00:00Z","until":"2026-03-01T12:01:00Z"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range []any{tc.d, &tc.d} {
				out, err := json.Marshal(v)
				require.NoError(t, err)
				require.Equal(t, tc.want, string(out))
			}
		})
	}
}

func TestFreeze_JSON_NoZeroTimes(t *testing.T) {
	out, err := json.Marshal([]machine.Freeze{{}, {Frozen: true, Message: "control", Since: time.Unix(0, 0).UTC()}})
	require.NoError(t, err)
	require.Equal(t, `[{},{"frozen":true,"since":"1970-01-01T00:00:00Z","message":"control"}]`, string(out))
}
