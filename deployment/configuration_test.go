// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestConfiguration_Edited_ReachesEverySetWithMachines asserts which sets get the machine
// configuration of a deployment, in every state of the deployment.
func TestConfiguration_Edited_ReachesEverySetWithMachines(t *testing.T) {
	want := &v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: time.Minute}}
	for name, c := range map[string]struct {
		scene string
		edit  func(*scenario)
		sets  []string
	}{
		"rollout":                            {"rolling 3 +1; old 3/3/3; new 1/1/1", nil, []string{"old", "new"}},
		"paused":                             {"rolling 3 +1 paused; old 3/3/3; new 1/1/1", nil, []string{"old", "new"}},
		"recreation":                         {"recreate 3; old 3/3/3", nil, []string{"old"}},
		"update in place":                    {"inplace 3 -1; old 2: b c; new 1: a", nil, []string{"old", "new"}},
		"API server is away":                 {"rolling 3 +1; old 3/3/3; new 1/1/1", func(s *scenario) { s.in.Freeze.Frozen = true }, []string{"old", "new"}},
		"old set with a terminating machine": {"rolling 1 +1; old 0: a.leaving; new 1/1/1", nil, []string{"old", "new"}},
		"empty old set":                      {"rolling 1 +1; old 0; new 1/1/1", nil, []string{"new"}},
		"set that is being deleted":          {"rolling 1 +1; old 1 deleting: a.leaving; new 1/1/1", nil, []string{"old", "new"}},
		"new set that is being deleted":      {"rolling 1 +1; new 1 deleting: a.leaving", nil, []string{"new"}},
		"deployment that is being deleted": {"rolling 3 +1; old 3/3/3 deleting; new 1/1/1 deleting", func(s *scenario) {
			s.in.Deployment.DeletionTimestamp = new(metav1.NewTime(rollNow))
		}, []string{"old", "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(c.scene)
			if c.edit != nil {
				c.edit(s)
			}
			s.in.Deployment.Spec.Template.Spec.MachineConfiguration = want
			before := map[string]*v1alpha1.MachineSet{}
			for _, set := range s.in.Sets {
				before[set.Name] = set.DeepCopy()
			}
			var got []string
			for _, next := range writes[*v1alpha1.MachineSet](s.decide()) {
				template := before[next.Name].Spec.Template.DeepCopy()
				if next.Spec.Template.Spec.MachineConfiguration != nil {
					got = append(got, next.Name)
					template.Spec.MachineConfiguration = want
				}
				require.Empty(t, cmp.Diff(*template, next.Spec.Template), "what makes another VM stays")
			}
			require.Equal(t, c.sets, got)
		})
	}
}

// TestConfiguration_DrainTimeoutShortenedWhileDraining_ReachesTheMachine plays a rollout whose old
// machine drains, and a deletion of the deployment.
func TestConfiguration_DrainTimeoutShortenedWhileDraining_ReachesTheMachine(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, w *deploymenttest.World){
		"rollout": func(t *testing.T, w *deploymenttest.World) {
			require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "c2" }))
		},
		"scale-down": func(t *testing.T, w *deploymenttest.World) {
			require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 1 }))
		},
		"deletion of the deployment": func(t *testing.T, w *deploymenttest.World) { require.NoError(t, w.Delete()) },
	} {
		t.Run(name, func(t *testing.T) {
			d := rolling(3, 1, 0)
			d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: 48 * time.Hour}}
			w, err := deploymenttest.New(d, deploymenttest.Model{Leave: func(*v1alpha1.Machine) time.Duration { return 40 * time.Hour }})
			require.NoError(t, err)
			w.Run(time.Hour)
			begin(t, w)
			w.Run(30 * time.Minute)
			require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) {
				d.Spec.Template.Spec.MachineConfiguration.MachineDrainTimeout = &metav1.Duration{Duration: 10 * time.Minute}
			}))
			w.Run(5 * time.Minute)
			terminating := 0
			for _, m := range w.Machines() {
				if m.DeletionTimestamp != nil {
					terminating++
				}
				require.Equal(t, 10*time.Minute, m.Spec.MachineDrainTimeout.Duration, m.Name)
			}
			require.Positive(t, terminating)
		})
	}
}
