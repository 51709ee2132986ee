// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestNewMachine_Template_IsCopied(t *testing.T) {
	set := newSet(1)
	set.Spec.Template.Annotations = map[string]string{"a": "b"}
	set.Spec.Template.Finalizers = []string{"f"}
	set.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"n": "1"}
	m, err := madeFor(set, "abcde")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(&v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name: "ms-abcde", Namespace: "ns", Labels: map[string]string{"app": "w"}, Annotations: map[string]string{"a": "b", v1alpha1.MachinePriority: "3"},
			Finalizers: []string{"f", v1alpha1.MCMFinalizerName}, OwnerReferences: []metav1.OwnerReference{machineset.OwnerSet(set).Reference()},
		},
		Spec: set.Spec.Template.Spec,
	}, m))
	require.True(t, *m.OwnerReferences[0].Controller)
	require.True(t, *m.OwnerReferences[0].BlockOwnerDeletion)

	before := set.DeepCopy()
	m.Labels["x"], m.Annotations["x"], m.Spec.NodeTemplateSpec.Labels["x"] = "y", "y", "y"
	m.Finalizers[0] = "x"
	require.Empty(t, cmp.Diff(before, set), "the machine shares something with its set")
}

func TestNewMachine_Any_HasFinalizerAndPriority(t *testing.T) {
	set := newSet(1)
	born, err := madeFor(set, "m")
	require.NoError(t, err)
	require.Equal(t, []string{v1alpha1.MCMFinalizerName}, born.Finalizers)
	require.Equal(t, "3", born.Annotations[v1alpha1.MachinePriority])
	require.NotEqual(t, machinist.Reason("New"), machine.Decide(machine.Observation{Machine: born}, machine.Policy{}, time.Time{}).Reason, "nothing is left to guard")

	set.Spec.Template.Finalizers = []string{v1alpha1.MCMFinalizerName}
	set.Spec.Template.Annotations = map[string]string{v1alpha1.MachinePriority: "1"}
	born, err = madeFor(set, "m")
	require.NoError(t, err)
	require.Equal(t, []string{v1alpha1.MCMFinalizerName}, born.Finalizers, "once is enough")
	require.Equal(t, "1", born.Annotations[v1alpha1.MachinePriority], "the template knows better")
}

func TestNewMachine_EffectiveCreationTimeout_IsKept(t *testing.T) {
	set := newSet(1)
	set.Annotations = map[string]string{v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout: "42m"}
	m, err := madeFor(set, "m")
	require.NoError(t, err)
	require.Equal(t, "42m", m.Annotations[v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout])
	require.Equal(t, 42*time.Minute, m.Spec.MachineCreationTimeout.Duration)
	require.Nil(t, set.Spec.Template.Spec.MachineConfiguration)
	_, changed := syncOf(set, m)
	require.False(t, changed)

	set.Annotations[v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout] = "soon"
	m, err = madeFor(set, "m")
	require.NoError(t, err)
	require.Equal(t, "soon", m.Annotations[v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout])
	require.Nil(t, m.Spec.MachineConfiguration)
}

func TestNewMachine_InvalidSet_Error(t *testing.T) {
	for name, bend := range map[string]func(*v1alpha1.MachineSet){
		"no name":                func(s *v1alpha1.MachineSet) { s.Name = "" },
		"no UID":                 func(s *v1alpha1.MachineSet) { s.UID = "" },
		"no labels":              func(s *v1alpha1.MachineSet) { s.Spec.Template.Labels = nil },
		"no selector":            func(s *v1alpha1.MachineSet) { s.Spec.Selector = nil },
		"selector does not fit":  func(s *v1alpha1.MachineSet) { s.Spec.Selector.MatchLabels["app"] = "other" },
		"name is no name at all": func(s *v1alpha1.MachineSet) { s.Name = "Not A Name" },
	} {
		set := newSet(1)
		bend(set)
		_, err := madeFor(set, "m")
		require.Error(t, err, name)
	}
	_, err := machineset.NewMachine(machinist.Create{}, "m")
	require.Error(t, err)
	for _, suffix := range []string{"", "A", "-a", "a.b", strings.Repeat("a", 40)} {
		_, err = madeFor(newSet(1), suffix)
		require.Error(t, err, suffix)
	}
}

func FuzzName(f *testing.F) {
	f.Add("ms", "abcde")
	f.Add(strings.Repeat("a.", 100), "1")
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, name, suffix string) {
		set := newSet(1)
		set.Name = name
		m, err := madeFor(set, suffix)
		if err != nil {
			return
		}
		got := m.Name
		require.LessOrEqual(t, len(got), 63)
		require.True(t, strings.HasSuffix(got, suffix))
		require.Empty(t, validation.IsDNS1123Subdomain(got))
	})
}

