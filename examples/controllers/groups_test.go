// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestGroups_ManyMachines_SiblingsAreReadOnlyBeforeAFailure counts the siblings that passes over
// 300 machines read. The machines belong to 10 deployments whose templates have no labels.
func TestGroups_ManyMachines_SiblingsAreReadOnlyBeforeAFailure(t *testing.T) {
	t.Parallel()
	const sets, each = 10, 30
	control, clients := machinetest.New(draintest.Options{})
	cfg := Config{Machines: clients, Control: control.Client(), Driver: drivertest.NewCloud(drivertest.CloudOptions{})}
	require.NoError(t, cfg.complete())
	c := newCaches(&cfg)
	r := newMachines(&cfg, c)
	read := 0
	counted := func(find func(string) []*v1alpha1.Machine) func(string) []*v1alpha1.Machine {
		return func(key string) []*v1alpha1.Machine {
			found := find(key)
			read += len(found)
			return found
		}
	}
	r.groups.alone, r.groups.machinesOf = counted(r.groups.alone), counted(r.groups.machinesOf)

	own := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(name), Controller: new(true)}}
	}
	api := c.machines.Machine().V1alpha1()
	var machines []*v1alpha1.Machine
	for s := range sets {
		set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("s-", s), OwnerReferences: own("MachineDeployment", fmt.Sprint("d-", s))}}
		set.UID = types.UID(set.Name)
		require.NoError(t, api.MachineSets().Informer().GetIndexer().Add(set))
		for i := range each {
			m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprintf("m-%d-%d", s, i), OwnerReferences: own("MachineSet", set.Name)}}
			m.UID = types.UID(m.Name)
			require.NoError(t, api.Machines().Informer().GetIndexer().Add(m))
			machines = append(machines, m)
		}
	}
	pass := func(phase v1alpha1.MachinePhase) int {
		read = 0
		for _, m := range machines {
			m = m.DeepCopy()
			m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: metav1.NewTime(time.Unix(0, 0))}
			in, _ := r.observe(t.Context(), m)
			if in.Siblings.Complete {
				require.Len(t, in.Siblings.Machines, each)
			}
		}
		return read
	}
	for _, phase := range []v1alpha1.MachinePhase{"", v1alpha1.MachinePending, v1alpha1.MachineRunning, v1alpha1.MachineFailed, v1alpha1.MachineTerminating} {
		require.Zero(t, pass(phase), phase)
	}
	unknown := pass(v1alpha1.MachineUnknown)
	t.Logf("a pass over each of %d machines reads %d siblings if all are Unknown, and none otherwise", len(machines), unknown)
	require.Equal(t, sets*each*each, unknown, "siblings of its own group only")
}
