// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// Three machines were asked for, and then the set became smaller: until they show,
// the status says that they may exist.
func TestStatusInFlightCreationsCountAsMachinesUntilTheyShow(t *testing.T) {
	t.Parallel()
	set := &v1alpha1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set", Generation: 2},
		Spec:       v1alpha1.MachineSetSpec{Replicas: 1},
	}
	shown := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "a", UID: "a", OwnerReferences: []metav1.OwnerReference{machineset.OwnerSet(set).Reference()},
	}}
	at := metav1.Now().Time
	in := machineset.Observation{
		Set: set, Complete: true, Machines: []*v1alpha1.Machine{shown},
		Expectations: machine.Expectations{}.Creating(machine.KindMachine, "a", at).Creating(machine.KindMachine, "b", at).Creating(machine.KindMachine, "c", at),
	}
	status := machineset.Status(in, machineset.Failure{}, at)
	require.EqualValues(t, 3, status.Replicas, "one that shows, and two that do not")
	require.EqualValues(t, 3, status.FullyLabeledReplicas)
	require.Zero(t, status.AvailableReplicas)
	require.EqualValues(t, 2, status.ObservedGeneration)
}