func TestSync_TemplateChanges_Table(t *testing.T) {
	set := newSet(1)
	set.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"n": "1"}
	set.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MaxEvictRetries: new(int32(3))}
	set.Spec.Template.Spec.Class.Name = "new"

	outdated := func(phase v1alpha1.MachinePhase) *v1alpha1.Machine {
		m := newMachine("m", phase)
		m.Spec.Class.Kind = "Old"
		return m
	}
	m := outdated(v1alpha1.MachineRunning)
	s, changed := syncOf(set, m)
	require.True(t, changed)
	require.Equal(t, "update machine m: node template; configuration; class", s.String())
	before := m.DeepCopy()
	next := machineOf(s)
	require.Empty(t, cmp.Diff(before, m))
	require.Equal(t, v1alpha1.MachineClassKind, next.Spec.Class.Kind)
	require.Equal(t, "c1", next.Spec.Class.Name, "the name of the class belongs to a roll-out")
	require.EqualValues(t, 3, *next.Spec.MaxEvictRetries)
	_, changed = syncOf(set, next)
	require.False(t, changed)
	*next.Spec.MaxEvictRetries, next.Spec.NodeTemplateSpec.Labels["n"] = 9, "9"
	require.EqualValues(t, 3, *set.Spec.Template.Spec.MaxEvictRetries, "it shares something with the set")

	for _, phase := range []v1alpha1.MachinePhase{v1alpha1.MachineFailed, v1alpha1.MachineTerminating} {
		s, changed = syncOf(set, outdated(phase))
		require.True(t, changed)
		require.Equal(t, []string{"configuration", "class"}, s.Changes)
		require.Empty(t, machineOf(s).Spec.NodeTemplateSpec)
		require.Equal(t, set.Spec.Template.Spec.MachineConfiguration, machineOf(s).Spec.MachineConfiguration)
		require.Equal(t, v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "c1"}, machineOf(s).Spec.Class)
	}

	// An override that is withdrawn from the template leaves the machine, and one
	// that overrides nothing is none.
	m.Spec.Class.Kind, m.Spec.NodeTemplateSpec = v1alpha1.MachineClassKind, set.Spec.Template.Spec.NodeTemplateSpec
	m.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{}
	set.Spec.Template.Spec.MachineConfiguration = nil
	_, changed = syncOf(set, m)
	require.False(t, changed)
	m.Spec.MaxEvictRetries = new(int32(3))
	s, changed = syncOf(set, m)
	require.True(t, changed)
	require.Nil(t, machineOf(s).Spec.MachineConfiguration)
}

// TestSync_Preservation_OneUpdateWithTheTemplate asserts that the preserve annotation and the template
// are one write.
func TestSync_Preservation_OneUpdateWithTheTemplate(t *testing.T) {
	in := observed(1, newMachine("m", v1alpha1.MachineFailed))
	in.Set.Spec.AutoPreserveFailedMachineMax = 1
	in.Set.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MaxEvictRetries: new(int32(3))}
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

// TestSync_WriteFails_IsDecidedAgain asserts that a machine that could not be written is written by the next
// decision: what is decided changes nothing that the next one sees.
func TestSync_WriteFails_IsDecidedAgain(t *testing.T) {
	w := &world{machineset.Observation{Set: newSet(1), Complete: true}}
	w.add("m", v1alpha1.MachineRunning)
	w.Set.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MaxEvictRetries: new(int32(3))}
	for range 3 {
		actions := machineset.Decide(w.Observation, machineset.Policy{}, now).Actions
		require.Len(t, actions, 1)
		require.Equal(t, "update machine m: configuration", actions[0].String())
		require.Nil(t, w.Machines[0].Spec.MachineConfiguration)
	}
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
		func(n *v1alpha1.NodeTemplateSpec) { n.Annotations = map[string]string{"a": "1"} },
		func(n *v1alpha1.NodeTemplateSpec) { n.Name = "x" },
		func(n *v1alpha1.NodeTemplateSpec) { n.Finalizers = []string{} },
		func(n *v1alpha1.NodeTemplateSpec) { n.Spec.Unschedulable = true },
		func(n *v1alpha1.NodeTemplateSpec) { n.Spec.PodCIDR = "10.0.0.0/8" },
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

