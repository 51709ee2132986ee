// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type markedForDeletionIn struct {
	LastReplicaChangeByScalerTime string
	Machines                      []machine
}

type markedForDeletionOut struct{ Marked []string }

func markedForDeletion(in markedForDeletionIn, out markedForDeletionOut) ([]string, error) {
	set := (&machineSet{Name: "ms", Replicas: 1}).object()
	if at := in.LastReplicaChangeByScalerTime; at != "" {
		set.Annotations = map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: at}
	}
	var got markedForDeletionOut
	for _, m := range machinesOf(in.Machines) {
		if members.NamedByAutoscaler(set, m) {
			got.Marked = append(got.Marked, m.Name)
		}
	}
	return nil, same("marked", out, got)
}
