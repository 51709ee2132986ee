// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestSync_TemplateChanges_Table(t *testing.T) {
	set := newSet(1)
	set.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"n": "1"}
	set.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MaxEvictRetries: ptr.To(int32(3))}
	set.Spec.Template.Spec.Class.Name = "new"
	for phase, changes := range map[v1alpha1.MachinePhase][]string{
		v1alpha1.MachineRunning: {"node template", "configuration", "class"}, v1alpha1.MachineFailed: {"configuration", "class"}, v1alpha1.MachineTerminating: {"configuration", "class"},
	} {
		m := newMachine("m", phase)
		m.Spec.Class.Kind = "Old"
		before := m.DeepCopy()
		s, changed := syncOf(set, m)
		require.True(t, changed)
		require.Equal(t, changes, s.Changes)
		require.Empty(t, cmp.Diff(before, m))
		want := set.Spec.Template.Spec.DeepCopy()
		want.ProviderID, want.Class.Name = m.Spec.ProviderID, "c1" // the name of the class belongs to a roll-out
		if len(changes) == 2 {
			want.NodeTemplateSpec = v1alpha1.NodeTemplateSpec{}
		}
		next := machineOf(s)
		require.Empty(t, cmp.Diff(*want, next.Spec))
		_, changed = syncOf(set, next)
		require.False(t, changed)
		*next.Spec.MaxEvictRetries = 9
		if len(changes) == 3 {
			next.Spec.NodeTemplateSpec.Labels["n"] = "9"
		}
		require.EqualValues(t, 3, *set.Spec.Template.Spec.MaxEvictRetries, "it shares something with the set")
		require.Equal(t, "1", set.Spec.Template.Spec.NodeTemplateSpec.Labels["n"], "it shares something with the set")
	}
}

// TestSync_ConfigurationWithdrawn_LeavesTheMachine asserts that an override that is withdrawn from the
// template leaves the machine, and one that overrides nothing is none.
func TestSync_ConfigurationWithdrawn_LeavesTheMachine(t *testing.T) {
	set, m := newSet(1), newMachine("m", v1alpha1.MachineRunning)
	m.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{}
	_, changed := syncOf(set, m)
	require.False(t, changed)
	m.Spec.MaxEvictRetries = ptr.To(int32(3))
	s, changed := syncOf(set, m)
	require.True(t, changed)
	require.Nil(t, machineOf(s).Spec.MachineConfiguration)
}

// TestSync_Preservation_OneUpdateWithTheTemplate asserts that the preserve annotation and the template
// are one write.
func TestSync_Preservation_OneUpdateWithTheTemplate(t *testing.T) {
	in := observed(1, newMachine("m", v1alpha1.MachineFailed))
	in.Set.Spec.AutoPreserveFailedMachineMax = 1
	in.Set.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MaxEvictRetries: ptr.To(int32(3))}
	actions := machineset.Decide(in, machineset.Policy{}, now).Actions
	require.Len(t, actions, 1)
	require.Equal(t, "update machine m: configuration; preservation", actions[0].String())
	kept := machineOf(actions[0].(machinist.Update))
	require.Equal(t, "auto-preserved", kept.Annotations[v1alpha1.PreserveMachineAnnotationKey])
	require.NotContains(t, in.Machines[0].Annotations, v1alpha1.PreserveMachineAnnotationKey)

	in.Machines[0], in.Set.Spec.AutoPreserveFailedMachineMax = kept, 0
	actions = machineset.Decide(in, machineset.Policy{}, now).Actions
	require.Equal(t, "update machine m: preservation", actions[0].String())
	require.NotContains(t, machineOf(actions[0].(machinist.Update)).Annotations, v1alpha1.PreserveMachineAnnotationKey)
	require.Contains(t, kept.Annotations, v1alpha1.PreserveMachineAnnotationKey)
}

