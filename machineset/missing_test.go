// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestMissing_Sets_Table(t *testing.T) {
	set := func(uid types.UID, replicas int32, change ...func(*v1alpha1.MachineSet)) *v1alpha1.MachineSet {
		s := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid}, Spec: v1alpha1.MachineSetSpec{Replicas: replicas}}
		for _, f := range change {
			f(s)
		}
		return s
	}
	of := func(uid types.UID) *v1alpha1.Machine {
		return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{machineset.OwnerSet(set(uid, 0)).Reference()}}}
	}
	leaving := of("a")
	leaving.DeletionTimestamp = &metav1.Time{}
	deleted := func(s *v1alpha1.MachineSet) { s.DeletionTimestamp = &metav1.Time{} }
	disabled := func(s *v1alpha1.MachineSet) {
		s.Labels = map[string]string{v1alpha1.LabelKeyMachineSetScaleUpDisabled: "true"}
	}
	type sets = []*v1alpha1.MachineSet
	type machines = []*v1alpha1.Machine
	for name, c := range map[string]struct {
		sets     sets
		machines machines
		missing  int
	}{
		"nothing is missing of nothing":                 {},
		"a set has all it wants":                        {sets{set("a", 2)}, machines{of("a"), of("a")}, 0},
		"one of two is gone":                            {sets{set("a", 2)}, machines{of("a"), nil}, 1},
		"one on its way out exists":                     {sets{set("a", 2)}, machines{of("a"), leaving}, 0},
		"too many of one set do not serve another":      {sets{set("a", 1), nil, set("b", 2)}, machines{of("a"), of("a"), of("b")}, 1},
		"a machine without a controller does not count": {sets{set("a", 1)}, machines{{}}, 1},
		"a set that is being deleted makes none":        {sets{set("a", 2, deleted)}, nil, 0},
		"a set that may not make any waits for none":    {sets{set("a", 2, disabled)}, nil, 0},
		"a size below zero wants none":                  {sets{set("a", -3), set("b", 1)}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.missing, machineset.Missing(c.sets, c.machines))
		})
	}
}
