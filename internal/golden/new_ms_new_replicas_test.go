// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type setSize struct{ SpecReplicas, StatusReplicas int32 }

type newSetReplicasIn struct {
	Replicas                    int32
	MaxSurge, MaxUnavailable    bound
	Strategy, OrchestrationType string
	NewMS                       setSize
	OldMSs                      []setSize
}

type newSetReplicasOut struct {
	Error       *string
	NewReplicas int32
}

// newSetReplicas gets the number of machines as an argument. MCM counts those that are reported and
// forgets those that are requested (DS-1). Here the larger number counts for each set.
func newSetReplicas(in newSetReplicasIn, out newSetReplicasOut) ([]string, error) {
	d := &v1alpha1.MachineDeployment{}
	d.Spec.Replicas, d.Spec.Strategy = in.Replicas, strategyOf(in.Strategy, in.OrchestrationType, in.MaxSurge, in.MaxUnavailable)
	if in.Strategy == "InPlaceUpdate" && in.OrchestrationType == "Manual" {
		return nil, same("size", out, newSetReplicasOut{}) // its bounds are not read
	}
	b, err := deployment.BoundsOf(d)
	if (out.Error != nil) != (err != nil) || err != nil {
		if out.Error == nil {
			return nil, err
		}
		return nil, same("error", out.Error != nil, err != nil)
	}
	most := func(m mended) int64 {
		raw, _ := boundsModel(in.MaxSurge.IntOrString, in.MaxUnavailable.IntOrString, in.Replicas)
		if raw < 0 && !m["DS-14"] {
			return b.Desired + int64(raw)
		}
		return b.Most()
	}
	size := func(m mended) int64 {
		var there int64
		for _, s := range append(in.OldMSs, in.NewMS) {
			if m["DS-1"] {
				there += int64(max(s.SpecReplicas, s.StatusReplicas))
			} else {
				there += int64(s.StatusReplicas)
			}
		}
		current := int64(in.NewMS.SpecReplicas)
		switch {
		case in.Strategy == "Recreate":
			return b.Desired
		case there >= most(m):
			return current
		default:
			return current + min(most(m)-there, b.Desired-current)
		}
	}
	byReport, read, ours := size(nil), size(without("DS-14")), size(without("DS-1", "DS-14"))
	if err := same("size by the count of MCM", int64(out.NewReplicas), byReport); err != nil {
		return nil, err
	}
	var deviations []string
	if read != byReport {
		deviations = append(deviations, "DS-14")
	}
	if ours > read {
		return nil, fmt.Errorf("%d > %d by fewer machines", ours, read)
	}
	if ours != read {
		deviations = append(deviations, "DS-1")
	}
	return deviations, nil
}
