// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"encoding/json"
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

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestAMachineIsMadeFromTheTemplate(t *testing.T) {
	set := newSet(1)
	set.Spec.Template.Annotations = map[string]string{"a": "b"}
	set.Spec.Template.Finalizers = []string{"f"}
	set.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"n": "1"}
	m, err := machineset.NewMachine(set, "ms-abcde")
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

func TestAMachineIsBornWithItsFinalizerAndItsPriority(t *testing.T) {
	set := newSet(1)
	born, err := machineset.NewMachine(set, "m")
	require.NoError(t, err)
	require.Equal(t, []string{v1alpha1.MCMFinalizerName}, born.Finalizers)
	require.Equal(t, "3", born.Annotations[v1alpha1.MachinePriority])
	require.NotEqual(t, machine.ReasonNew, machine.Decide(machine.Observation{Machine: born}, machine.Policy{}, time.Time{}).Reason, "nothing is left to guard")

	set.Spec.Template.Finalizers = []string{v1alpha1.MCMFinalizerName}
	set.Spec.Template.Annotations = map[string]string{v1alpha1.MachinePriority: "1"}
	born, err = machineset.NewMachine(set, "m")
	require.NoError(t, err)
	require.Equal(t, []string{v1alpha1.MCMFinalizerName}, born.Finalizers, "once is enough")
	require.Equal(t, "1", born.Annotations[v1alpha1.MachinePriority], "the template knows better")
}

func TestTheEffectiveCreationTimeoutIsPassedOnAndKept(t *testing.T) {
	set := newSet(1)
	set.Annotations = map[string]string{v1alpha1.EffectiveCreationTimeout: "42m"}
	m, err := machineset.NewMachine(set, "m")
	require.NoError(t, err)
	require.Equal(t, "42m", m.Annotations[v1alpha1.EffectiveCreationTimeout])
	require.Equal(t, 42*time.Minute, m.Spec.MachineCreationTimeout.Duration)
	require.Nil(t, set.Spec.Template.Spec.MachineConfiguration)
	_, changed := machineset.SyncFromTemplate(set, m)
	require.False(t, changed)

	set.Annotations[v1alpha1.EffectiveCreationTimeout] = "soon"
	m, err = machineset.NewMachine(set, "m")
	require.NoError(t, err)
	require.Equal(t, "soon", m.Annotations[v1alpha1.EffectiveCreationTimeout])
	require.Nil(t, m.Spec.MachineConfiguration)
}

func TestAMachineThatItsSetWouldNotSeeIsNotMade(t *testing.T) {
	_, err := machineset.NewMachine(nil, "m")
	require.ErrorIs(t, err, machineset.ErrNoSet)
	for want, bend := range map[error]func(*v1alpha1.MachineSet){
		machineset.ErrNoSet:       func(s *v1alpha1.MachineSet) { s.Name = "" },
		machineset.ErrNoUID:       func(s *v1alpha1.MachineSet) { s.UID = "" },
		machineset.ErrNoLabels:    func(s *v1alpha1.MachineSet) { s.Spec.Template.Labels = nil },
		machineset.ErrNotSelected: func(s *v1alpha1.MachineSet) { s.Spec.Selector = nil },
	} {
		set := newSet(1)
		bend(set)
		_, err := machineset.NewMachine(set, "m")
		require.ErrorIs(t, err, want)
	}
	set := newSet(1)
	set.Spec.Selector.MatchLabels["app"] = "other"
	_, err = machineset.NewMachine(set, "m")
	require.ErrorIs(t, err, machineset.ErrNotSelected)
	_, err = machineset.NewMachine(newSet(1), "Not A Name")
	require.ErrorIs(t, err, machineset.ErrBadName)
}

func TestNamesEndInTheirSuffixAndStayUsable(t *testing.T) {
	set := newSet(1)
	name, err := machineset.Name(set, "abcde")
	require.NoError(t, err)
	require.Equal(t, "ms-abcde", name)
	set.Name = strings.Repeat("x", 200)
	name, err = machineset.Name(set, "abcde")
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("x", 58)+"abcde", name)
	_, err = machineset.Name(nil, "abcde")
	require.ErrorIs(t, err, machineset.ErrNoSet)
	for _, suffix := range []string{"", "A", "-a", "a.b", strings.Repeat("a", 40)} {
		_, err = machineset.Name(set, suffix)
		require.ErrorIs(t, err, machineset.ErrBadName, suffix)
	}
}

