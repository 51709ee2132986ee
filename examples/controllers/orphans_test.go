// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// orphanHarness returns a harness that looks for orphans every minute.
func orphanHarness(t *testing.T) *harness {
	t.Helper()
	r := newHarness(t)
	r.tick = time.Second
	r.orphans = safety.Policy{Grace: time.Minute, Period: time.Minute, MaxDeletions: 5, MaxPercent: 20}
	return r
}

// orphanNotes records the decisions about orphans.
func (r *harness) orphanNotes() (seen func() []string) {
	var mu sync.Mutex
	var notes []string
	r.observe = func(n controllers.Note) {
		mu.Lock()
		defer mu.Unlock()
		if n.Kind == "orphan" {
			notes = append(notes, n.Text)
		}
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(notes)
	}
}

// lists returns the number of listings of VMs.
func (r *harness) lists() int { return r.cloud.Calls(driver.OpListMachines, codes.OK) }

// lose removes a machine without its deletion, so that its VM stays.
func (r *harness) lose(name string) {
	r.t.Helper()
	api := r.machines.MachineV1alpha1().Machines(namespace)
	for { // until no controller adds a finalizer between the two requests
		m, err := api.Patch(r.t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(r.t, err)
		err = api.Delete(r.t.Context(), name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &m.ResourceVersion}})
		if !apierrors.IsConflict(err) {
			require.NoError(r.t, err)
			return
		}
	}
}

// eventsOf returns the recorded events with one of these reasons. No reason means all.
func eventsOf(recorder *record.FakeRecorder, reasons ...string) (out []string) {
	for len(recorder.Events) > 0 {
		e := <-recorder.Events
		has := func(reason string) bool { return strings.Contains(e, " "+reason+" ") }
		if len(reasons) == 0 || slices.ContainsFunc(reasons, has) {
			out = append(out, e)
		}
	}
	return out
}

// TestOrphans_MachinesDeleted_ClassIsListedSoonAndOnce deletes a machine every second, hours before
// the next listing is due.
func TestOrphans_MachinesDeleted_ClassIsListedSoonAndOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.orphans = safety.Policy{Period: 100 * time.Hour}
		r.start()
		r.create("m")
		const machines = 60
		for i := range machines {
			r.add(fmt.Sprint("m-", i))
		}
		r.eventually("running", func() bool { return r.phase(fmt.Sprint("m-", machines-1)) == v1alpha1.MachineRunning })
		time.Sleep(2 * time.Minute)
		before := r.lists()
		r.lose("m-0")
		time.Sleep(time.Second)
		require.Equal(t, before+1, r.lists(), "the class is listed at once")
		for i := 1; i < machines; i++ {
			r.lose(fmt.Sprint("m-", i))
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Minute)
		took := r.lists() - before
		t.Logf("%d listings for %d deletions within %d s", took, machines, machines)
		require.GreaterOrEqual(t, took, 2)
		require.LessOrEqual(t, took, 3)
	})
}

// TestOrphans_DriverFindsSeveralVMs_ClassIsListed has a driver that returns OutOfRange.
func TestOrphans_DriverFindsSeveralVMs_ClassIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.orphans = safety.Policy{Period: 100 * time.Hour}
		r.start()
		r.running("m")
		time.Sleep(2 * time.Minute)
		before := r.lists()
		for _, code := range []codes.Code{codes.Internal, codes.OutOfRange} {
			stop := r.cloud.Inject(drivertest.Fault{Machine: "x" + strings.ToLower(code.String()), Code: code})
			r.add("x" + strings.ToLower(code.String()))
			time.Sleep(10 * time.Second)
			stop()
			want := before
			if code == codes.OutOfRange {
				want++
			}
			require.Equal(t, want, r.lists(), code)
		}
	})
}