// TestSync_EqualNodeTemplates_NoUpdate asserts that the comparison without reflection agrees with
// the one with reflection.
func TestSync_EqualNodeTemplates_NoUpdate(t *testing.T) {
	when := metav1.NewTime(epoch)
	bends := []func(n *v1alpha1.NodeTemplateSpec){
		func(*v1alpha1.NodeTemplateSpec) {},
		func(n *v1alpha1.NodeTemplateSpec) { n.Labels = map[string]string{} },
		func(n *v1alpha1.NodeTemplateSpec) { n.Labels = map[string]string{"a": "1"} },
		func(n *v1alpha1.NodeTemplateSpec) { n.Labels = map[string]string{"a": "2"} },
		func(n *v1alpha1.NodeTemplateSpec) { n.Finalizers = []string{} },
		func(n *v1alpha1.NodeTemplateSpec) { n.Spec.Taints = []corev1.Taint{} },
		func(n *v1alpha1.NodeTemplateSpec) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} },
		func(n *v1alpha1.NodeTemplateSpec) { n.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v"}} },
		func(n *v1alpha1.NodeTemplateSpec) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: "NoExecute"}} },
		func(n *v1alpha1.NodeTemplateSpec) { n.Spec.Taints = []corev1.Taint{{Key: "k", TimeAdded: &when}} },
		func(n *v1alpha1.NodeTemplateSpec) { n.Spec.Taints = []corev1.Taint{{Key: "k"}, {Key: "l"}} },
	}
	for i, bend := range bends {
		for j, other := range bends {
			set, m := newSet(1), newMachine("m", v1alpha1.MachineRunning)
			bend(&set.Spec.Template.Spec.NodeTemplateSpec)
			other(&m.Spec.NodeTemplateSpec)
			_, changed := syncOf(set, m)
			same := equality.Semantic.DeepEqual(set.Spec.Template.Spec.NodeTemplateSpec, m.Spec.NodeTemplateSpec)
			require.Equal(t, !same, changed, "%d %d", i, j)
		}
	}
}

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
			require.Equal(t, *template, machineOf(sync).Spec.NodeTemplateSpec)

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

// TestSync_EveryConfigurationField_ReachesEveryPhase asserts that each field of the configuration
// reaches a machine in each phase, also one that a new version of the API adds: a drain, a
// preservation and a recovery read them after the machine has failed or is being deleted.
func TestSync_EveryConfigurationField_ReachesEveryPhase(t *testing.T) {
	of := reflect.TypeFor[v1alpha1.MachineConfiguration]()
	for _, phase := range phases {
		for i := range of.NumField() {
			set := newSet(1)
			set.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{}
			reflect.ValueOf(set.Spec.Template.Spec.MachineConfiguration).Elem().Field(i).Set(something(t, of.Field(i).Type))
			m := newMachine("m", phase)
			m.DeletionTimestamp = &metav1.Time{Time: now}
			sync, changed := syncOf(set, m)
			require.True(t, changed, "%s in phase %q", of.Field(i).Name, phase)
			require.Equal(t, set.Spec.Template.Spec.MachineConfiguration, machineOf(sync).Spec.MachineConfiguration)
		}
	}
}

