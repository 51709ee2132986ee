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

// lists returns the number of listings of VMs.
func (r *harness) lists() int { return r.cloud.Calls(driver.OpListMachines, codes.OK) }

// another creates another machine of the class.
func (r *harness) another(name string) {
	r.t.Helper()
	_, err := r.machines.MachineV1alpha1().Machines(namespace).Create(r.t.Context(), &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "class"}},
	}, metav1.CreateOptions{})
	require.NoError(r.t, err)
}

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

// eventsOf returns the recorded events with a reason.
func eventsOf(recorder *record.FakeRecorder, reason string) (out []string) {
	for e := range recorded(recorder) {
		if strings.Contains(e, " "+reason+" ") {
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
			r.another(fmt.Sprint("m-", i))
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
		r.create("m")
		r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
		time.Sleep(2 * time.Minute)
		before := r.lists()
		for _, code := range []codes.Code{codes.Internal, codes.OutOfRange} {
			stop := r.cloud.Inject(drivertest.Fault{Machine: "x" + strings.ToLower(code.String()), Code: code})
			r.another("x" + strings.ToLower(code.String()))
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
		r := newHarness(t)
		r.tick = time.Second
		recorder := record.NewFakeRecorder(1000)
		r.events = recorder
		r.orphans = safety.Policy{Grace: time.Minute, Period: time.Minute, MaxDeletions: 5, MaxPercent: 20}
		r.start()
		r.create("m")
		r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
		r.cloud.Inject(drivertest.Fault{Operation: driver.OpDeleteMachine, Machine: "lost", Times: 1, Code: codes.Unavailable})
		lost := r.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: "lost", Class: "class"})
		time.Sleep(10 * time.Minute)
		require.Len(t, r.cloud.Snapshot().VMs, 1)
		var deleted, failed []string
		for e := range recorded(recorder) {
			switch {
			case strings.Contains(e, " OrphanDeleted "):
				deleted = append(deleted, e)
			case strings.Contains(e, " OrphanDeletionFailed "):
				failed = append(failed, e)
			}
		}
		require.Len(t, deleted, 1)
		require.Len(t, failed, 1)
		require.Contains(t, failed[0], "Warning OrphanDeletionFailed VM "+lost.ProviderID+" of machine lost could not be deleted (NoMachine): ")
		require.Contains(t, failed[0], "the deletion is repeated if the next listing contains it")
		require.Contains(t, deleted[0], "Normal OrphanDeleted VM "+lost.ProviderID+" of machine lost is being deleted (NoMachine): without a machine in the listings from ")
		require.Contains(t, deleted[0], "1 of 2 VMs have no machine, 1 of them deleted within 24h0m0s; machines read: 1; deletion 1 of at most 5 within 1m0s")
	})
}

// recorded returns the recorded events.
func recorded(recorder *record.FakeRecorder) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			select {
			case e := <-recorder.Events:
				if !yield(e) {
					return
				}
			default:
				return
			}
		}
	}
}

