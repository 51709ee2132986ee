// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
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

func TestCloud_KeepsTheContract(t *testing.T) {
	Run(t, func(*testing.T) Harness { return new(Cloud).Harness() })
}

// slow returns options with latency for every operation.
func slow() CloudOptions {
	return CloudOptions{
		CreateLatency: 20 * time.Second, DeleteLatency: 3 * time.Second, CallLatency: time.Second,
		BootTime: time.Minute, ShutdownTime: 40 * time.Second, Lag: 15 * time.Second,
	}
}

func TestCloud_EveryOption_KeepsTheContract(t *testing.T) {
	for name, options := range map[string]CloudOptions{
		"with latency":                {CreateLatency: time.Minute, DeleteLatency: time.Second, CallLatency: time.Second},
		"with lag":                    {Lag: 10 * time.Second},
		"with a slow shutdown":        {ShutdownTime: time.Minute},
		"slow in everything":          slow(),
		"with initialization":         {NeedsInitialization: true, Lag: time.Second},
		"with a credential":           {Credential: "a-long-credential"},
		"with other node names":       {NodeName: func(m string) string { return "ip-" + m + ".internal" }},
		"with another provider":       {Provider: "acme"},
		"without GetMachineStatus":    {Unimplemented: []driver.Operation{driver.OpGetMachineStatus}},
		"without GetVolumeIDs":        {Unimplemented: []driver.Operation{driver.OpGetVolumeIDs}},
		"with a quota that is enough": {Quota: 5},
		"with negative options":       {CreateLatency: -1, BootTime: -1, ShutdownTime: -1, Lag: -1, Quota: -1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, p := range promises() {
				synctest.Test(t, func(t *testing.T) {
					cloud := NewCloud(options)
					foreign := cloud.AddVM(VM{Namespace: "elsewhere", Machine: "vm-0"})
					h := cloud.Harness()
					if err := check(t.Context(), h, p); !errors.Is(err, errNotChecked) {
						require.NoError(t, err, p.Name)
					}
					time.Sleep(h.Settle) // of the bubble
					left := cloud.Snapshot()
					require.Len(t, left.VMs, 1, "%s left a VM behind", p.Name)
					require.Equal(t, foreign.ProviderID, left.VMs[0].ProviderID)
					require.Empty(t, left.Of("vm-0").Leftovers())
				})
			}
		})
	}
}

func TestPromises_BrokenDriver_IsReported(t *testing.T) {
	cases, missed := map[string]promise{}, map[string]bool{}
	for _, p := range promises() {
		cases[p.Name], missed[p.Name] = p, true
	}
	for name, f := range flaws {
		t.Run(name, func(t *testing.T) {
			for want := range strings.FieldsSeq(f.caught) {
				require.Contains(t, cases, want)
				delete(missed, want)
				synctest.Test(t, func(t *testing.T) {
					err := check(t.Context(), newBroken(f.breakIt).Harness(), cases[want])
					time.Sleep(time.Hour) // of the bubble: abandoned calls end
					require.Error(t, err, "the case %s lets this pass", want)
					require.NotErrorIs(t, err, errNotChecked)
					require.ErrorContains(t, err, cases[want].Text, "the failure does not name the promise")
				})
			}
		})
	}
	require.Empty(t, missed, "no broken driver shows that these cases can fail")
}

func TestPromises_NotOffered_AreNotChecked(t *testing.T) {
	const initialization = "InitializeCompletes InitializeWithoutVM UninitializedHasIdentity"
	unimplemented := []driver.Operation{driver.OpGetMachineStatus, driver.OpGetVolumeIDs}
	little := NewCloud(CloudOptions{Unimplemented: unimplemented}).Harness()
	little.OtherScope, little.FailCreate = nil, nil
	for want, h := range map[string]Harness{
		"":             NewCloud(CloudOptions{NeedsInitialization: true}).Harness(),
		initialization: new(Cloud).Harness(),
		"GetWithoutVM CreateAfterFailure GetFindsByName GetFindsByProviderID GetAfterDelete ListStaysInScope " +
			"DeleteSideResourceRemovesOne " + initialization + " VolumesOfOtherSystems VolumesInOrder": little,
	} {
		var absent []string
		for _, p := range promises() {
			if err := check(t.Context(), h, p); errors.Is(err, errNotChecked) {
				absent = append(absent, p.Name)
			} else {
				require.NoError(t, err)
			}
		}
		require.Equal(t, want, strings.Join(absent, " "))
	}
}