// TestOrphans_VMWithoutMachine_EventHasTheEvidence makes the first deletion fail.
func TestOrphans_VMWithoutMachine_EventHasTheEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := orphanHarness(t)
		recorder := r.record()
		r.start()
		r.running("m")
		r.cloud.Inject(drivertest.Fault{Operation: driver.OpDeleteMachine, Machine: "lost", Times: 1, Code: codes.Unavailable})
		lost := r.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: "lost", Class: "class"})
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"m"}, r.liveVMs())
		events := eventsOf(recorder, "OrphanDeleted", "OrphanDeletionFailed")
		require.Len(t, events, 2)
		failed, deleted := events[0], events[1]
		require.Contains(t, failed, "Warning OrphanDeletionFailed VM "+lost.ProviderID+" of machine lost could not be deleted (NoMachine): ")
		require.Contains(t, failed, "the deletion is repeated if the next listing contains it")
		require.Contains(t, deleted, "Normal OrphanDeleted VM "+lost.ProviderID+" of machine lost is being deleted (NoMachine): without a machine in the listings from ")
		require.Contains(t, deleted, "1 of 2 VMs have no machine, 1 of them deleted within 24h0m0s; machines read: 1; deletion 1 of at most 5 within 1m0s")
	})
}

// TestOrphans_TooManyUnowned_OneEventAndNoDeletion adds half as many orphan VMs as there are
// machines.
func TestOrphans_TooManyUnowned_OneEventAndNoDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := orphanHarness(t)
		recorder := r.record()
		r.start()
		r.create("m")
		for i := range 3 {
			r.add(fmt.Sprint("m-", i))
		}
		r.eventually("running", func() bool { return r.phase("m-2") == v1alpha1.MachineRunning })
		for i := range 2 {
			r.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: fmt.Sprint("lost-", i), Class: "class"})
		}
		time.Sleep(time.Hour)
		require.Len(t, r.cloud.Snapshot().VMs, 6)
		held := eventsOf(recorder, "OrphansHeld")
		require.Len(t, held, 1, "one Event, not one per pass")
		require.Contains(t, held[0], "Warning OrphansHeld machineclass/default/class: no orphan is deleted: 2 of 6 VMs have no machine; at most 1 or 0.")

		require.True(t, r.cloud.Terminate("simulated:///default/lost-0/1"))
		time.Sleep(10 * time.Minute)
		require.Len(t, r.cloud.Snapshot().VMs, 4, "one machine is allowed")
		for i := range 2 {
			r.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: fmt.Sprint("late-", i), Class: "class"})
		}
		time.Sleep(10 * time.Minute)
		require.Len(t, eventsOf(recorder, "OrphansHeld"), 1, "the hold changed in between")
	})
}

// halfDriver lists side resources but cannot delete them.
type halfDriver struct {
	driver.Driver
	driver.SideResourceLister
}

// TestOrphans_LeftoverOfAFailedCreation_IsDeletedOrReported creates side resources of a machine
// that is lost before it has a VM.
func TestOrphans_LeftoverOfAFailedCreation_IsDeletedOrReported(t *testing.T) {
	for name, deletes := range map[string]bool{"the driver deletes side resources": true, "the driver only lists them": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := orphanHarness(t)
				notes, recorder := r.orphanNotes(), r.record()
				if !deletes {
					r.driver = halfDriver{r.cloud, r.cloud}
				}
				r.start()
				r.running("m")
				r.cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Machine: "lost", Kind: drivertest.Partial, Code: codes.Internal})
				r.add("lost")
				time.Sleep(30 * time.Second) // a step that found something in its way is repeated after 5
				require.Len(t, r.cloud.Snapshot().Leftovers(), 2)
				time.Sleep(10 * time.Minute)
				require.Len(t, r.cloud.Snapshot().Leftovers(), 2, "its machine exists")
				r.lose("lost")
				time.Sleep(5 * time.Minute)
				left := r.cloud.Snapshot()
				require.Len(t, left.VMs, 1)
				require.Len(t, left.Of("m").SideResources, 2)
				if deletes {
					require.Empty(t, left.Leftovers())
					require.Len(t, eventsOf(recorder, "OrphanDeleted"), 2)
					return
				}
				require.Len(t, left.Leftovers(), 2)
				last := notes()[len(notes())-1]
				require.Contains(t, last, "ReportOnly: Leftover of machine lost; the driver cannot delete side resources")
			})
		})
	}
}

