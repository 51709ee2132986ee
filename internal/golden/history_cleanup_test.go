// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
)

type historyCleanupIn struct {
	OldMSs               []*machineSet
	RevisionHistoryLimit *int32
}

type historyCleanupOut struct {
	Deleted []string
	Error   *string
}

func historyCleanup(in historyCleanupIn, out historyCleanupOut) ([]string, error) {
	d := machineDeployment{Name: "md", Replicas: 1, Strategy: "RollingUpdate", MaxSurge: number(1), MaxUnavailable: number(0), Template: &template{ClassKind: "MachineClass", ClassName: "new", Labels: map[string]string{"app": "w"}}}.object()
	d.Spec.Paused, d.Spec.RevisionHistoryLimit = true, in.RevisionHistoryLimit
	got := historyCleanupOut{Error: out.Error}
	for _, a := range deployment.Decide(deployment.Observation{Deployment: d, Sets: setsOf(in.OldMSs), Complete: true, Proven: true}, deployment.Policy{}, now).Actions {
		if d, ok := a.(machinist.Delete); ok {
			got.Deleted = append(got.Deleted, d.Object.GetName())
		}
	}
	return nil, same("deleted", out, got)
}
