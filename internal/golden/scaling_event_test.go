// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"slices"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type scalingEventOut struct {
	IsScalingEvent, IsSaturated bool
	ActiveOrLatest              *string
	Error                       *string
}

func scalingEvent(in world, out scalingEventOut) ([]string, error) {
	d, newSet := in.MachineDeployment.object(), in.NewMS.object()
	found, others := deployment.FindSets(d, append(slices.Clip(setsOf(in.OldMSs)), newSet))
	s := rollout.ScalingOf(d, found, others)
	got := scalingEventOut{IsScalingEvent: s.Due, IsSaturated: s.Saturated, Error: out.Error}
	if s.Alone != nil {
		got.ActiveOrLatest = &s.Alone.Name
	}
	if err := same("new set", nameOf(newSet), nameOf(found)); err != nil {
		return nil, err
	}
	return nil, same("scaling", out, got)
}

func nameOf(s *v1alpha1.MachineSet) string {
	if s == nil {
		return ""
	}
	return s.Name
}