func TestValidate_EachError_Table(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(*v1alpha1.MachineSet)
		want []string
	}{
		"a valid set": {func(*v1alpha1.MachineSet) {}, nil},
		"negative replicas": {
			func(s *v1alpha1.MachineSet) { s.Spec.Replicas = -1 },
			[]string{"spec.replicas: Required value: Replicas has to be a whole number"},
		},
		"no selector": {
			func(s *v1alpha1.MachineSet) { s.Spec.Selector = nil },
			[]string{"spec.selector: Required value: Selector must not be empty"},
		},
		"an empty selector": {
			func(s *v1alpha1.MachineSet) { s.Spec.Selector.MatchLabels = map[string]string{} },
			[]string{"spec.selector: Required value: Selector must not be empty"},
		},
		"labels that do not match": {
			func(s *v1alpha1.MachineSet) { s.Spec.Template.Labels = nil },
			[]string{"spec.selector.matchLabels: Required value: is not matching with spec.template.metadata.labels"},
		},
		"expressions that do not match": {
			func(s *v1alpha1.MachineSet) {
				s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: metav1.LabelSelectorOpExists}}
			},
			[]string{`spec.selector: Invalid value: "app=w,x": does not match spec.template.metadata.labels`},
		},
		"no class": {
			func(s *v1alpha1.MachineSet) { s.Spec.Template.Spec.Class = v1alpha1.ClassSpec{} },
			[]string{"spec.template.spec.class.kind: Required value: Kind is required", "spec.template.spec.class.name: Required value: Name is required"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(1)
			c.bend(set)
			var got []string
			for _, err := range machineset.Validate(set) {
				got = append(got, err.Error())
			}
			require.Equal(t, c.want, got)
		})
	}
	require.Len(t, machineset.Validate(nil), 1)
	broken := newSet(1)
	broken.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}
	require.Len(t, machineset.Validate(broken), 1)
}

func TestDecide_FinalizersOfOthers_Stay(t *testing.T) {
	set := newSet(0)
	set.Finalizers, set.ResourceVersion = []string{"z", "a"}, "5"
	update := machineset.Decide(machineset.Observation{Set: set}, machineset.Policy{}, now).Actions[0].(machinist.Update)
	next := update.Object.(*v1alpha1.MachineSet)
	require.Equal(t, []string{"z", "a", v1alpha1.MCMFinalizerName}, next.Finalizers)
	require.True(t, update.Unchanged)
	require.Equal(t, "5", next.ResourceVersion)
	require.Same(t, set, update.Before)
	require.Equal(t, []string{"z", "a"}, set.Finalizers)

	set.Finalizers, set.DeletionTimestamp = next.Finalizers, deletedNow()
	update = machineset.Decide(machineset.Observation{Set: set, Complete: true, Proven: true}, machineset.Policy{}, now).Actions[0].(machinist.Update)
	require.Equal(t, []string{"z", "a"}, update.Object.(*v1alpha1.MachineSet).Finalizers)
	require.True(t, update.Unchanged)
	require.Len(t, set.Finalizers, 3)
}

func TestActions_Response_HasEvent(t *testing.T) {
	boom := errors.New("boom")
	require.Equal(t, "Normal SuccessfulCreate Created Machine: m", machineset.ResponseEvent(machinist.Create{}, "m", nil).String())
	require.Equal(t, "Warning FailedCreate Error creating: boom", machineset.ResponseEvent(machinist.Create{}, "m", boom).String())
	require.Equal(t, "Normal SuccessfulDelete Deleted machine: m", machineset.ResponseEvent(machinist.Delete{}, "m", nil).String())
	require.Equal(t, "Warning FailedDelete Error deleting: boom", machineset.ResponseEvent(machinist.Delete{}, "m", boom).String())
}

