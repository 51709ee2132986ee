// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// user calls a cloud for machines of one class.
type user struct {
	*Cloud
	class  *v1alpha1.MachineClass
	secret *corev1.Secret
}

func use(c *Cloud) *user {
	return &user{Cloud: c, class: c.MachineClass("shoot", "small"), secret: c.Secret("shoot", "small")}
}

func TestRestore_Snapshot_SameVMs(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	options := CloudOptions{Clock: clock, BootTime: time.Minute, ShutdownTime: time.Minute}
	u := use(NewCloud(options))
	u.Stop(u.AddVM(VM{Namespace: "shoot", Machine: "stopped", UID: "1", Class: "small"}).ProviderID)
	u.AddVM(VM{Namespace: "shoot", Machine: "running", UID: "2", Class: "small"})
	gone := u.AddVM(VM{Namespace: "shoot", Machine: "again"}).ProviderID
	u.AddVM(VM{Namespace: "shoot", Machine: "again"})
	u.Terminate(gone)
	deleting := u.AddVM(VM{Namespace: "shoot", Machine: "deleting"}).ProviderID
	clock.Step(time.Minute)
	u.AddVM(VM{Namespace: "shoot", Machine: "pending"})
	require.NoError(t, u.remove(t.Context(), "deleting", deleting))
	before := u.Snapshot()

	after := use(NewCloud(options))
	for _, v := range before.VMs {
		after.Restore(v)
	}
	withoutAddresses := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Addresses" }, cmp.Ignore())
	require.Empty(t, cmp.Diff(before.VMs, after.Snapshot().VMs, withoutAddresses))
	require.Len(t, before.VMs, 5)
	require.Len(t, after.Snapshot().SideResources, 2*4, "disks and NICs of VMs that are not being deleted")

	ids := map[string]bool{}
	for _, v := range append(before.VMs, after.AddVM(VM{Namespace: "shoot", Machine: "again"}), after.AddVM(VM{Namespace: "shoot", Machine: "again"})) {
		require.False(t, ids[v.ProviderID], "two VMs are %s", v.ProviderID)
		ids[v.ProviderID] = true
	}
	resp, err := after.get(t.Context(), "stopped", "")
	require.NoError(t, err)
	require.Equal(t, "stopped", resp.NodeName)
	clock.Step(time.Hour)
	list, err := after.list(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 5+2-1, "the deletion has ended")
}

func machineOf(name, providerID string) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name},
		Spec:       v1alpha1.MachineSpec{ProviderID: providerID},
	}
}

func (u *user) make(ctx context.Context, name string) (*driver.CreateMachineResponse, error) {
	return u.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: machineOf(name, ""), MachineClass: u.class, Secret: u.secret})
}

// made makes a VM, which has to succeed.
func (u *user) made(t testing.TB, name string) *driver.CreateMachineResponse {
	t.Helper()
	resp, err := u.make(t.Context(), name)
	require.NoError(t, err)
	return resp
}

// codeOf returns the code of a call.
func codeOf[R any](_ R, err error) codes.Code { return codes.Of(err) }

func (u *user) remove(ctx context.Context, name, id string) error {
	_, err := u.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: machineOf(name, id), MachineClass: u.class, Secret: u.secret})
	return err
}

func (u *user) get(ctx context.Context, name, id string) (*driver.GetMachineStatusResponse, error) {
	return u.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: machineOf(name, id), MachineClass: u.class, Secret: u.secret})
}

func (u *user) initialize(ctx context.Context, name, id string) (*driver.InitializeMachineResponse, error) {
	return u.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: machineOf(name, id), MachineClass: u.class, Secret: u.secret})
}

func (u *user) list(ctx context.Context) (map[string]string, error) {
	resp, err := u.ListMachines(ctx, &driver.ListMachinesRequest{MachineClass: u.class, Secret: u.secret})
	if err != nil {
		return nil, err
	}
	return resp.MachineList, nil
}

var start = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// standing returns a cloud and its fake clock.
func standing(o CloudOptions) (*user, *clocktesting.FakeClock) {
	clk := clocktesting.NewFakeClock(start)
	o.Clock = clk
	return use(NewCloud(o)), clk
}

