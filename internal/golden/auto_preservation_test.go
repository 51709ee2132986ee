// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
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
	grant, revoke := machineset.AutoPreserve(machines, nil, in.AutoPreserveFailedMachineMax-in.StatusAutoPreserveCount)
	got := autoPreservationOut{map[string]string{}}
	for _, m := range machines {
		if value, found := m.Annotations[v1alpha1.PreserveMachineAnnotationKey]; found {
			got.PreserveAnnotations[m.Name] = value
		}
	}
	for _, m := range revoke {
		delete(got.PreserveAnnotations, m.Name)
	}
	for _, m := range grant {
		got.PreserveAnnotations[m.Name] = v1alpha1.PreserveMachineAnnotationValuePreservedByMCM
	}
	return nil, same("annotations", out, got)
}
