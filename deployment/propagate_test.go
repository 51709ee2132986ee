// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
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
		for _, next := range writes[*v1alpha1.MachineSet](s.decide()) {
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

func TestNewSetAnnotations_OfOneObject_StayThere(t *testing.T) {
	d := rolling(1, 1, 0)
	d.Annotations = map[string]string{
		"cause": "x", "machinist.dev/delete-first": "m", "machinist.dev/released-by": "s", deployment.NamedAnnotation: "7",
		namesKey: "m", v1alpha1.UnfreezeAnnotation: "", v1alpha1.PreferNoScheduleKey: "True", scaledKey: "t", v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout: "1h",
	}
	got, changed := deployment.NewSetAnnotations(d, &v1alpha1.MachineSet{}, "1", true)
	require.True(t, changed)
	require.Equal(t, map[string]string{"cause": "x", scaledKey: "t", v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout: "1h", v1alpha1.RevisionAnnotation: "1"}, got)
}

func TestNewSetAnnotations_EmptyValueThatTheSetLacks_IsNotAdded(t *testing.T) {
	d, s := rolling(3, 1, 0), &v1alpha1.MachineSet{}
	s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "1", "had": "a value"}
	d.Annotations = map[string]string{"new": "", "had": ""}
	annotations, changed := deployment.NewSetAnnotations(d, s, "1", true)
	require.True(t, changed)
	require.Equal(t, map[string]string{v1alpha1.RevisionAnnotation: "1", "had": ""}, annotations)
	s.Annotations = annotations
	_, changed = deployment.NewSetAnnotations(d, s, "1", true)
	require.False(t, changed)
}

func TestNewSetAnnotations_History_IsBoundedAndOfRevisionsOnly(t *testing.T) {
	for _, c := range []struct{ history, revision, next, prefix, suffix string }{
		{strings.Repeat("12345,", 400) + "99999", "100000", "100001", "12345,", ",12345,99999,100000"}, // the oldest go, and whole ones
		{strings.Repeat("x", 3000), "1", "2", "1", "1"},
		{"", "1", "1", "", ""}, // another annotation changes
	} {
		d, s := rolling(1, 1, 0), &v1alpha1.MachineSet{}
		d.Annotations = map[string]string{scaledKey: "a"}
		s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: c.revision, v1alpha1.RevisionHistoryAnnotation: c.history}
		got, changed := deployment.NewSetAnnotations(d, s, c.next, true)
		require.True(t, changed)
		history := got[v1alpha1.RevisionHistoryAnnotation]
		require.LessOrEqual(t, len(history), 2000)
		require.True(t, strings.HasPrefix(history, c.prefix) && strings.HasSuffix(history, c.suffix), history)
		require.Equal(t, c.suffix == "", history == "")
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
		require.False(t, deployment.EqualIgnoreHash(v1alpha1.MachineTemplateSpec{}, changed), name)
	}
	require.Equal(t, 4, reflect.TypeFor[v1alpha1.MachineSpec]().NumField(), "a field of the spec is new: decide whether it makes a generation")
	require.Equal(t, 3, reflect.TypeFor[v1alpha1.ClassSpec]().NumField(), "a field of the class is new: decide whether it makes a generation")
	a, b := v1alpha1.MachineTemplateSpec{}, v1alpha1.MachineTemplateSpec{}
	a.Labels = map[string]string{v1alpha1.DefaultMachineDeploymentUniqueLabelKey: "7"}
	b.Spec.Class.Kind, b.Spec.MachineConfiguration = "K", &v1alpha1.MachineConfiguration{}
	b.Spec.NodeTemplateSpec.Labels = map[string]string{"a": "1"}
	require.True(t, deployment.EqualIgnoreHash(a, b))
}