func TestCheck_IncompleteHarness_Fails(t *testing.T) {
	for _, p := range promises() {
		require.Error(t, check(t.Context(), Harness{}, p))
	}
	require.Error(t, check(t.Context(), new(Cloud).Harness(), promise{}))
}

// creating is a promise that creates machines and then has a result.
func creating(machines int, result error) promise {
	return promise{Name: "Creating", Text: "Something.", Check: func(ctx context.Context, e *env) error {
		for range machines {
			if _, err := e.Create(ctx, e.Machine()); err != nil {
				return err
			}
		}
		return result
	}}
}

func TestCheck_Fails_CleansUp(t *testing.T) {
	cloud := NewCloud(CloudOptions{})
	require.ErrorContains(t, check(t.Context(), cloud.Harness(), creating(3, errors.New("broken"))), "broken")
	require.True(t, cloud.Snapshot().Empty(), cloud.Snapshot())
	require.Len(t, cloud.History(), 12, "four events of each VM")
}

func TestCheck_ResponseLost_CleansUpAfterSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := NewCloud(CloudOptions{Lag: time.Minute})
		cloud.Inject(Fault{Operation: driver.OpCreateMachine, Kind: LoseResponse})
		require.Error(t, check(t.Context(), cloud.Harness(), creating(1, nil)))
		require.NotEmpty(t, cloud.History())
		require.True(t, cloud.Snapshot().Empty(), cloud.Snapshot())
	})
}

func TestCheck_CleanupFails_NamesTheMachines(t *testing.T) {
	cloud := NewCloud(CloudOptions{})
	cloud.Inject(Fault{Operation: driver.OpDeleteMachine, Code: codes.PermissionDenied})
	err := check(t.Context(), cloud.Harness(), creating(1, nil))
	require.ErrorContains(t, err, "delete the VMs of the machines conformance-")
}

func TestRun_FundamentalPromiseBroken_OnlyItFailsAndDependentsAreSkipped(t *testing.T) {
	for name, tc := range map[string]struct {
		checked string // some promises that do not need the broken one
		breakIt func(*broken)
	}{
		"DeleteWithoutVM": {"VolumesInOrder VolumesOfOtherSystems", func(b *broken) {
			b.remove = recoding(b.remove, codes.NotFound, codes.Internal)
		}},
		"CreateReturnsIdentity": {"DeleteWithoutVM GetWithoutVM WrongProvider InvalidRequest VolumesInOrder", func(b *broken) {
			b.create = recoding(b.create, codes.OK, codes.Internal)
		}},
		"ListIsComplete": {"CreateReturnsIdentity GetFindsByName GetFindsByProviderID WrongProvider", func(b *broken) {
			b.list = recoding(b.list, codes.OK, codes.Internal)
		}},
		"GetWithoutVM": {"CreateReturnsIdentity CreateTwice GetFindsByName ListAfterDelete", func(b *broken) {
			b.get = recoding(b.get, codes.NotFound, codes.Internal)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &report{}
			synctest.Test(t, func(t *testing.T) {
				h := newBroken(tc.breakIt).Harness()
				for _, p := range promises() {
					_ = r.check(t.Context(), h, p)
				}
				time.Sleep(time.Hour) // of the bubble: abandoned calls end
			})
			require.Equal(t, []string{name}, r.broken)
			require.Contains(t, r.notChecked, "CanceledCreate: it needs "+name+", which is broken")
			for checked := range strings.FieldsSeq(tc.checked) {
				require.NotContains(t, r.String(), checked)
			}
			require.Equal(t, len(promises()), r.kept+len(r.broken)+len(r.notChecked))
		})
	}
}

func TestReport_String_ListsBrokenAndUnchecked(t *testing.T) {
	r := &report{}
	require.NoError(t, r.record(promise{Name: "A"}, nil))
	require.Error(t, r.record(promise{Name: "C"}, errors.New("boom")))
	require.Error(t, r.record(promise{Name: "B"}, errors.New("boom")))
	require.Error(t, r.record(promise{Name: "D"}, errNotChecked))
	require.Error(t, r.check(t.Context(), Harness{}, promise{Name: "E", Needs: []string{"A", "C"}}))
	require.Equal(t, `driver contract: 1 promises kept, 2 broken, 2 not checked
  broken: B
  broken: C
  not checked: D: not checked
  not checked: E: it needs C, which is broken`, r.String())
}

func TestPromises_Order_FundamentalFirstAndNeedsBeforeDependents(t *testing.T) {
	var names []string
	for _, p := range promises() {
		require.NotEmpty(t, p.Text)
		require.NotContains(t, names, p.Name)
		require.Subset(t, names, p.Needs, "%s runs before what it needs", p.Name)
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
