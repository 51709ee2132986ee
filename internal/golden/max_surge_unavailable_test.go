// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
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
	// The reference system says that an update in place has no surge, and creates its
	// new set with one (new_ms_new_replicas). We say what is created.
	want, deviations := out, []string(nil)
	if created := createdInPlace(d); created != 0 && out.MaxSurge == 0 {
		want.MaxSurge, deviations = created, []string{"surge in place"}
	}
	return deviations, same("limits", want, maxSurgeUnavailableOut{deployment.MaxSurge(d), deployment.MaxUnavailable(d), deployment.MinAvailable(d)})
}

// createdInPlace returns how many machines beyond the replicas an update in place
// creates, by the rule of the reference system for the size of its new set.
func createdInPlace(d *v1alpha1.MachineDeployment) int32 {
	u := d.Spec.Strategy.InPlaceUpdate
	if u == nil || u.OrchestrationType != v1alpha1.OrchestrationTypeAuto || d.Spec.Strategy.Type != v1alpha1.InPlaceUpdateMachineDeploymentStrategyType {
		return 0
	}
	surge, _, err := deployment.FencePosts(u.MaxSurge, u.MaxUnavailable, d.Spec.Replicas)
	if err != nil {
		return 0
	}
	return surge
}
