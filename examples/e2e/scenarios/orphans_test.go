// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// lister is a driver whose ListMachines answers wrongly, and without an error.
type lister struct {
	driver.Driver
	mu    sync.Mutex
	edit  func(list map[string]string) map[string]string // nil for the truth
	scans int                                            // since edit was set
}

func (l *lister) Unwrap() driver.Driver { return l.Driver }

func (l *lister) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	resp, err := l.Driver.ListMachines(ctx, req)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scans++
	if err == nil && l.edit != nil {
		resp.MachineList = l.edit(resp.MachineList)
	}
	return resp, err
}

// answer sets how the list is changed.
func (l *lister) answer(edit func(map[string]string) map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.edit, l.scans = edit, 0
}

// asked holds when the list was asked for so often.
func (l *lister) asked(times int) env.Condition {
	return func(context.Context) (string, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.scans < times {
			return fmt.Sprintf("%d of %d scans", l.scans, times), nil
		}
		return "", nil
	}
}

// deletions returns how many deletions of VMs have begun.
func deletions(s *env.Env) (n int) {
	for _, e := range s.Cloud.History() {
		if e.Kind == drivertest.VMDeletionBegan {
			n++
		}
	}
	return n
}

// orphansOfWrongLists deletes nothing while the provider lists VMs wrongly, and then the one orphan.
func orphansOfWrongLists(t *testing.T, by composition) {
	var l *lister
	o := by.options()
	o.Flags = append(o.Flags, "--machine-safety-orphan-vms-period=1s", "--machine-safety-orphan-vms-grace=3s")
	o.Bounds.Foreign = func(v drivertest.VM) bool { return v.Machine == "lost" }
	o.Driver = func(d driver.Driver) driver.Driver {
		l = &lister{Driver: d}
		return l
	}
	s := cluster.Set(t, "orphans", o)
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 6, 1, 0))
	for _, wrong := range []struct {
		name string
		edit func(map[string]string) map[string]string
	}{
		{"nothing", func(map[string]string) map[string]string { return nil }},
		{"half", func(list map[string]string) map[string]string {
			for id := range list {
				if len(list) > 3 {
					delete(list, id)
				}
			}
			return list
		}},
		{"half and a VM of another account", func(list map[string]string) map[string]string {
			for id := range list {
				if len(list) > 3 {
					delete(list, id)
				}
			}
			list["simulated:///elsewhere/foreign/1"] = "foreign"
			return list
		}},
		{"another account", func(list map[string]string) map[string]string {
			other := map[string]string{}
			for id, name := range list {
				other[strings.Replace(id, "simulated:///", "simulated:///elsewhere/", 1)] = "foreign-" + name
			}
			return other
		}},
	} {
		l.answer(wrong.edit)
		s.Wait(t, patience, "ten scans that list "+wrong.name, l.asked(10))
		require.Zero(t, deletions(s), wrong.name)
	}
	s.Wait(t, patience, "the class is held, and again with more VMs", tells(s, "MachineClass", "small", "OrphansHeld", "OrphansHeld"))

	l.answer(nil)
	lost := s.Cloud.AddVM(drivertest.VM{Namespace: s.Namespace, Machine: "lost", Class: "small"})
	s.Wait(t, patience, "the VM without a machine is gone", vmless(s, "lost"))
	s.Wait(t, patience, "its deletion is told", tells(s, "MachineClass", "small", "OrphansHeld", "OrphansHeld", "OrphanDeleted"))
	require.Equal(t, 1, deletions(s))
	events, err := s.Client.CoreV1().Events(s.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=MachineClass"})
	require.NoError(t, err)
	for _, e := range events.Items {
		t.Logf("%s %s %s", e.Type, e.Reason, e.Message)
		if e.Reason == "OrphanDeleted" {
			require.Equal(t, corev1.EventTypeNormal, e.Type)
			require.Contains(t, e.Message, "VM "+lost.ProviderID+" of machine lost is being deleted (NoMachine): without a machine in the listings from ")
		}
	}
	require.Len(t, machines(t, s), 6)
	removeAll(t, s)
}
