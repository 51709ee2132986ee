// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestTheStageOfAnUpdateFollowsFromWhatIsKnownOfIt(t *testing.T) {
	const running = v1alpha1.MachineRunning
	for name, c := range map[string]struct {
		step  string // of the machine
		node  *corev1.Node
		stage string
	}{
		"an agent is done, and the machine does not say so":  {"", updNode("", v1alpha1.LabelKeyNodeUpdateResult, "successful"), "Started"},
		"an agent has failed, and the machine is not told":   {"", updNode("", v1alpha1.LabelKeyNodeUpdateResult, "failed"), "Failed"},
		"a Node is selected that was no candidate":           {"", updNode("", v1alpha1.LabelKeyNodeSelectedForUpdate, "true"), "Candidate"},
		"a Node is about to be drained":                      {"", updNode(v1alpha1.SelectedForUpdate), "Started"},
		"a Node was drained":                                 {"", updNode(v1alpha1.DrainSuccessful), "Started"},
		"a Node waits for its agent":                         {"", updNode(v1alpha1.ReadyForUpdate), "Started"},
		"a machine that was updated before, its Node is not": {v1alpha1.ReadyForUpdate, updNode(""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.stage, string(deployment.StageOf(updMachine(running, c.step), c.node)))
		})
	}
}
