// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

type autoPreservationIn struct {
	AutoPreserveFailedMachineMax, StatusAutoPreserveCount int
	Machines                                              []machine
}

type autoPreservationOut struct{ PreserveAnnotations map[string]string }

func autoPreservation(in autoPreservationIn, out autoPreservationOut) ([]string, error) {
	machines := machinesOf(in.Machines)
	got, set := autoPreservationOut{map[string]string{}}, (&machineSet{Name: "ms"}).object()
	set.Spec.Replicas = int32(len(machines)) //nolint:gosec // small
	// The SDK counts what is preserved, and does not read the status.
	counted := members.Count(nil, machines, nil, now).AutoPreserved
	set.Spec.AutoPreserveFailedMachineMax = int32(in.AutoPreserveFailedMachineMax - in.StatusAutoPreserveCount + counted) //nolint:gosec // small
	d := machineset.Decide(machineset.Observation{Set: set, Machines: machines, Complete: true, Proven: true}, machineset.Policy{}, now)
	for _, m := range machines {
		if value, found := m.Annotations[v1alpha1.PreserveMachineAnnotationKey]; found {
			got.PreserveAnnotations[m.Name] = value
		}
	}
	for _, a := range d.Actions {
		u, _ := a.(machinist.Update)
		m, ok := u.Object.(*v1alpha1.Machine)
		if !ok {
			continue
		}
		delete(got.PreserveAnnotations, m.Name)
		if value, found := m.Annotations[v1alpha1.PreserveMachineAnnotationKey]; found {
			got.PreserveAnnotations[m.Name] = value
		}
	}
	return nil, same("annotations", out, got)
}
