// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestSync_EveryNodeTemplateField_IsUpdated asserts that each field of a template is compared, also
// one that a new version of the API adds.
func TestSync_EveryNodeTemplateField_IsUpdated(t *testing.T) {
	for _, part := range []func(*v1alpha1.NodeTemplateSpec) any{
		func(n *v1alpha1.NodeTemplateSpec) any { return &n.ObjectMeta },
		func(n *v1alpha1.NodeTemplateSpec) any { return &n.Spec },
	} {
		for i := range reflect.TypeOf(part(&v1alpha1.NodeTemplateSpec{})).Elem().NumField() {
			set, plain := newSet(1), newSet(1)
			template := &set.Spec.Template.Spec.NodeTemplateSpec
			field := reflect.ValueOf(part(template)).Elem().Field(i)
			field.Set(something(t, field.Type()))
			machine := newMachine("m", v1alpha1.MachineRunning)
			sync, changed := syncOf(set, machine)
			require.True(t, changed, "%s, of which a machine has none", field.Type())
			require.Equal(t, template, sync.NodeTemplate)

			machine.Spec.NodeTemplateSpec = *template
			_, changed = syncOf(set, machine)
			require.False(t, changed, "%s, the same", field.Type())
			_, changed = syncOf(plain, machine)
			require.True(t, changed, "%s, which only a machine has", field.Type())
		}
	}
}

// something returns a value of a type that is not its zero value.
func something(t *testing.T, of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.String:
		v.SetString("a")
	case reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(of, 1, 1))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"a": "b"}))
	default:
		require.Equal(t, reflect.TypeFor[metav1.Time](), of)
		v.Set(reflect.ValueOf(metav1.Unix(1, 0)))
	}
	return v
}
