// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestRestore_Snapshot_SameVMs(t *testing.T) {
	options := CloudOptions{BootTime: time.Minute, ShutdownTime: time.Minute}
	u, clk := standing(options)
	u.Stop(u.AddVM(VM{Namespace: "shoot", Machine: "stopped", UID: "1", Class: "small"}).ProviderID)
	u.AddVM(VM{Namespace: "shoot", Machine: "running", UID: "2", Class: "small"})
	u.Terminate(u.AddVM(VM{Namespace: "shoot", Machine: "again"}).ProviderID)
	u.AddVM(VM{Namespace: "shoot", Machine: "again"})
	u.AddVM(VM{Namespace: "shoot", Machine: "deleting"})
	clk.Step(time.Minute)
	u.AddVM(VM{Namespace: "shoot", Machine: "pending"})
	require.NoError(t, u.remove(t.Context(), "deleting", ""))
	before := u.Snapshot()
	require.Len(t, before.VMs, 5)

	options.Clock = clk
	after := use(NewCloud(options))
	for _, v := range before.VMs {
		after.Restore(v)
	}
	require.Empty(t, cmp.Diff(before.VMs, after.Snapshot().VMs, cmpopts.IgnoreFields(VM{}, "Addresses")))
	require.Len(t, after.Snapshot().SideResources, 2*4, "disks and NICs of VMs that are not being deleted")
	after.AddVM(VM{Namespace: "shoot", Machine: "again"})
	after.AddVM(VM{Namespace: "shoot", Machine: "again"})
	list, err := after.list(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 5+2, "no ID twice")
	resp, err := after.get(t.Context(), "stopped", "")
	require.NoError(t, err)
	require.Equal(t, "stopped", resp.NodeName)
	clk.Step(time.Hour)
	list, err = after.list(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 5+2-1, "the deletion has ended")
}

func TestCloud_Create_Response(t *testing.T) {
	u, _ := standing(CloudOptions{})
	require.Equal(t, &driver.CreateMachineResponse{
		ProviderID: "simulated:///shoot/m-1/1", NodeName: "m-1", LastKnownState: "created at 2026-07-01T12:00:00Z",
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
	}, u.made(t, "m-1"))
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
	})
}

func TestCloud_SetCredential_TakesEffect(t *testing.T) {
	u, _ := standing(CloudOptions{Credential: "old"})
	require.Equal(t, codes.OK, codeOf(u.list(t.Context())))
	u.SetCredential("new")
	require.Equal(t, codes.Unauthenticated, codeOf(u.list(t.Context())))
	u.secret = u.Secret("shoot", "small")
	require.Equal(t, codes.OK, codeOf(u.list(t.Context())))
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
	var told []EventKind
	cancel := u.Subscribe(func(e Event) {
		told = append(told, e.Kind)
		_ = u.Snapshot() // would wait for ever under a lock
	})
	defer u.Subscribe(nil)()
	u.made(t, "m-1")
	clk.Step(time.Minute)
	u.NextChange() // any call notices
	require.Equal(t, []EventKind{VMCreated, VMReady}, told)
	cancel()
	require.NoError(t, u.remove(t.Context(), "m-1", ""))
	require.Len(t, told, 2)
	for i, e := range u.History() {
		require.Equal(t, i+1, e.Seq)
	}
}

func TestCloud_Results_AreCopies(t *testing.T) {
	u, _ := standing(CloudOptions{})
	addresses := func() (all [][]corev1.NodeAddress) {
		resp, err := u.get(t.Context(), "m-1", "")
		require.NoError(t, err)
		return [][]corev1.NodeAddress{
			u.made(t, "m-1").Addresses, resp.Addresses, u.Snapshot().VMs[0].Addresses, u.History()[0].VM.Addresses,
		}
	}
	u.made(t, "m-1")
	for _, a := range addresses() {
		a[0].Address = "changed"
	}
	for _, a := range addresses() {
		require.Equal(t, "10.0.0.1", a[0].Address)
	}
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
	u, clk := standing(CloudOptions{BootTime: time.Minute, ShutdownTime: time.Minute})
	for i := range 1000 {
		u.made(b, fmt.Sprintf("m-%d", i))
	}
	for b.Loop() {
		id := u.made(b, "m").ProviderID
		_, err := u.get(b.Context(), "m", id)
		require.NoError(b, errors.Join(err, u.remove(b.Context(), "m", id)))
		clk.Step(time.Minute)
	}
}
