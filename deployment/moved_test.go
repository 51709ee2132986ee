// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestInPlace_Move_ClassOfTheNewTemplateInTheSameWrite asserts that no moment exists in which a
// machine of the new set refers to the old class.
func TestInPlace_Move_ClassOfTheNewTemplateInTheSameWrite(t *testing.T) {
	s := newScenario("inplace 3 -1; old 3: a.done b c; new 0")
	s.in.Deployment.Spec.Template.Spec.Class.APIGroup = "machine.sapcloud.io"
	s.in.Sets[1].Spec.Template.Spec.Class.APIGroup = "machine.sapcloud.io"
	moved := writes[*v1alpha1.Machine](s.decide())
	require.Len(t, moved, 1)
	require.Equal(t, "new", metav1.GetControllerOf(moved[0]).Name)
	require.Equal(t, s.in.Sets[1].Spec.Template.Spec.Class, moved[0].Spec.Class)
	require.Equal(t, "old", s.of("a").Spec.Class.Name, "the observation changed")
}

func TestInPlace_Move_LabelsAndAnnotationsFollowTheTemplates(t *testing.T) {
	for name, c := range map[string]struct{ old, machine, next, want string }{
		"changed in the template":                   {"1", "1", "2", "2"},
		"changed in the template and on the object": {"1", "user", "2", "2"},
		"new in the template":                       {"", "", "2", "2"},
		"removed from the template":                 {"1", "1", "", ""},
		"removed, and changed by a user":            {"1", "user", "", "user"},
		"unchanged, and changed by a user":          {"1", "user", "1", "user"},
		"of a user alone":                           {"", "user", "", "user"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario("inplace 3 -1; old 3: a.done b c; new 0")
			const key = "example.com/x"
			put := func(m *metav1.ObjectMeta, value string) {
				if value != "" {
					metav1.SetMetaDataLabel(m, key, value)
					metav1.SetMetaDataAnnotation(m, key, value)
				}
			}
			put(&s.in.Sets[0].Spec.Template.ObjectMeta, c.old)
			put(&s.in.Sets[1].Spec.Template.ObjectMeta, c.next)
			put(&s.in.Deployment.Spec.Template.ObjectMeta, c.next)
			put(&s.of("a").ObjectMeta, c.machine)
			moved := writes[*v1alpha1.Machine](s.decide())
			require.Len(t, moved, 1)
			require.Equal(t, []string{c.want, c.want}, []string{moved[0].Labels[key], moved[0].Annotations[key]})
		})
	}
}

// TestUpdateInPlace_EndOfTheRollout_MachinesHaveTheNewTemplate plays an update in place to its end.
func TestUpdateInPlace_EndOfTheRollout_MachinesHaveTheNewTemplate(t *testing.T) {
	d := updating(3, 0, 1)
	d.Spec.Template.Labels["extra"], d.Spec.Template.Annotations = "one", map[string]string{"ann": "one"}
	w, err := deploymenttest.New(d, deploymenttest.Model{})
	require.NoError(t, err)
	w.Run(time.Hour)
	before := map[string]bool{}
	for _, m := range w.Machines() {
		before[m.Name] = true
	}
	require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) {
		template := &d.Spec.Template
		template.Labels["extra"], template.Annotations["ann"] = "two", "two"
		template.Spec.Class.Name = "c2"
		template.Spec.NodeTemplateSpec.Labels = map[string]string{"v": "2"}
		template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: time.Minute}}
	}))
	w.Run(12 * time.Hour)
	require.Equal(t, deployment.ReasonComplete, w.Decision().Reason)
	require.Len(t, w.Machines(), 3)
	for _, m := range w.Machines() {
		require.True(t, before[m.Name], "the machine was not updated in place")
		want := w.Deployment().Spec.Template.Spec
		want.ProviderID = m.Spec.ProviderID
		require.Equal(t, want, m.Spec)
		require.Equal(t, []string{"two", "two"}, []string{m.Labels["extra"], m.Annotations["ann"]})
	}
}