func FuzzName(f *testing.F) {
	f.Add("ms", "abcde")
	f.Add(strings.Repeat("a.", 100), "1")
	f.Add("", "x")
	f.Fuzz(func(t *testing.T, name, suffix string) {
		set := newSet(1)
		set.Name = name
		got, err := machineset.Name(set, suffix)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(got), 63)
		require.True(t, strings.HasSuffix(got, suffix))
		require.Empty(t, validation.IsDNS1123Subdomain(got))
		_, err = machineset.NewMachine(set, got)
		require.NoError(t, err)
	})
}

func TestTemplateChangesReachTheMachinesTheyAreFor(t *testing.T) {
	set := newSet(1)
	set.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{"n": "1"}
	set.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MaxEvictRetries: new(int32(3))}
	set.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: "New", Name: "new"}

	m := newMachine("m", v1alpha1.MachineRunning)
	s, changed := machineset.SyncFromTemplate(set, m)
	require.True(t, changed)
	require.Equal(t, "update node template, configuration, class kind of m (TemplateChanged)", s.String())
	before := m.DeepCopy()
	next := s.Apply(m)
	require.Empty(t, cmp.Diff(before, m))
	require.Equal(t, "New", next.Spec.Class.Kind)
	require.Equal(t, "c1", next.Spec.Class.Name, "the name of the class belongs to a roll-out")
	require.EqualValues(t, 3, *next.Spec.MaxEvictRetries)
	_, changed = machineset.SyncFromTemplate(set, next)
	require.False(t, changed)
	*next.Spec.MaxEvictRetries, next.Spec.NodeTemplateSpec.Labels["n"] = 9, "9"
	require.EqualValues(t, 3, *set.Spec.Template.Spec.MaxEvictRetries, "it shares something with the set")
	require.EqualValues(t, 3, *s.Configuration.MaxEvictRetries)

	for _, phase := range []v1alpha1.MachinePhase{v1alpha1.MachineFailed, v1alpha1.MachineTerminating} {
		s, changed = machineset.SyncFromTemplate(set, newMachine("m", phase))
		require.True(t, changed)
		require.Nil(t, s.NodeTemplate)
		require.Nil(t, s.Configuration)
		require.NotNil(t, s.ClassKind)
	}

	// An override that is withdrawn from the template leaves the machine, and one
	// that overrides nothing is none.
	m.Spec.Class.Kind, m.Spec.NodeTemplateSpec = "New", set.Spec.Template.Spec.NodeTemplateSpec
	m.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{}
	set.Spec.Template.Spec.MachineConfiguration = nil
	_, changed = machineset.SyncFromTemplate(set, m)
	require.False(t, changed)
	m.Spec.MaxEvictRetries = new(int32(3))
	s, changed = machineset.SyncFromTemplate(set, m)
	require.True(t, changed)
	require.Nil(t, s.Apply(m).Spec.MachineConfiguration)

	kept := machineset.Sync{Name: "m", UID: "uid-m", Preserve: new("auto-preserved")}.Apply(&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "uid-m"}})
	require.Equal(t, "auto-preserved", kept.Annotations[v1alpha1.PreserveMachineAnnotationKey])
	let := machineset.Sync{Name: "m", UID: "uid-m", Preserve: new("")}.Apply(kept)
	require.NotContains(t, let.Annotations, v1alpha1.PreserveMachineAnnotationKey)
	require.Len(t, kept.Annotations, 1)

	require.Nil(t, s.Apply(nil))
	m.UID = "uid-new"
	require.Nil(t, s.Apply(m), "another machine of that name")
	_, changed = machineset.SyncFromTemplate(nil, m)
	require.False(t, changed)
	_, changed = machineset.SyncFromTemplate(set, nil)
	require.False(t, changed)
}

// The comparison without reflection is the comparison with it.
func TestNodeTemplatesAreTheSameIfNothingOfThemDiffers(t *testing.T) {
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
		func(n *v1alpha1.NodeTemplateSpec) { n.Spec.Taints = []corev1.Taint{{Key: "k", TimeAdded: &when}} },
		func(n *v1alpha1.NodeTemplateSpec) { n.Spec.Taints = []corev1.Taint{{Key: "k"}, {Key: "l"}} },
	}
	for i, bend := range bends {
		for j, other := range bends {
			set, m := newSet(1), newMachine("m", v1alpha1.MachineRunning)
			bend(&set.Spec.Template.Spec.NodeTemplateSpec)
			other(&m.Spec.NodeTemplateSpec)
			_, changed := machineset.SyncFromTemplate(set, m)
			same := equality.Semantic.DeepEqual(set.Spec.Template.Spec.NodeTemplateSpec, m.Spec.NodeTemplateSpec)
			require.Equal(t, !same, changed, "%d %d", i, j)
		}
	}
}

