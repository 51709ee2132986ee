// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type fencePostsIn struct {
	Desired                  int32
	MaxSurge, MaxUnavailable bound
}

type fencePostsOut struct {
	Surge, Unavailable int32
	Error              *string
}

func fencePosts(in fencePostsIn, out fencePostsOut) ([]string, error) {
	b, err := deployment.BoundsOf(bounded{in.Desired, in.MaxSurge, in.MaxUnavailable, "RollingUpdate", ""}.object())
	if (out.Error != nil) != (err != nil) {
		return nil, fmt.Errorf("error %w, want %v", err, out.Error)
	}
	want, deviations := readBounds(out.Surge, out.Unavailable, in.Desired)
	if err != nil {
		want = deployment.Bounds{Desired: int64(in.Desired)}
	}
	return deviations, same("bounds", want, b)
}

// readBounds returns the bounds that we make of those of MCM. No more
// machines may be unavailable than are wanted. A negative bound (DS-14) is none, and if no
// other is left one machine may be unavailable.
func readBounds(surge, unavailable, desired int32) (b deployment.Bounds, deviations []string) {
	if surge < 0 || unavailable < 0 {
		deviations = []string{"DS-14"}
	}
	b = deployment.Bounds{Desired: int64(desired), Surge: int64(max(0, surge)), Unavailable: int64(max(0, unavailable))}
	if b.Surge == 0 && b.Unavailable == 0 {
		b.Unavailable = 1
	}
	b.Unavailable = min(b.Unavailable, b.Desired)
	return b, deviations
}

type maxSurgeUnavailableOut struct{ MaxSurge, MaxUnavailable, MinAvailable int32 }

func maxSurgeUnavailable(in bounded, out maxSurgeUnavailableOut) ([]string, error) {
	d := in.object()
	b, err := deployment.BoundsOf(d)
	if err != nil {
		return nil, same("bounds that cannot be read", out, maxSurgeUnavailableOut{MinAvailable: out.MinAvailable})
	}
	// MCM says that an update in place has no surge, and creates its
	// new set with one (new_ms_new_replicas). We say what is created.
	surge, deviations := out.MaxSurge, []string(nil)
	if d.Spec.Strategy.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType && surge == 0 && b.Surge > 0 {
		surge, deviations = int32(b.Surge), []string{"surge in place"}
	}
	if d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType {
		return nil, same("recreation", deployment.Bounds{Desired: int64(in.Replicas), Unavailable: int64(in.Replicas)}, b)
	}
	if d.Spec.Strategy.Type == v1alpha1.RollingUpdateMachineDeploymentStrategyType && int64(out.MinAvailable) != b.Least() {
		return nil, fmt.Errorf("%d have to be available, want %d", b.Least(), out.MinAvailable)
	}
	want, more := readBounds(surge, out.MaxUnavailable, in.Replicas)
	return append(deviations, more...), same("bounds", want, b)
}

type setSize struct{ SpecReplicas, StatusReplicas int32 }

type newSetReplicasIn struct {
	bounded
	NewMS  setSize
	OldMSs []setSize
}

type newSetReplicasOut struct {
	Error       *string
	NewReplicas int32
}

// newSetReplicas gets the number of machines as an argument. MCM counts those that are reported and
// forgets those that are requested (DS-1). Here the larger number counts for each set.
func newSetReplicas(in newSetReplicasIn, out newSetReplicasOut) ([]string, error) {
	if in.Strategy == "InPlaceUpdate" && in.OrchestrationType == "Manual" {
		return nil, same("size", out, newSetReplicasOut{}) // its bounds are not read
	}
	b, err := deployment.BoundsOf(in.object())
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

type getProportionIn struct {
	bounded
	MaxReplicasAnnotation                        *string
	MachineSet                                   json.RawMessage
	MSReplicas                                   int32 `json:"msReplicas"`
	ReplicasAdded, ReplicasToAdd, StatusReplicas int32
}

type getProportionOut struct{ Proportion int32 }

func (in getProportionIn) share() rollout.Share {
	share := rollout.Share{Size: in.MSReplicas, Desired: in.Replicas, Surge: surgeOf(in.object()), Max: in.StatusReplicas, ToAdd: in.ReplicasToAdd, Added: in.ReplicasAdded}
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
