// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"encoding/json"
	"math"

	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type getProportionIn struct {
	MaxReplicasAnnotation                  *string
	MaxSurge, MaxUnavailable               bound
	MachineSet                             json.RawMessage
	MSReplicas                             int32 `json:"msReplicas"`
	Replicas, ReplicasAdded, ReplicasToAdd int32
	StatusReplicas                         int32
	Strategy, OrchestrationType            string
}

type getProportionOut struct{ Proportion int32 }

func (in getProportionIn) share() rollout.Share {
	d := &v1alpha1.MachineDeployment{}
	d.Spec.Replicas = in.Replicas
	d.Spec.Strategy = strategyOf(in.Strategy, in.OrchestrationType, in.MaxSurge, in.MaxUnavailable)
	share := rollout.Share{Size: in.MSReplicas, Desired: in.Replicas, Surge: surgeOf(d), Max: in.StatusReplicas, ToAdd: in.ReplicasToAdd, Added: in.ReplicasAdded}
	if string(in.MachineSet) == "null" {
		share.Size = 0
	}
	if in.MaxReplicasAnnotation != nil {
		if n, ok := atoi(*in.MaxReplicasAnnotation); ok {
			share.Max = n
		}
	}
	return share
}

func getProportion(in getProportionIn, out getProportionOut) ([]string, error) {
	share := in.share()
	model := func(m mended) getProportionOut {
		if share.Max == 0 && m == nil {
			return out // a division by zero is worth whatever the machine makes of it
		}
		return getProportionOut{proportionModel(share, m)}
	}
	return explain([]string{"DS-12"}, model, out, getProportionOut{share.Change()})
}

// proportionModel reckons in 32 bits and divides by whatever it finds. Mended
// (DS-12), it reckons in 64, and if there is nothing to divide by the set takes
// what is left, as far as it can.
func proportionModel(s rollout.Share, m mended) int32 {
	if s.Size == 0 || s.ToAdd == 0 || s.ToAdd == s.Added {
		return 0
	}
	left := s.ToAdd - s.Added
	product := float64(s.Size * (s.Desired + s.Surge))
	if m["DS-12"] {
		product = float64(s.Size) * (float64(s.Desired) + float64(s.Surge))
	}
	fraction := -s.Size
	switch {
	case s.Desired == 0:
	case s.Max <= 0 && m["DS-12"]:
		fraction = max(left, -s.Size)
	case s.Max == 0:
		fraction = math.MinInt32
	default:
		fraction = int32(math.Round(product/float64(s.Max))) - s.Size
	}
	if s.ToAdd > 0 {
		return min(fraction, left)
	}
	return max(fraction, left)
}
