// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/safety"
)

var errLost = errors.New("no response")

// TestRounds_Classes_AreListedTogether begins a round with two classes. A third one is new, and one is woken.
func TestRounds_Classes_AreListedTogether(t *testing.T) {
	t.Parallel()
	var r safety.Rounds
	now, period := time.Unix(1_700_000_000, 0), 15*time.Minute
	a, b, c := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}, types.NamespacedName{Name: "c"}
	list := func(classes ...types.NamespacedName) {
		t.Helper()
		var listings []safety.Listing
		for _, class := range classes {
			r.Begin(class, now)
			listings = append(listings, safety.NewListing(class, nil, nil, now))
		}
		r.End(listings, safety.Decision[machinist.Action]{NextCheck: now.Add(period)}, now)
	}
	require.Zero(t, r.Next())
	both := []types.NamespacedName{a, b}
	require.Equal(t, both, r.Due(both, now))
	list(a, b)
	round := now.Add(period)
	require.Equal(t, round, r.Next())
	require.Empty(t, r.Due(both, now))

	now = now.Add(10 * time.Second)
	require.Equal(t, []types.NamespacedName{c}, r.Due([]types.NamespacedName{a, b, c}, now))
	list(c)
	require.Equal(t, round, r.Next(), "a listing of one class does not delay the round")

	require.Equal(t, now.Add(50*time.Second), r.Wake(a, now), "a minute after its listing")
	require.Equal(t, now.Add(50*time.Second), r.Next())
	require.Empty(t, r.Due([]types.NamespacedName{a, b, c}, now))
	now = now.Add(50 * time.Second)
	require.Equal(t, []types.NamespacedName{a}, r.Due([]types.NamespacedName{a, b, c}, now))
	list(a)
	require.Equal(t, round, r.Next())
	require.Empty(t, r.Due([]types.NamespacedName{a, b, c}, now))

	now = round
	require.Equal(t, []types.NamespacedName{a, b}, r.Due(both, now), "c no longer exists")
	r.Miss(b)
	list(a)
	require.Equal(t, []types.NamespacedName{b}, r.Due(both, now), "it could not be listed")
}

// TestRounds_DecisionWithoutCheck_KeepsTheRound has a class whose VMs cannot be listed.
func TestRounds_DecisionWithoutCheck_KeepsTheRound(t *testing.T) {
	t.Parallel()
	var r safety.Rounds
	now := time.Unix(1_700_000_000, 0)
	r.End(nil, safety.Decision[machinist.Action]{NextCheck: now.Add(time.Hour)}, now)
	r.End(nil, safety.Decision[machinist.Action]{}, now)
	require.Equal(t, now.Add(time.Hour), r.Next())
	r.End(nil, safety.Decision[machinist.Action]{}, now.Add(time.Hour))
	require.Zero(t, r.Next())
}

// TestRounds_DeletedVM_ItsNodesAreDeletedForTenMinutes deletes a VM with and without a response.
func TestRounds_DeletedVM_ItsNodesAreDeletedForTenMinutes(t *testing.T) {
	t.Parallel()
	class, vm := types.NamespacedName{Namespace: "n", Name: "c"}, safety.DeleteVM{ProviderID: "cloud:///1", Namespace: "n", Class: "c"}
	for name, lost := range map[string]error{"response": nil, "no response": errLost} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r safety.Rounds
			now := time.Unix(1_700_000_000, 0)
			r.Deleted(vm, lost, now)
			if lost != nil {
				require.Empty(t, r.NodesDue(now))
				r.End([]safety.Listing{safety.NewListing(class, map[string]string{vm.ProviderID: "m"}, nil, now)}, safety.Decision[machinist.Action]{}, now)
				r.End([]safety.Listing{safety.NewListing(class, nil, errLost, now)}, safety.Decision[machinist.Action]{}, now)
				require.Empty(t, r.NodesDue(now), "it still exists, or is not known to be gone")
				r.End([]safety.Listing{safety.NewListing(class, nil, nil, now)}, safety.Decision[machinist.Action]{}, now)
			}
			times := 0
			for begin := now; !r.Next().IsZero(); times++ {
				now = r.Next()
				require.Less(t, now.Sub(begin), 11*time.Minute)
				require.Equal(t, []safety.DeleteVM{vm}, r.NodesDue(now))
				require.Empty(t, r.NodesDue(now), "not twice")
			}
			require.Equal(t, 22, times, "every 30 seconds")
		})
	}
}
