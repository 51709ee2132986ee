// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestDecision_JSON_NamesObjectsWithoutZeroTimes(t *testing.T) {
	set, machine, node := &v1alpha1.MachineSet{}, &v1alpha1.Machine{}, &corev1.Node{}
	set.Name, set.Spec.Replicas, machine.Name, node.Name = "small", 2, "small-0", "node-0"
	larger, old := set.DeepCopy(), &v1alpha1.MachineSet{}
	larger.Spec.Replicas, old.Name = 3, "old"
	d := &v1alpha1.MachineDeployment{}
	d.Name = "workers"
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	dec := deployment.Decision{
		Reason: machinist.Reason("Progressing"), Message: "1 of 3 machines updated, 3 available",
		Targets: []deployment.Target{{
			Name: "small", UID: "1", From: 3, To: 2, Message: "3 machines available, minimum 3",
			Victims: []machineset.Victim{{Machine: machine, By: "Availability"}},
		}},
		Actions: []machinist.Action{
			machinist.Update{Object: d, Changes: []string{"revision is 2"}},
			machinist.Update{Object: machine, Changes: []string{"counted by its new set"}},
			machinist.Create{Object: set, Message: "2 replicas (3 machines, 4 allowed)"},
			machinist.Update{Before: larger, Object: set, Changes: []string{"from 3 to 2 replicas", "3 machines available, minimum 3"}},
			machinist.Update{Before: set, Object: set, Changes: []string{"annotations differ from the deployment"}},
			machinist.Delete{Object: old, Message: "the deployment is being deleted"},
			machinist.Update{Object: node, Changes: []string{"taint removed"}},
			machinist.Refresh{Kind: "MachineSet", Name: "small"},
			machinist.Refresh{Kind: "MachineSet"},
		},
		Holds:       []machinist.Hold{{Subject: "machine/large-0", Reason: deployment.ReasonNewUnavailable, Message: "Pending"}},
		Events:      []machinist.Event{{Type: "Normal", Reason: "ScalingMachineSet", Message: "Scaled down machine set small to 2"}},
		WriteStatus: true, NextCheck: at,
	}
	data, err := json.MarshalIndent(dec, "", "  ")
	require.NoError(t, err)
	golden(t, "testdata/decision.json", string(data)+"\n")

	data, err = json.Marshal(deployment.Decision{})
	require.NoError(t, err)
	require.JSONEq(t, `{}`, string(data))
	for _, a := range []machinist.Action{machinist.Update{}, machinist.Create{}, machinist.Delete{}, machinist.Refresh{}} {
		_, err := json.Marshal(deployment.Decision{Actions: []machinist.Action{a}})
		require.NoError(t, err)
	}
}
