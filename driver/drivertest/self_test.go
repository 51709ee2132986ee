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
		"with latency":                 {CreateLatency: time.Minute, DeleteLatency: time.Second, CallLatency: time.Second},
		"with lag":                     {Lag: 10 * time.Second},
		"with a slow shutdown":         {ShutdownTime: time.Minute},
		"slow in everything":           slow(),
		"with initialization":          {NeedsInitialization: true, Lag: time.Second},
		"with a credential":            {Credential: "a-long-credential"},
		"with other node names":        {NodeName: func(m string) string { return "ip-" + m + ".internal" }},
		"with another provider":        {Provider: "acme"},
		"without GetMachineStatus":     {Unimplemented: []driver.Operation{driver.OpGetMachineStatus}},
		"without GetVolumeIDs":         {Unimplemented: []driver.Operation{driver.OpGetVolumeIDs}},
		"with a quota that is enough":  {Quota: 4},
		"with negative options":        {CreateLatency: -1, BootTime: -1, ShutdownTime: -1, Lag: -1, Quota: -1},
		"with other VMs in its region": {},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range promises() {
				t.Run(c.Name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						cloud := NewCloud(options)
						if name == "with other VMs in its region" {
							cloud.AddVM(VM{Namespace: "elsewhere", Machine: "vm-0"})
						}
						h := cloud.Harness()
						err := check(t.Context(), h, c)
						if !errors.Is(err, errNotChecked) {
							require.NoError(t, err)
						}
						time.Sleep(h.Settle) // of the bubble
						require.Empty(t, cloud.Snapshot().Of("vm-0").Leftovers())
						for _, v := range cloud.Snapshot().VMs {
							require.Equal(t, "elsewhere", v.Namespace, "a case left something behind")
						}
					})
				})
			}
		})
	}
}

func TestPromises_Each_IsCheckedOnSomeCloud(t *testing.T) {
	// Every check must run on at least one cloud.
	for _, c := range promises() {
		require.NotEmpty(t, c.Text)
		plain := check(t.Context(), NewCloud(CloudOptions{}).Harness(), c)
		rich := check(t.Context(), NewCloud(CloudOptions{NeedsInitialization: true}).Harness(), c)
		require.True(t, plain == nil || rich == nil, "%s: %v, %v", c.Name, plain, rich)
	}
}

func TestPromises_BrokenDriver_IsReported(t *testing.T) {
	cases := map[string]promise{}
	for _, c := range promises() {
		cases[c.Name] = c
	}
	missed := map[string]bool{}
	for name := range cases {
		missed[name] = true
	}
	for name, f := range flaws {
		t.Run(name, func(t *testing.T) {
			for want := range strings.FieldsSeq(f.caught) {
				require.Contains(t, cases, want)
				delete(missed, want)
				synctest.Test(t, func(t *testing.T) {
					b := &broken{Cloud: NewCloud(f.options)}
					f.breakIt(b)
					h := b.Harness()
					h.New = func() driver.Driver { return b }
					if f.harness != nil {
						f.harness(&h)
					}
					err := check(t.Context(), h, cases[want])
					time.Sleep(time.Hour) // of the bubble: calls that were left behind come to their end
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
	cloud := NewCloud(CloudOptions{Unimplemented: []driver.Operation{driver.OpGetMachineStatus, driver.OpGetVolumeIDs}})
	h := cloud.Harness()
	h.OtherScope, h.FailCreate = nil, nil
	var absent []string
	for _, c := range promises() {
		if err := check(t.Context(), h, c); errors.Is(err, errNotChecked) {
			absent = append(absent, c.Name)
		} else {
			require.NoError(t, err)
		}
	}
	require.Equal(t, []string{
		"GetWithoutVM", "CreateAfterFailure", "GetFindsByName", "GetFindsByProviderID", "GetAfterDelete", "ListStaysInScope",
		"DeleteSideResourceRemovesOne", "InitializeCompletes", "InitializeWithoutVM", "UninitializedHasIdentity", "VolumesOfOtherSystems", "VolumesInOrder",
	}, absent)
}

func TestCheck_IncompleteHarness_Fails(t *testing.T) {
	for _, c := range promises() {
		require.Error(t, check(t.Context(), Harness{}, c))
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
		n, _ := cloud.History().MaxVMsOfOneMachine()
		require.Equal(t, 1, n)
		require.True(t, cloud.Snapshot().Empty(), cloud.Snapshot())
	})
}

func TestCheck_CleanupFails_NamesTheMachines(t *testing.T) {
	cloud := NewCloud(CloudOptions{})
	cloud.Inject(Fault{Operation: driver.OpDeleteMachine, Code: codes.PermissionDenied})
	require.ErrorContains(t, check(t.Context(), cloud.Harness(), creating(1, nil)), "delete the VMs of the machines conformance-")
}

func TestPromises_DriverWithoutSecret_AreChecked(t *testing.T) {
	b := &broken{Cloud: NewCloud(CloudOptions{})}
	h := b.Harness()
	secret := h.Secret
	h.Secret = nil
	h.New = func() driver.Driver { return struct{ driver.Driver }{b} } // no side resources
	b.create = asking(b.Cloud.CreateMachine, func(q *createRequest) { q.Secret = secret })
	b.initialize = asking(b.Cloud.InitializeMachine, func(q *initializeRequest) { q.Secret = secret })
	b.remove = asking(b.Cloud.DeleteMachine, func(q *deleteRequest) { q.Secret = secret })
	b.get = asking(b.Cloud.GetMachineStatus, func(q *getRequest) { q.Secret = secret })
	b.list = asking(b.Cloud.ListMachines, func(q *listRequest) { q.Secret = secret })
	for _, c := range promises() {
		if err := check(t.Context(), h, c); !errors.Is(err, errNotChecked) {
			require.NoError(t, err, c.Name)
		}
	}
}

// asking returns a method whose requests are edited, except nil.
func asking[Q, R any](call method[Q, R], edit func(*Q)) method[Q, R] {
	return func(ctx context.Context, q *Q) (*R, error) {
		if q == nil {
			return call(ctx, nil)
		}
		next := *q
		edit(&next)
		return call(ctx, &next)
	}
}

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
