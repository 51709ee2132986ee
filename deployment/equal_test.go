// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// counted is what makes a generation, said by what does not.
func counted(t v1alpha1.MachineTemplateSpec) *v1alpha1.MachineTemplateSpec {
	c := t.DeepCopy()
	delete(c.Labels, v1alpha1.DefaultMachineDeploymentUniqueLabelKey)
	if len(c.Labels) == 0 {
		c.Labels = nil
	}
	c.Spec.NodeTemplateSpec, c.Spec.MachineConfiguration, c.Spec.Class.Kind = v1alpha1.NodeTemplateSpec{}, nil, ""
	return c
}

func TestTemplatesAreEqualIfAllThatCountsIs(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 1))
	maps := []map[string]string{nil, {}, {"a": "1"}, {"a": "2"}, {"b": "1"}, {"a": "1", v1alpha1.DefaultMachineDeploymentUniqueLabelKey: "7"}, {v1alpha1.DefaultMachineDeploymentUniqueLabelKey: "8"}, {"a": ""}, {"b": ""}}
	changes := []func(*v1alpha1.MachineTemplateSpec){
		func(s *v1alpha1.MachineTemplateSpec) { s.Labels = maps[rng.IntN(len(maps))] },
		func(s *v1alpha1.MachineTemplateSpec) { s.Annotations = maps[rng.IntN(len(maps))] },
		func(s *v1alpha1.MachineTemplateSpec) {
			s.Finalizers = [][]string{nil, {}, {"f"}, {"f", "g"}}[rng.IntN(4)]
		},
		func(s *v1alpha1.MachineTemplateSpec) { s.Spec.Class.Name = []string{"c1", "c2"}[rng.IntN(2)] },
		func(s *v1alpha1.MachineTemplateSpec) { s.Spec.Class.APIGroup = []string{"", "g"}[rng.IntN(2)] },
		func(s *v1alpha1.MachineTemplateSpec) { s.Spec.Class.Kind = []string{"", "K"}[rng.IntN(2)] },
		func(s *v1alpha1.MachineTemplateSpec) { s.Spec.ProviderID = []string{"", "p"}[rng.IntN(2)] },
		func(s *v1alpha1.MachineTemplateSpec) { s.Spec.NodeTemplateSpec.Labels = maps[rng.IntN(len(maps))] },
		func(s *v1alpha1.MachineTemplateSpec) { s.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{} },
	}
	equal := 0
	for range 20000 {
		var a, b v1alpha1.MachineTemplateSpec
		for range rng.IntN(4) {
			changes[rng.IntN(len(changes))](&a)
			changes[rng.IntN(len(changes))](&b)
		}
		want := equality.Semantic.DeepEqual(counted(a), counted(b))
		require.Equal(t, want, deployment.EqualIgnoreHash(a, b), "%+v\n%+v", a, b)
		require.Equal(t, want, deployment.EqualIgnoreHash(b, a))
		if want {
			equal++
		}
	}
	require.Greater(t, equal, 1000)
}

func TestEveryFieldOfATemplateCountsUnlessItIsNamedAsOneThatDoesNot(t *testing.T) {
	t.Parallel()
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
}