func TestValidateNamesEachFault(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(*v1alpha1.MachineSet)
		want []string
	}{
		"a valid set": {func(*v1alpha1.MachineSet) {}, nil},
		"negative replicas": {
			func(s *v1alpha1.MachineSet) { s.Spec.Replicas = -1 },
			[]string{"spec.replicas: Required value: Replicas has to be a whole number"},
		},
		"no selector (DS-21)": {
			func(s *v1alpha1.MachineSet) { s.Spec.Selector = nil },
			[]string{"spec.selector: Required value: Selector must not be empty"},
		},
		"an empty selector (DS-33)": {
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

func TestFinalizerEditsKeepTheFinalizersOfOthers(t *testing.T) {
	set := newSet(1)
	set.Finalizers, set.ResourceVersion = []string{"z", "a"}, "5"
	edit, ok := machineset.WithFinalizer(set)
	require.True(t, ok)
	require.Equal(t, []string{"z", "a", v1alpha1.MCMFinalizerName}, edit.Finalizers)
	patch, err := edit.Patch()
	require.NoError(t, err)
	var decoded v1alpha1.MachineSet
	require.NoError(t, json.Unmarshal(patch, &decoded))
	require.Equal(t, edit.Finalizers, decoded.Finalizers)
	require.Equal(t, "5", decoded.ResourceVersion)
	require.Equal(t, []string{"z", "a"}, set.Finalizers)

	set.Finalizers = edit.Finalizers
	_, ok = machineset.WithFinalizer(set)
	require.False(t, ok)
	edit, ok = machineset.WithoutFinalizer(set)
	require.True(t, ok)
	require.Equal(t, []string{"z", "a"}, edit.Finalizers)
	require.Len(t, set.Finalizers, 3)

	set.Finalizers, set.DeletionTimestamp = nil, deletedNow()
	_, ok = machineset.WithFinalizer(set)
	require.False(t, ok, "the API server would refuse it")
	_, ok = machineset.WithoutFinalizer(set)
	require.False(t, ok)
	_, ok = machineset.WithFinalizer((*v1alpha1.MachineSet)(nil))
	require.False(t, ok)

	patch, err = machineset.FinalizersEdit{}.Patch()
	require.NoError(t, err)
	require.JSONEq(t, `{"metadata":{"finalizers":[]}}`, string(patch))
}

func TestTheStatusOfADeletedMachineIsWrittenOnceAndNotOverTheMachineController(t *testing.T) {
	m := newMachine("m", v1alpha1.MachineRunning)
	m.Status.LastKnownState = "state"
	m.Status.CurrentStatus.PreserveExpiryTime = expiry(new(60))
	s, changed := machineset.TerminatingStatus(m.Status, now)
	require.True(t, changed)
	require.Equal(t, "state", s.LastKnownState)
	require.Equal(t, v1alpha1.CurrentStatus{Phase: "Terminating", LastUpdateTime: metav1.NewTime(now)}, s.CurrentStatus)
	require.Equal(t, v1alpha1.MachineOperationDelete, s.LastOperation.Type)
	s.LastOperation.Description = v1alpha1.InitiateDrain
	again, changed := machineset.TerminatingStatus(s, now.Add(time.Hour))
	require.False(t, changed)
	require.Equal(t, s, again)
}

func TestDS25AFailureIsNamedForWhatFailedAndItsMessageIsRenewed(t *testing.T) {
	in := machineset.Observation{Set: newSet(0), Machines: []*v1alpha1.Machine{newMachine("a", "Running")}, Complete: true}
	in.Set.Generation = 7
	s := machineset.Status(in, machineset.Failure{Create: errors.New("quota 1"), Delete: errors.New("no")}, now)
	require.Equal(t, v1alpha1.FailedCreate, s.Conditions[0].Reason)
	require.Equal(t, "quota 1", s.Conditions[0].Message)
	require.EqualValues(t, 7, s.ObservedGeneration)
	require.True(t, machineset.StatusChanged(in.Set.Status, s))

	// Not at once, so that request numbers in errors do not make a loop of it.
	in.Set.Status = s
	s = machineset.Status(in, machineset.Failure{Create: errors.New("quota 2")}, now.Add(time.Second))
	require.Equal(t, "quota 1", s.Conditions[0].Message)
	require.False(t, machineset.StatusChanged(in.Set.Status, s))
	s = machineset.Status(in, machineset.Failure{Create: errors.New("quota 2")}, now.Add(machineset.MessageRefresh))
	require.Equal(t, "quota 2", s.Conditions[0].Message)
	require.Equal(t, now, s.Conditions[0].LastTransitionTime.Time)

	s = machineset.Status(in, machineset.Failure{Delete: errors.New("no")}, now.Add(time.Second))
	require.Equal(t, v1alpha1.FailedDelete, s.Conditions[0].Reason)
	require.Equal(t, "no", s.Conditions[0].Message)
	s = machineset.Status(in, machineset.Failure{}, now.Add(time.Second))
	require.Empty(t, s.Conditions)

	in.Set.Status.Conditions[0].Status = v1alpha1.ConditionFalse
	s = machineset.Status(in, machineset.Failure{Create: errors.New("quota 3")}, now.Add(time.Second))
	require.Equal(t, v1alpha1.ConditionTrue, s.Conditions[0].Status)
	require.Equal(t, "quota 3", s.Conditions[0].Message)
}

func TestAnIncompleteViewDoesNotChangeTheCounts(t *testing.T) {
	in := machineset.Observation{Set: newSet(3)}
	in.Set.Status.Replicas, in.Set.Generation = 3, 2
	s := machineset.Status(in, machineset.Failure{}, now)
	require.False(t, machineset.StatusChanged(in.Set.Status, s))
	s = machineset.Status(in, machineset.Failure{Create: errors.New("quota")}, now)
	require.EqualValues(t, 3, s.Replicas)
	require.Zero(t, s.ObservedGeneration)
	require.Len(t, s.Conditions, 1)
	require.Equal(t, v1alpha1.MachineSetStatus{}, machineset.Status(machineset.Observation{}, machineset.Failure{}, now))
}

// DS-40: every field counts, except the time of the last operation.
func TestStatusChangedSeesEveryField(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.MachineSetStatus){
		"replicas":                       func(s *v1alpha1.MachineSetStatus) { s.Replicas++ },
		"fullyLabeledReplicas":           func(s *v1alpha1.MachineSetStatus) { s.FullyLabeledReplicas++ },
		"readyReplicas":                  func(s *v1alpha1.MachineSetStatus) { s.ReadyReplicas++ },
		"availableReplicas":              func(s *v1alpha1.MachineSetStatus) { s.AvailableReplicas++ },
		"preservedFailedReplicas":        func(s *v1alpha1.MachineSetStatus) { s.PreservedFailedReplicas++ },
		"autoPreserveFailedMachineCount": func(s *v1alpha1.MachineSetStatus) { s.AutoPreserveFailedMachineCount++ },
		"observedGeneration":             func(s *v1alpha1.MachineSetStatus) { s.ObservedGeneration++ },
		"failedMachines":                 func(s *v1alpha1.MachineSetStatus) { s.FailedMachines = &[]v1alpha1.MachineSummary{{Name: "m"}} },
		"conditions":                     func(s *v1alpha1.MachineSetStatus) { s.Conditions = []v1alpha1.MachineSetCondition{{Type: "X"}} },
	} {
		t.Run(name, func(t *testing.T) {
			var old, next v1alpha1.MachineSetStatus
			next.LastOperation.LastUpdateTime = metav1.NewTime(now)
			require.False(t, machineset.StatusChanged(old, next))
			change(&next)
			require.True(t, machineset.StatusChanged(old, next))
		})
	}
}

func TestASuffixIsFitForANameWhateverIsRandom(t *testing.T) {
	for _, r := range []float64{0, 0.5, 0.999, 1, -1, 1e300, math.NaN(), math.Inf(1)} {
		suffix := machineset.Suffix(func() float64 { return r })
		require.Len(t, suffix, 5)
		_, err := machineset.Name(newSet(1), suffix)
		require.NoError(t, err, suffix)
	}
	require.Equal(t, machineset.Suffix(func() float64 { return 0 }), machineset.Suffix(nil))
	seen, random := map[string]bool{}, rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		seen[machineset.Suffix(random.Float64)] = true
	}
	require.Greater(t, len(seen), 900)
}