// TestOrphans_TooManyUnowned_OneEventAndNoDeletion adds half as many orphan VMs as there are
// machines.
func TestOrphans_TooManyUnowned_OneEventAndNoDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		recorder := record.NewFakeRecorder(1000)
		r.events = recorder
		r.orphans = safety.Policy{Grace: time.Minute, Period: time.Minute, MaxDeletions: 5, MaxPercent: 20}
		r.start()
		r.create("m")
		for i := range 3 {
			r.another(fmt.Sprint("m-", i))
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
				r := newHarness(t)
				r.tick = time.Second
				var mu sync.Mutex
				var last string
				r.observe = func(n controllers.Note) {
					mu.Lock()
					defer mu.Unlock()
					if n.Kind == "orphan" {
						last = n.Text
					}
				}
				if !deletes {
					r.driver = halfDriver{r.cloud, r.cloud}
				}
				recorder := record.NewFakeRecorder(1000)
				r.events = recorder
				r.orphans = safety.Policy{Grace: time.Minute, Period: time.Minute, MaxDeletions: 5, MaxPercent: 20}
				r.start()
				r.create("m")
				r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
				r.cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Machine: "lost", Kind: drivertest.Partial, Code: codes.Internal})
				r.another("lost")
				time.Sleep(30 * time.Second) // a step that found something in its way is repeated after 5
				require.Len(t, r.cloud.Snapshot().Leftovers(), 2)
				time.Sleep(10 * time.Minute)
				require.Len(t, r.cloud.Snapshot().Leftovers(), 2, "its machine exists")
				r.lose("lost")
				time.Sleep(5 * time.Minute)
				left := r.cloud.Snapshot()
				require.Len(t, left.VMs, 1)
				require.Len(t, left.Of("m").SideResources, 2)
				mu.Lock()
				defer mu.Unlock()
				if deletes {
					require.Empty(t, left.Leftovers())
					require.Len(t, eventsOf(recorder, "OrphanDeleted"), 2)
					return
				}
				require.Len(t, left.Leftovers(), 2)
				require.Contains(t, last, "ReportOnly: Leftover of machine lost; the driver cannot delete side resources")
			})
		})
	}
}

// TestOrphans_NodeWithoutMachineAndVM_IsReported checks that such a Node is not deleted.
func TestOrphans_NodeWithoutMachineAndVM_IsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		r.tick = time.Second
		var mu sync.Mutex
		var last string
		r.observe = func(n controllers.Note) {
			mu.Lock()
			defer mu.Unlock()
			if n.Kind == "orphan" {
				last = n.Text
			}
		}
		r.orphans = safety.Policy{Grace: time.Minute, Period: time.Minute, MaxDeletions: 5, MaxPercent: 20}
		r.start()
		r.create("m")
		r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
		require.NoError(t, r.target.Add(
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "left"}, Spec: corev1.NodeSpec{ProviderID: "simulated:///default/left/1"}},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Spec: corev1.NodeSpec{ProviderID: "other:///1"}},
		))
		time.Sleep(5 * time.Minute)
		require.ElementsMatch(t, []string{"foreign", "left", "m"}, r.nodeNames())
		mu.Lock()
		defer mu.Unlock()
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
		var mu sync.Mutex
		var notes []string
		r.observe = func(n controllers.Note) {
			mu.Lock()
			defer mu.Unlock()
			if n.Kind == "orphan" {
				notes = append(notes, n.Text)
			}
		}
		r.create("m")
		class, err := r.machines.MachineV1alpha1().MachineClasses(namespace).Get(t.Context(), "class", metav1.GetOptions{})
		require.NoError(t, err)
		class.ObjectMeta, class.ProviderSpec.Raw = metav1.ObjectMeta{Name: "other"}, []byte(`{"scope":"elsewhere"}`)
		_, err = r.machines.MachineV1alpha1().MachineClasses(namespace).Create(t.Context(), class, metav1.CreateOptions{})
		require.NoError(t, err)
		lost := r.cloud.AddVM(drivertest.VM{Namespace: namespace, Machine: "lost", Class: "other", Scope: "elsewhere"})
		require.NoError(t, r.target.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: corev1.NodeSpec{ProviderID: lost.ProviderID}}))
		time.Sleep(2 * time.Minute)
		r.start()
		r.another("m-2")
		r.eventually("running", func() bool {
			return r.phase("m-2") == v1alpha1.MachineRunning && r.phase("m") == v1alpha1.MachineRunning
		})
		time.Sleep(2 * time.Minute)
		r.lose("m-2")
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
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
				r := newHarness(t)
				r.tick = time.Second
				r.orphans = safety.Policy{Grace: time.Minute, Period: time.Minute, MaxDeletions: 5, MaxPercent: 20}
				r.start()
				r.create("m")
				r.eventually("running", func() bool { return r.phase("m") == v1alpha1.MachineRunning })
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