// TestSync_Class_OnlyAfterAnUpdateInPlace asserts by which evidence a machine gets the name of the
// class of its set.
func TestSync_Class_OnlyAfterAnUpdateInPlace(t *testing.T) {
	condition := func(kind corev1.NodeConditionType, reason string) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: reason}}
	}
	updated := condition(v1alpha1.NodeInPlaceUpdate, v1alpha1.UpdateSuccessful)
	underWay := condition(v1alpha1.NodeInPlaceUpdate, v1alpha1.ReadyForUpdate)
	ready := condition(corev1.NodeReady, v1alpha1.UpdateSuccessful)
	want := v1alpha1.ClassSpec{APIGroup: "machine.sapcloud.io", Kind: v1alpha1.MachineClassKind, Name: "new"}
	old := v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "old"}
	for name, c := range map[string]struct {
		owner      string // its kind
		conditions []corev1.NodeCondition
		class      v1alpha1.ClassSpec
		want       *v1alpha1.ClassSpec
	}{
		"updated in place, old class":                 {"MachineDeployment", append(ready, updated...), old, &want},
		"updated in place, new class":                 {"MachineDeployment", updated, want, nil},
		"old class, and the next update is under way": {"MachineDeployment", underWay, old, &want},
		"never updated":                               {"MachineDeployment", ready, old, nil},
		"set alone, whose template a user edited":     {"", updated, old, nil},
		"set of another owner":                        {"Pool", updated, old, nil},
		"never updated, other kind: only the kind":    {"MachineDeployment", nil, v1alpha1.ClassSpec{Kind: "Old", Name: "old"}, &old},
	} {
		t.Run(name, func(t *testing.T) {
			set, m := newSet(1), newMachine("m", v1alpha1.MachineRunning)
			set.Spec.Template.Spec.Class = want
			if c.owner != "" {
				set.OwnerReferences = []metav1.OwnerReference{{Kind: c.owner, Name: "d", UID: "d", Controller: ptr.To(true)}}
			}
			m.Status.Conditions, m.Spec.Class = c.conditions, c.class
			sync, changed := syncOf(set, m)
			require.Equal(t, c.want != nil, changed)
			if changed {
				require.Equal(t, *c.want, machineOf(sync).Spec.Class)
				_, again := syncOf(set, machineOf(sync))
				require.False(t, again)
			}
		})
	}
}

func TestRetryNow_Set_PassesItOnToTheMachinesThatWait(t *testing.T) {
	waits := newMachine("waits", v1alpha1.MachineCrashLoopBackOff)
	waits.Status.Conditions = append(waits.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.MachineWaiting, Status: corev1.ConditionTrue})
	in := observed(2, newMachine("runs", v1alpha1.MachineRunning), waits)
	in.Set.Finalizers = []string{v1alpha1.MCMFinalizerName}
	in.Set.Annotations = map[string]string{v1alpha1.RetryNowAnnotation: "x"}
	actions := machineset.Decide(in, machineset.Policy{}, now).Actions
	require.Len(t, actions, 2)
	require.Equal(t, "update machine waits: retry now", actions[0].String())
	require.Equal(t, "x", machineOf(actions[0].(machinist.Update)).Annotations[v1alpha1.RetryNowAnnotation])
	in.Set = actions[1].(machinist.Update).Object.(*v1alpha1.MachineSet)
	require.NotContains(t, in.Set.Annotations, v1alpha1.RetryNowAnnotation)
	require.Empty(t, machineset.Decide(in, machineset.Policy{}, now).Actions)
}

func TestEvent_FieldOfAMachinePutBack_NamesTheObjectToChange(t *testing.T) {
	in := observed(1, newMachine("m", v1alpha1.MachineRunning))
	in.Set.Generation, in.Set.Status.ObservedGeneration = 2, 2
	in.Machines[0].Spec.NodeTemplateSpec.Labels = map[string]string{"by": "hand"}
	u := machineset.Decide(in, machineset.Policy{}, now).Actions[0].(machinist.Update)
	e := machineset.Event(in.Set, u, "", nil)
	require.EqualValues(t, "FieldsPutBack", e.Reason)
	require.Contains(t, e.Message, "node template. To change machines, change the template of machineset "+in.Set.Name)

	moved := in.Machines[0].DeepCopy()
	moved.Status.Conditions = append(moved.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.NodeInPlaceUpdate, Status: corev1.ConditionTrue})
	owned := in.Set.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "d", UID: "d", Controller: ptr.To(true)}}
	require.Contains(t, machineset.Event(owned, u, "", nil).Message, "change the template of machinedeployment d")
	require.Zero(t, machineset.Event(owned, machinist.Update{Before: moved, Object: moved, Changes: u.Changes}, "", nil), "it came to the set by an update in place")

	require.Zero(t, machineset.Event(owned, u, "", apierrors.NewConflict(schema.GroupResource{}, "m", nil)), "it was not written")

	in.Set.Generation = 3
	require.Zero(t, machineset.Event(in.Set, u, "", nil), "the set has changed")
	require.Zero(t, machineset.Event(nil, machinist.Update{}, "", nil))
}
