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
	return nil, same("limits", out, maxSurgeUnavailableOut{deployment.MaxSurge(d), deployment.MaxUnavailable(d), deployment.MinAvailable(d)})
}
