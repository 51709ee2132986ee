// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type maxSurgeUnavailableIn struct {
	Replicas                    int32
	MaxSurge, MaxUnavailable    bound
	Strategy, OrchestrationType string
}

type maxSurgeUnavailableOut struct{ MaxSurge, MaxUnavailable, MinAvailable int32 }

func maxSurgeUnavailable(in maxSurgeUnavailableIn, out maxSurgeUnavailableOut) ([]string, error) {
	d := &v1alpha1.MachineDeployment{}
	d.Spec.Replicas = in.Replicas
	d.Spec.Strategy = strategyOf(in.Strategy, in.OrchestrationType, in.MaxSurge, in.MaxUnavailable)
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
