// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/decided"
	rules "github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestPropagate_Edits_ReachTheNewSetInOneWrite(t *testing.T) {
	for _, scene := range []string{"rolling 3 +1; old 3/3/3; new 1/1/1", "rolling 3 +1 paused; old 3/3/3; new 1/1/1"} {
		s := newScenario(scene)
		spec := &s.in.Deployment.Spec
		spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineDrainTimeout: &metav1.Duration{Duration: time.Hour}}
		spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"zone": "1"}
		s.in.Sets[1].Spec.Template.Spec.Class.Kind = "OtherClass"
		spec.MinReadySeconds, spec.AutoPreserveFailedMachineMax = 5, 2
		s.in.Deployment.Annotations = map[string]string{"cause": "x"}
		s.in.Sets[1].Annotations["of another"] = "client"
		var written []*v1alpha1.MachineSet
		for _, next := range decided.Writes[*v1alpha1.MachineSet](s.decide().Actions) {
			if next.Name == "old" {
				template := s.in.Sets[0].Spec.Template
				template.Spec.MachineConfiguration = spec.Template.Spec.MachineConfiguration
				require.Empty(t, cmp.Diff(template, next.Spec.Template), "a rollback restores the rest")
				continue
			}
			written = append(written, next)
		}
		require.Len(t, written, 1)
		got := written[0]
		require.Equal(t, spec.Template.Spec, got.Spec.Template.Spec)
		require.Equal(t, []int32{5, 2}, []int32{got.Spec.MinReadySeconds, got.Spec.AutoPreserveFailedMachineMax})
		require.Equal(t, "x", got.Annotations["cause"])
		require.Equal(t, "client", got.Annotations["of another"], "the deployment does not have it, and it stays")
	}
}

func TestBuildSet_HighestRevision_IsNotExceeded(t *testing.T) {
	old := rollSet(rolling(3, 1, 0), "c0", 3, 3, 3)
	old.Annotations[v1alpha1.RevisionAnnotation] = "9223372036854775807"
	require.Equal(t, "9223372036854775807", deployment.BuildSet(rolling(3, 1, 0), []*v1alpha1.MachineSet{old}, 1).Annotations[v1alpha1.RevisionAnnotation])
}

func TestEqualIgnoreHash_EachField_CountsUnlessListed(t *testing.T) {
	values := map[string]any{
		"Name": "x", "GenerateName": "x", "Namespace": "x", "SelfLink": "x", "UID": types.UID("x"), "ResourceVersion": "x",
		"Generation": int64(1), "CreationTimestamp": metav1.NewTime(time.Unix(1, 0)), "DeletionTimestamp": &metav1.Time{},
		"DeletionGracePeriodSeconds": new(int64), "Labels": map[string]string{"x": "y"}, "Annotations": map[string]string{"x": "y"},
		"OwnerReferences": []metav1.OwnerReference{{}}, "Finalizers": []string{"x"}, "ManagedFields": []metav1.ManagedFieldsEntry{{}},
	}
	meta := reflect.TypeFor[metav1.ObjectMeta]()
	for i := range meta.NumField() {
		name := meta.Field(i).Name
		var changed v1alpha1.MachineTemplateSpec
		value, known := values[name]
		require.True(t, known, "field %s is new: decide whether it makes a generation", name)
		reflect.ValueOf(&changed.ObjectMeta).Elem().Field(i).Set(reflect.ValueOf(value))
		require.False(t, rules.EqualIgnoreHash(v1alpha1.MachineTemplateSpec{}, changed), name)
	}
	require.Equal(t, 4, reflect.TypeFor[v1alpha1.MachineSpec]().NumField(), "a field of the spec is new: decide whether it makes a generation")
	require.Equal(t, 3, reflect.TypeFor[v1alpha1.ClassSpec]().NumField(), "a field of the class is new: decide whether it makes a generation")
	a, b := v1alpha1.MachineTemplateSpec{}, v1alpha1.MachineTemplateSpec{}
	a.Labels = map[string]string{v1alpha1.DefaultMachineDeploymentUniqueLabelKey: "7"}
	b.Spec.Class.Kind, b.Spec.MachineConfiguration = "K", &v1alpha1.MachineConfiguration{}
	b.Spec.NodeTemplateSpec.Labels = map[string]string{"a": "1"}
	require.True(t, rules.EqualIgnoreHash(a, b))
}

// TestConfiguration_Edited_ReachesEverySetWithMachines asserts which sets get the machine
// configuration of a deployment, in every state of the deployment.
func TestConfiguration_Edited_ReachesEverySetWithMachines(t *testing.T) { checkScenes(t) }

// TestInPlace_Move_ClassOfTheNewTemplateInTheSameWrite asserts that no moment exists in which a
// machine of the new set refers to the old class.
func TestInPlace_Move_ClassOfTheNewTemplateInTheSameWrite(t *testing.T) {
	s := newScenario("inplace 3 -1; old 3: a.done b c; new 0")
	s.in.Deployment.Spec.Template.Spec.Class.APIGroup = "machine.sapcloud.io"
	s.in.Sets[1].Spec.Template.Spec.Class.APIGroup = "machine.sapcloud.io"
	moved := decided.Writes[*v1alpha1.Machine](s.decide().Actions)
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
			moved := decided.Writes[*v1alpha1.Machine](s.decide().Actions)
			require.Len(t, moved, 1)
			require.Equal(t, []string{c.want, c.want}, []string{moved[0].Labels[key], moved[0].Annotations[key]})
		})
	}
}

func TestRollback_Revision_TemplateAndEvent(t *testing.T) { checkScenes(t) }

// TestRollback_Annotations_AreThoseOfTheRevision asserts that what belongs to one object alone
// stays, and so does the time of the last change of the replicas, which a roll-back does not
// change.
func TestRollback_Annotations_AreThoseOfTheRevision(t *testing.T) {
	s := newScenario("rolling 3 +1 want=b rollback=1 revision=2 scaled; a 3/3/3 scaled; b 0 scaled")
	own := map[string]string{v1alpha1.RevisionAnnotation: "2", scaledKey: "2026-02-01T00:00:00Z", v1alpha1.UnfreezeAnnotation: "1"}
	maps.Copy(s.in.Deployment.Annotations, own)
	s.in.Deployment.Annotations["cause"], s.in.Deployment.Annotations["only"] = "second", "here"
	s.in.Sets[0].Annotations["cause"], s.in.Sets[0].Annotations[v1alpha1.PreferNoScheduleKey] = "first", "True"
	s.in.Sets[0].Annotations["machinist.dev/delete-first"] = "m"
	own["cause"] = "first"
	require.Equal(t, own, decided.Writes[*v1alpha1.MachineDeployment](s.decide().Actions)[0].Annotations)
}

func TestRollback_Requested_NotComplete(t *testing.T) { checkScenes(t) }

func TestRollback_OldSetIsNewAgain_GrowsAndIsUnmarked(t *testing.T) { checkScenes(t) }