// TestOrphans_NodeWithoutMachineAndVM_IsReported checks that such a Node is not deleted.
func TestOrphans_NodeWithoutMachineAndVM_IsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := orphanHarness(t)
		notes := r.orphanNotes()
		r.start()
		r.running("m")
		require.NoError(t, r.target.Add(
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "left"}, Spec: corev1.NodeSpec{ProviderID: "simulated:///default/left/1"}},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Spec: corev1.NodeSpec{ProviderID: "other:///1"}},
		))
		time.Sleep(5 * time.Minute)
		require.ElementsMatch(t, []string{"foreign", "left", "m"}, r.nodeNames())
		last := notes()[len(notes())-1]
		require.Contains(t, last, "node/left: NodeWithoutVM: provider ID simulated:///default/left/1 is in no machine and in none of 1 listings")
		require.NotContains(t, last, "foreign")
		require.NotContains(t, last, "node/m:")
	})
}

// TestOrphans_OneClassIsListed_NodesOfOthersAreNotReported lists one class only, while a Node has a
// VM of another class.
func TestOrphans_OneClassIsListed_NodesOfOthersAreNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		r.orphans = safety.Policy{Period: 10 * time.Hour}
		seen := r.orphanNotes()
		r.create("m")
		class := get(t, r.machines.MachineV1alpha1().MachineClasses(namespace).Get, "class")
		class.ObjectMeta, class.ProviderSpec.Raw = metav1.ObjectMeta{Name: "other"}, []byte(`{"scope":"elsewhere"}`)
		create(t, r.machines.MachineV1alpha1().MachineClasses(namespace).Create, class)
		lost := r.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: "lost", Class: "other", Scope: "elsewhere"})
		require.NoError(t, r.target.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: corev1.NodeSpec{ProviderID: lost.ProviderID}}))
		time.Sleep(2 * time.Minute)
		r.start()
		r.add("m-2")
		r.eventually("running", func() bool {
			return r.phase("m-2") == v1alpha1.MachineRunning && r.phase("m") == v1alpha1.MachineRunning
		})
		time.Sleep(2 * time.Minute)
		r.lose("m-2")
		time.Sleep(time.Minute)
		notes := seen()
		require.Contains(t, notes[0], "lost", "both classes were listed")
		last := notes[len(notes)-1]
		require.True(t, strings.Contains(last, "m-2") && !strings.Contains(last, "lost"), last)
		require.NotContains(t, strings.Join(notes, "\n"), "NodeWithoutVM")
	})
}

// TestOrphans_DeleteResponseLost_NodeIsDeleted deletes an orphan VM that has a Node. The response
// of the driver is lost, or the API server first rejects the deletion of the Node.
func TestOrphans_DeleteResponseLost_NodeIsDeleted(t *testing.T) {
	for name, trouble := range map[string]func(r *harness){
		"nothing": func(*harness) {},
		"the answer of the driver": func(r *harness) {
			r.cloud.Inject(drivertest.Fault{Operation: driver.OpDeleteMachine, Machine: "lost", Times: 1, Kind: drivertest.LoseResponse, Code: codes.Unavailable})
		},
		"the deletion of the Node": func(r *harness) {
			r.target.Inject(draintest.Fault{Kind: draintest.Unavailable, Verb: "delete", Resource: "nodes", Times: 2})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := orphanHarness(t)
				r.start()
				r.running("m")
				trouble(r)
				lost := r.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: "lost", Class: "class"})
				r.eventually("joined", func() bool { return slices.Contains(r.nodeNames(), "lost") })
				time.Sleep(5 * time.Minute)
				require.Len(t, r.cloud.Snapshot().VMs, 1)
				require.Equal(t, []string{"m"}, r.nodeNames())
				require.NoError(t, r.target.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Spec: corev1.NodeSpec{ProviderID: lost.ProviderID}}))
				time.Sleep(time.Minute)
				require.Equal(t, []string{"m"}, r.nodeNames(), "a Node that joins after its VM was deleted")
			})
		})
	}
}