func TestStatus_Failure_ReasonAndRenewedMessage(t *testing.T) {
	in := machineset.Observation{Set: newSet(0), Machines: []*v1alpha1.Machine{newMachine("a", "Running")}, Complete: true, Proven: true}
	in.Set.Generation = 7
	s, changed := machineset.Status(in, machineset.Failure{Create: errors.New("quota 1"), Delete: errors.New("no")}, now)
	require.Equal(t, v1alpha1.FailedCreate, s.Conditions[0].Reason)
	require.Equal(t, "quota 1", s.Conditions[0].Message)
	require.EqualValues(t, 7, s.ObservedGeneration)
	require.True(t, changed)

	// Not at once, so that request numbers in errors do not make a loop of it.
	in.Set.Status = s
	s, changed = machineset.Status(in, machineset.Failure{Create: errors.New("quota 2")}, now.Add(time.Second))
	require.Equal(t, "quota 1", s.Conditions[0].Message)
	require.False(t, changed)
	s, _ = machineset.Status(in, machineset.Failure{Create: errors.New("quota 2")}, now.Add(time.Minute))
	require.Equal(t, "quota 2", s.Conditions[0].Message)
	require.Equal(t, now, s.Conditions[0].LastTransitionTime.Time)

	s, _ = machineset.Status(in, machineset.Failure{Delete: errors.New("no")}, now.Add(time.Second))
	require.Equal(t, v1alpha1.FailedDelete, s.Conditions[0].Reason)
	require.Equal(t, "no", s.Conditions[0].Message)
	s, _ = machineset.Status(in, machineset.Failure{}, now.Add(time.Second))
	require.Empty(t, s.Conditions)

	in.Set.Status.Conditions[0].Status = v1alpha1.ConditionFalse
	s, _ = machineset.Status(in, machineset.Failure{Create: errors.New("quota 3")}, now.Add(time.Second))
	require.Equal(t, v1alpha1.ConditionTrue, s.Conditions[0].Status)
	require.Equal(t, "quota 3", s.Conditions[0].Message)
}

func TestStatus_Incomplete_KeepsCounts(t *testing.T) {
	in := machineset.Observation{Set: newSet(3)}
	in.Set.Status.Replicas, in.Set.Generation = 3, 2
	_, changed := machineset.Status(in, machineset.Failure{}, now)
	require.False(t, changed)
	s, changed := machineset.Status(in, machineset.Failure{Create: errors.New("quota")}, now)
	require.True(t, changed)
	require.EqualValues(t, 3, s.Replicas)
	require.Zero(t, s.ObservedGeneration)
	require.Len(t, s.Conditions, 1)
	s, changed = machineset.Status(machineset.Observation{}, machineset.Failure{}, now)
	require.Equal(t, v1alpha1.MachineSetStatus{}, s)
	require.False(t, changed)
}

// TestStatus_FieldOfTheStoredStatusDiffers_IsWritten asserts that every field counts, except the
// time of the last operation.
func TestStatus_FieldOfTheStoredStatusDiffers_IsWritten(t *testing.T) {
	in := observed(1, newMachine("a", v1alpha1.MachineRunning))
	in.Set.Status, _ = machineset.Status(in, machineset.Failure{}, now)
	_, changed := machineset.Status(in, machineset.Failure{}, now.Add(time.Hour))
	require.False(t, changed)
	for name, change := range map[string]func(*v1alpha1.MachineSetStatus){
		"replicas":                       func(s *v1alpha1.MachineSetStatus) { s.Replicas++ },
		"fullyLabeledReplicas":           func(s *v1alpha1.MachineSetStatus) { s.FullyLabeledReplicas++ },
		"readyReplicas":                  func(s *v1alpha1.MachineSetStatus) { s.ReadyReplicas++ },
		"availableReplicas":              func(s *v1alpha1.MachineSetStatus) { s.AvailableReplicas++ },
		"preservedFailedReplicas":        func(s *v1alpha1.MachineSetStatus) { s.PreservedFailedReplicas++ },
		"autoPreserveFailedMachineCount": func(s *v1alpha1.MachineSetStatus) { s.AutoPreserveFailedMachineCount++ },
		"observedGeneration":             func(s *v1alpha1.MachineSetStatus) { s.ObservedGeneration++ },
		"failedMachines":                 func(s *v1alpha1.MachineSetStatus) { s.FailedMachines = &[]v1alpha1.MachineSummary{{Name: "m"}} },
		"conditions": func(s *v1alpha1.MachineSetStatus) {
			s.Conditions = []v1alpha1.MachineSetCondition{{Type: v1alpha1.MachineSetReplicaFailure}}
		},
	} {
		in := in
		in.Set = in.Set.DeepCopy()
		change(&in.Set.Status)
		_, changed := machineset.Status(in, machineset.Failure{}, now)
		require.True(t, changed, name)
	}
}

func TestSuffix_AnyRandom_IsValid(t *testing.T) {
	for _, r := range []float64{0, 0.5, 0.999, 1, -1, 1e300, math.NaN(), math.Inf(1)} {
		suffix := machineset.Suffix(func() float64 { return r })
		require.Len(t, suffix, 5)
		_, err := madeFor(newSet(1), suffix)
		require.NoError(t, err, suffix)
	}
	require.Equal(t, machineset.Suffix(func() float64 { return 0 }), machineset.Suffix(nil))
	seen, random := map[string]bool{}, rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		seen[machineset.Suffix(random.Float64)] = true
	}
	require.Greater(t, len(seen), 900)
}