func kindsOf(h History) (out []string) {
	for _, e := range h {
		out = append(out, fmt.Sprintf("%s %s", e.Time.Sub(start), e.Kind))
	}
	return out
}

func TestCloud_Create_Response(t *testing.T) {
	u, _ := standing(CloudOptions{BootTime: time.Minute})
	resp := u.made(t, "m-1")
	require.Len(t, resp.Addresses, 1)
	resp.Addresses = nil
	require.Equal(t, &driver.CreateMachineResponse{ProviderID: "simulated:///shoot/m-1/1", NodeName: "m-1", LastKnownState: "created at 2026-07-01T12:00:00Z"}, resp)
	require.Equal(t, start.Add(time.Minute), u.Snapshot().VMs[0].ReadyAt)
	require.True(t, u.Terminate(resp.ProviderID))
	require.Equal(t, "nothing\n", u.Snapshot().String())
}

func TestCloud_Latency_DelaysCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := use(NewCloud(CloudOptions{
			CreateLatency: time.Minute, DeleteLatency: 10 * time.Second, CallLatency: time.Second, BootTime: time.Hour,
		}))
		begin := time.Now()
		resp := u.made(t, "m-1")
		require.Equal(t, time.Minute, time.Since(begin))
		require.Equal(t, begin.Add(time.Hour+time.Minute), u.Snapshot().VMs[0].ReadyAt)
		require.Equal(t, codes.OK, codeOf(u.get(t.Context(), "m-1", resp.ProviderID)))
		require.Equal(t, time.Minute+time.Second, time.Since(begin))
		require.NoError(t, u.remove(t.Context(), "m-1", ""))
		require.Equal(t, time.Minute+11*time.Second, time.Since(begin))
	})
}

func TestCloud_CreateCanceled_VMExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := use(NewCloud(CloudOptions{CreateLatency: time.Minute}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		resp, err := u.make(ctx, "m-1")
		require.Nil(t, resp)
		require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, u.Snapshot().VMs, 1)
		require.Equal(t, codes.DeadlineExceeded, codeOf(u.make(ctx, "m-2")))
		require.Empty(t, u.Snapshot().Of("m-2").VMs, "the context had ended before")
	})
}

func TestCloud_SetCredential_TakesEffect(t *testing.T) {
	u, _ := standing(CloudOptions{Credential: "old"})
	require.Equal(t, codes.OK, codeOf(u.list(t.Context())))
	u.SetCredential("new")
	_, err := u.list(t.Context())
	require.Equal(t, codes.Unauthenticated, codes.Of(err))
	require.NotContains(t, err.Error(), "new")
	u.secret = u.Secret("shoot", "small")
	require.Equal(t, codes.OK, codeOf(u.list(t.Context())))
}

func TestCloud_ProviderSpec_SetsScope(t *testing.T) {
	u, _ := standing(CloudOptions{})
	u.made(t, "m-1")
	for raw, want := range map[string]int{``: 1, `{}`: 1, `{"scope":"shoot"}`: 1, `{"scope":"other","more":1}`: 0} {
		u.class.ProviderSpec = runtime.RawExtension{Raw: []byte(raw)}
		list, err := u.list(t.Context())
		require.NoError(t, err)
		require.Len(t, list, want, raw)
	}
	for _, raw := range []string{`{`, `[]`, `{"scope":1}`} {
		u.class.ProviderSpec = runtime.RawExtension{Raw: []byte(raw)}
		_, err := u.list(t.Context())
		require.Equal(t, codes.InvalidArgument, codes.Of(err), raw)
	}
}

func TestCloud_UserData_IsKept(t *testing.T) {
	u, _ := standing(CloudOptions{})
	u.secret.Data["userData"] = []byte("join m-1")
	resp := u.made(t, "m-1")
	u.secret.Data["userData"][0] = 'X'
	got := u.UserData(resp.ProviderID)
	require.Equal(t, "join m-1", string(got))
	got[0] = 'Y'
	require.Equal(t, "join m-1", string(u.UserData(resp.ProviderID)))
	require.Nil(t, u.UserData("no such VM"))
	u.secret.Data = nil
	require.Equal(t, codes.InvalidArgument, codeOf(u.make(t.Context(), "m-2")), "a create needs user data")
}

