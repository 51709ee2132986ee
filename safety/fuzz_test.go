// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// FuzzStep calls Step with any state, listing and policy.
func FuzzStep(f *testing.F) {
	f.Add([]byte(`{}`), []byte(`{}`), []byte(`{}`), int64(0))
	f.Add([]byte(`{"seen":{"c://z/x":{"class":"shoot/small","machineName":"x","reason":"NoMachine","first":"2026-03-01T12:00:00Z","last":"2026-03-01T12:00:00Z"}}}`),
		[]byte(`{"Listings":[{"Class":{"Namespace":"shoot","Name":"small"},"VMs":{"Items":[{"ProviderID":"c:///z/x","MachineName":"x"}],"AsOf":"2026-03-01T12:11:00Z","Complete":true}}],
"Machines":{"Items":[{"metadata":{"name":"m","namespace":"shoot"},"spec":{"providerID":"c:///z/m"}}],"AsOf":"2026-03-01T12:11:00Z","Complete":true},"Namespace":"*"}`),
		[]byte(`{"MaxDeletions":5}`), int64(11*time.Minute))
	f.Add([]byte(`{"seen":{"disk 1":{"class":"shoot/small","kind":"disk","machineName":"x","reason":"Leftover","first":"2026-03-01T12:00:00Z","last":"2026-03-01T12:00:00Z"}}}`),
		[]byte(`{"Listings":[{"Class":{"Namespace":"shoot","Name":"small"},"VMs":{"AsOf":"2026-03-01T12:11:00Z","Complete":true},"DeletesSideResources":true,
"SideResources":{"Items":[{"Kind":"disk","ID":"1","MachineName":"x"}],"AsOf":"2026-03-01T12:11:00Z","Complete":true}}],
"Machines":{"Items":[{"metadata":{"name":"m","namespace":"shoot"}}],"AsOf":"2026-03-01T12:11:00Z","Complete":true},"Namespace":"*","Nodes":{"Items":[null,{}],"AsOf":"2026-03-01T12:11:00Z","Complete":true}}`),
		[]byte(`{"MaxDeletions":5}`), int64(11*time.Minute))
	f.Add([]byte(`{"proposed":["9999-01-01T00:00:00Z"]}`), []byte(`{"Listings":[{}],"Machines":{"Items":[null]}}`), []byte(`{"Grace":-1,"Period":9223372036854775807}`), int64(-1))
	f.Fuzz(func(t *testing.T, rawState, rawIn, rawPolicy []byte, after int64) {
		var state safety.State
		var in safety.Observation
		var p safety.Policy
		if json.Unmarshal(rawState, &state) != nil || json.Unmarshal(rawIn, &in) != nil || json.Unmarshal(rawPolicy, &p) != nil {
			t.Skip()
		}
		now := start.Add(time.Duration(after))
		next, d := safety.Step(state, in, p, now)
		for _, action := range d.Actions {
			switch a := action.(type) {
			case safety.DeleteVM:
				checkAction(t, state, in, a, p, now)
				require.Equal(t, a.ProviderID, a.Machine().Spec.ProviderID)
			case safety.DeleteSideResource:
				checkSideAction(t, state, in, a, p, now)
			}
		}
		require.LessOrEqual(t, len(d.Actions), max(0, p.MaxDeletions))
		if len(d.Actions) > 0 {
			_, again := safety.Step(next, in, p, now)
			for _, a := range d.Actions {
				require.NotContains(t, again.Actions, a, "proposed twice at a time")
			}
		}
		in.Machines = drain.List[*v1alpha1.Machine]{}
		_, d = safety.Step(state, in, p, now)
		require.Empty(t, d.Actions)
	})
}
