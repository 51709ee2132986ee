// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
)

// runAll checks all promises of a driver in the order of Run, and returns the report.
func runAll(t *testing.T, breakIt func(*broken)) *report {
	t.Helper()
	r := &report{}
	synctest.Test(t, func(t *testing.T) {
		b := &broken{Cloud: NewCloud(CloudOptions{})}
		breakIt(b)
		h := b.Harness()
		h.New = func() driver.Driver { return b }
		for _, p := range promises() {
			_ = r.check(t.Context(), h, p)
		}
		time.Sleep(time.Hour) // let abandoned calls end
	})
	return r
}

func TestRun_FundamentalPromiseBroken_OnlyItFailsAndDependentsAreSkipped(t *testing.T) {
	for name, tc := range map[string]struct {
		breakIt func(*broken)
		kept    string // some promises that are still checked
	}{
		"DeleteWithoutVM": {func(b *broken) {
			b.remove = recoding(b.Cloud.DeleteMachine, codes.NotFound, codes.Internal)
		}, "VolumesInOrder VolumesOfOtherSystems"},
		"CreateReturnsIdentity": {func(b *broken) {
			b.create = recoding(b.Cloud.CreateMachine, codes.OK, codes.Internal)
		}, "DeleteWithoutVM GetWithoutVM WrongProvider InvalidRequest VolumesInOrder"},
		"ListIsComplete": {func(b *broken) {
			b.list = recoding(b.Cloud.ListMachines, codes.OK, codes.Internal)
		}, "CreateReturnsIdentity GetFindsByName GetFindsByProviderID WrongProvider RequestsAreUnchanged"},
		"GetWithoutVM": {func(b *broken) {
			b.get = recoding(b.Cloud.GetMachineStatus, codes.NotFound, codes.Internal)
		}, "CreateReturnsIdentity CreateTwice GetFindsByName ListAfterDelete"},
	} {
		t.Run(name, func(t *testing.T) {
			r := runAll(t, tc.breakIt)
			require.Equal(t, []string{name}, r.broken)
			require.Contains(t, r.String(), "1 broken")
			require.Contains(t, r.String(), "\n  broken: "+name+"\n")
			require.Contains(t, r.String(), "\n  not checked: CanceledCreate: it needs "+name+", which is broken")
			for kept := range strings.FieldsSeq(tc.kept) {
				require.NotContains(t, r.String(), kept)
			}
			require.Equal(t, len(promises()), r.kept+len(r.broken)+len(r.notChecked))
		})
	}
}

func TestReport_String_ListsBrokenAndUnchecked(t *testing.T) {
	r := &report{}
	require.Equal(t, "driver contract: 0 promises kept, 0 broken, 0 not checked", r.String())
	require.NoError(t, r.record(promise{Name: "A"}, nil))
	require.Error(t, r.record(promise{Name: "C"}, errors.New("boom")))
	require.Error(t, r.record(promise{Name: "B"}, errors.New("boom")))
	require.Error(t, r.record(promise{Name: "D"}, errors.Join(errNotChecked)))
	require.Error(t, r.check(t.Context(), Harness{}, promise{Name: "E", Needs: []string{"A", "C"}}))
	require.Equal(t, "driver contract: 1 promises kept, 2 broken, 2 not checked\n  broken: B\n  broken: C\n  not checked: D: not checked\n  not checked: E: it needs C, which is broken", r.String())
}

func TestPromises_Order_FundamentalFirstAndNeedsBeforeDependents(t *testing.T) {
	var names []string
	for _, p := range promises() {
		require.NotContains(t, names, p.Name)
		for _, need := range p.Needs {
			require.Contains(t, names, need, "%s runs before what it needs", p.Name)
		}
		names = append(names, p.Name)
	}
	require.True(t, slices.Equal(needsAll, names[:len(needsAll)]))
}

func TestCloud_VMTerminated_IsForgottenAfterTheLag(t *testing.T) {
	c := NewCloud(CloudOptions{})
	v := c.AddVM(VM{Namespace: "shoot", Machine: "m-1"})
	require.True(t, c.Terminate(v.ProviderID))
	require.Empty(t, c.vms)
	require.Empty(t, c.sides)
}