func TestCloud_Subscriber_MayCallTheCloud(t *testing.T) {
	u, clk := standing(CloudOptions{BootTime: time.Minute})
	var told []string
	var ready []time.Time
	cancel := u.Subscribe(func(e Event) {
		told = append(told, e.Kind.String())
		if e.Kind == VMCreated {
			ready = append(ready, e.VM.ReadyAt)
			_ = u.Snapshot() // would wait for ever under a lock
		}
	})
	defer u.Subscribe(nil)()
	u.made(t, "m-1")
	require.Equal(t, []time.Time{start.Add(time.Minute)}, ready)
	clk.Step(time.Minute)
	u.NextChange() // any call notices
	require.Equal(t, []string{"VMCreated", "VMReady"}, told)
	cancel()
	require.NoError(t, u.remove(t.Context(), "m-1", ""))
	require.Len(t, told, 2)
	for i, e := range u.History() {
		require.Equal(t, i+1, e.Seq)
	}
}

func TestCloud_Results_AreCopies(t *testing.T) {
	u, _ := standing(CloudOptions{})
	u.made(t, "m-1")
	before := u.Snapshot()
	u.Snapshot().VMs[0].Addresses[0].Address = "changed"
	for _, e := range u.History() {
		if len(e.VM.Addresses) > 0 {
			e.VM.Addresses[0].Address = "changed"
		}
	}
	got, err := u.get(t.Context(), "m-1", "")
	require.NoError(t, err)
	got.Addresses[0].Address = "changed"
	require.Empty(t, cmp.Diff(before, u.Snapshot()))
	for _, e := range u.History() {
		for _, a := range e.VM.Addresses {
			require.NotEqual(t, "changed", a.Address)
		}
	}
	require.Equal(t, 1, u.Calls(driver.OpGetMachineStatus, codes.OK))
}

func TestCloud_SameCalls_SameResult(t *testing.T) {
	story := func(order []int) Snapshot {
		u, clk := standing(CloudOptions{BootTime: time.Minute})
		var wg sync.WaitGroup
		for _, i := range order {
			wg.Go(func() { _, _ = u.make(t.Context(), fmt.Sprintf("m-%d", i)) })
		}
		wg.Wait()
		clk.Step(time.Second)
		_ = u.remove(t.Context(), "m-0", "")
		_, _ = u.make(t.Context(), "m-0")
		s := u.Snapshot()
		for i := range s.VMs {
			s.VMs[i].Addresses = nil // depend on the order
		}
		return s
	}
	require.Empty(t, cmp.Diff(story([]int{0, 1, 2, 3}), story([]int{3, 1, 0, 2})))
}

func TestCloud_ConcurrentUse_IsSafe(t *testing.T) {
	u := use(NewCloud(CloudOptions{Faults: []Fault{{Probability: 0.3}, {Probability: 0.3, Kind: Partial}}}))
	defer u.Subscribe(func(Event) { _ = u.Snapshot() })()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				name := fmt.Sprintf("m-%d", i%3)
				_, _ = u.make(t.Context(), name)
				_, _ = u.get(t.Context(), name, "")
				_, _ = u.list(t.Context())
				_ = u.remove(t.Context(), name, "")
				_ = u.Calls(driver.OpListMachines, codes.OK)
				u.Inject(Fault{Machine: "other"})()
			}
		})
	}
	wg.Wait()
	n, _ := u.History().MaxVMsOfOneMachine()
	require.Equal(t, 1, n)
	u.ClearFaults()
	for i := range 3 {
		_ = u.remove(t.Context(), fmt.Sprintf("m-%d", i), "")
	}
	require.True(t, u.Snapshot().Empty(), u.Snapshot())
}

func BenchmarkCloud(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("create, get and delete among %d VMs", n), func(b *testing.B) {
			u, clk := standing(CloudOptions{BootTime: time.Minute, ShutdownTime: time.Minute})
			for i := range n {
				if _, err := u.make(b.Context(), fmt.Sprintf("m-%d", i)); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				resp, err := u.make(b.Context(), "m")
				if err == nil {
					_, err = u.get(b.Context(), "m", resp.ProviderID)
				}
				if err == nil {
					err = u.remove(b.Context(), "m", resp.ProviderID)
				}
				if err != nil {
					b.Fatal(err)
				}
				clk.Step(time.Minute)
			}
		})
	}
}
