// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// started returns a replay of a deployment of two machines, surge one.
func started() *replay {
	r := newReplay()
	one, none := intstr.FromInt32(1), intstr.FromInt32(0)
	r.write(draintest.Write{After: &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "d", Generation: 1},
		Spec: v1alpha1.MachineDeploymentSpec{Replicas: 2, Strategy: v1alpha1.MachineDeploymentStrategy{
			Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
				UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &one, MaxUnavailable: &none},
			},
		}},
		Status: v1alpha1.MachineDeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
	}})
	r.write(draintest.Write{After: &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{
		Name: "s", UID: "s", OwnerReferences: []metav1.OwnerReference{{UID: "d"}},
	}}})
	return r
}

func member(name string, phase v1alpha1.MachinePhase, deleting bool) *v1alpha1.Machine {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{{UID: "s"}}},
		Status:     v1alpha1.MachineStatus{CurrentStatus: v1alpha1.CurrentStatus{Phase: phase}},
	}
	if deleting {
		m.DeletionTimestamp = &metav1.Time{Time: start}
	}
	return m
}

func TestTheReplaySeesTooManyMachines(t *testing.T) {
	r := started()
	r.deployments["d"].reached = false
	for _, name := range []string{"a", "b", "c"} {
		r.write(draintest.Write{After: member(name, "", false)})
	}
	require.NoError(t, errors.Join(r.errs...))
	r.write(draintest.Write{After: member("e", "", false)})
	require.ErrorContains(t, errors.Join(r.errs...), "4 machines of d alive > 2 replicas + 1 surge")
}

func TestTheReplaySeesTooFewAvailable(t *testing.T) {
	r := started()
	r.deployments["d"].reached = false
	for _, name := range []string{"a", "b", "c"} {
		r.write(draintest.Write{After: member(name, v1alpha1.MachineRunning, false)})
	}
	r.deployments["d"].reached = true
	r.write(draintest.Write{After: member("a", v1alpha1.MachineRunning, true)})
	require.NoError(t, errors.Join(r.errs...))
	r.write(draintest.Write{After: member("b", v1alpha1.MachineRunning, true)})
	require.ErrorContains(t, errors.Join(r.errs...), "1 machines of d available < 2 replicas - 0 unavailable")
}

func TestTheReplaySeesTooManyVMs(t *testing.T) {
	r := started()
	for _, name := range []string{"a", "b", "c", "e"} {
		m := member(name, "", name == "e")
		m.Finalizers = []string{v1alpha1.MCMFinalizerName}
		r.machines[m.UID] = m
	}
	vm := func(id, machine string) drivertest.Event {
		return drivertest.Event{Kind: drivertest.VMCreated, VM: drivertest.VM{ProviderID: id, Machine: machine, UID: machine}}
	}
	for _, name := range []string{"a", "b", "c", "e"} { // one of them is being deleted
		r.event(vm("vm-"+name, name))
	}
	require.NoError(t, errors.Join(r.errs...))
	r.event(vm("vm-a2", "a"))
	require.ErrorContains(t, errors.Join(r.errs...), "machine a has two VMs, vm-a and vm-a2")
	require.ErrorContains(t, errors.Join(r.errs...), "4 VMs of d alive > 2 replicas + 1 surge")
}

func TestTheReplaySeesVMsWithoutTheirMachine(t *testing.T) {
	guarded := member("a", "", false)
	guarded.Finalizers = []string{v1alpha1.MCMFinalizerName}
	vm := drivertest.VM{ProviderID: "vm-a", Machine: "a", UID: "a"}
	created := drivertest.Event{Kind: drivertest.VMCreated, VM: vm, Time: start.Add(time.Second)}
	deleted := drivertest.Event{Kind: drivertest.VMDeletionBegan, VM: vm, Time: start.Add(3 * time.Second)}
	at := func(seconds int, w draintest.Write) draintest.Write {
		w.Time = start.Add(time.Duration(seconds) * time.Second)
		return w
	}
	tests := map[string]struct {
		writes []draintest.Write
		says   string
	}{
		"a machine that is guarded and stays": {
			[]draintest.Write{at(0, draintest.Write{After: guarded}), at(4, draintest.Write{Before: guarded})}, "",
		},
		"a machine that is not guarded": {
			[]draintest.Write{at(0, draintest.Write{After: member("a", "", false)})}, "VM vm-a began without a guarded machine",
		},
		"a machine that is guarded too late": {
			[]draintest.Write{at(2, draintest.Write{After: guarded})}, "VM vm-a began without a guarded machine",
		},
		"a machine that goes before its VM": {
			[]draintest.Write{at(0, draintest.Write{After: guarded}), at(2, draintest.Write{Before: guarded})}, "VM vm-a outlived its machine a",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newReplay()
			r.all(test.writes, drivertest.History{created, deleted})
			if test.says == "" {
				require.NoError(t, errors.Join(r.errs...))
				return
			}
			require.ErrorContains(t, errors.Join(r.errs...), test.says)
		})
	}
}
