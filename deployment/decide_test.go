// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// rolling returns a valid deployment.
func rolling(replicas, surge, unavailable int32) *v1alpha1.MachineDeployment {
	d := newWorld(nil, 0).d
	d.Finalizers = []string{v1alpha1.MCMFinalizerName}
	d.Spec.Replicas = replicas
	d.Spec.Strategy = strategy("RollingUpdate", "", new(intstr.FromInt32(surge)), new(intstr.FromInt32(unavailable)))
	return d
}

// set returns a set of a class that did what it was told.
func set(d *v1alpha1.MachineDeployment, class string, spec, replicas, available int32) *v1alpha1.MachineSet {
	d = d.DeepCopy()
	d.Spec.Template.Spec.Class.Name = class
	s := deployment.NewSet(d, nil, spec)
	s.Name, s.UID, s.Generation = "md-"+class, types.UID(class), 1
	s.CreationTimestamp = metav1.NewTime(base)
	s.Status = v1alpha1.MachineSetStatus{Replicas: replicas, AvailableReplicas: available, ReadyReplicas: available, ObservedGeneration: 1}
	return s
}

func decide(d *v1alpha1.MachineDeployment, sets ...*v1alpha1.MachineSet) deployment.Decision {
	return deployment.Decide(deployment.Observation{Deployment: d, Sets: sets, Complete: true}, deployment.Policy{}, base)
}

func lines(dec deployment.Decision) []string {
	var out []string
	for _, a := range dec.Actions {
		if _, ok := a.(deployment.Annotate); !ok {
			out = append(out, a.String())
		}
	}
	return out
}

func reasons(dec deployment.Decision) []deployment.Reason {
	var out []deployment.Reason
	for _, h := range dec.Holds {
		out = append(out, h.Reason)
	}
	return out
}

func TestNothingIsDoneWithoutACompleteView(t *testing.T) {
	dec := deployment.Decide(deployment.Observation{}, deployment.Policy{}, base)
	require.Empty(t, dec.Actions)
	require.False(t, dec.WriteStatus)
	require.Equal(t, deployment.ReasonNothingSeen, dec.Reason)

	d := rolling(3, 1, 0)
	d.DeletionTimestamp = new(metav1.NewTime(base))
	for _, d := range []*v1alpha1.MachineDeployment{rolling(3, 1, 0), d, {}} {
		dec = deployment.Decide(deployment.Observation{Deployment: d}, deployment.Policy{}, base)
		require.Empty(t, dec.Actions)
		require.False(t, dec.WriteStatus)
		require.Equal(t, deployment.ReasonViewIncomplete, dec.Reason)
	}
}

func TestADeploymentThatIsNotFitIsHeld(t *testing.T) {
	tests := map[string]struct {
		change func(d *v1alpha1.MachineDeployment)
		want   deployment.Reason
	}{
		"no selector": {func(d *v1alpha1.MachineDeployment) { d.Spec.Selector = nil }, deployment.ReasonInvalid},
		"selector that cannot be read": {func(d *v1alpha1.MachineDeployment) {
			d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "near"}}
		}, deployment.ReasonInvalid},
		"no strategy":       {func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{} }, deployment.ReasonInvalid},
		"no bounds":         {func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy.RollingUpdate = nil }, deployment.ReasonInvalid},
		"no surge":          {func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy.RollingUpdate.MaxSurge = nil }, deployment.ReasonInvalid},
		"negative replicas": {func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = -1 }, deployment.ReasonInvalid},
		"selector is empty": {func(d *v1alpha1.MachineDeployment) { d.Spec.Selector = &metav1.LabelSelector{} }, deployment.ReasonSelectsNothing},
		"selector with an empty map": {func(d *v1alpha1.MachineDeployment) {
			d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{}}
		}, deployment.ReasonSelectsNothing},
		"in-place update": {func(d *v1alpha1.MachineDeployment) {
			d.Spec.Strategy = strategy("InPlaceUpdate", "Auto", new(intstr.FromInt32(1)), new(intstr.FromInt32(1)))
		}, deployment.ReasonNotSupportedYet},
		"roll-back": {func(d *v1alpha1.MachineDeployment) { d.Spec.RollbackTo = &v1alpha1.RollbackConfig{} }, deployment.ReasonNotSupportedYet},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := rolling(3, 1, 0)
			test.change(d)
			dec := decide(d, set(d, "c0", 3, 3, 3))
			require.Empty(t, dec.Actions)
			require.Equal(t, test.want, dec.Reason)
			require.Contains(t, reasons(dec), test.want)
		})
	}
}

func TestTheFinalizerComesFirst(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Finalizers = nil
	dec := decide(d)
	require.Equal(t, []deployment.Action{deployment.AddFinalizer{Finalizer: v1alpha1.MCMFinalizerName}}, dec.Actions)
	require.Equal(t, base.Add(30*time.Second), dec.NextCheck)
}

func TestDeletionTakesTheSetsAndThenTheFinalizer(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Spec.Selector = nil // also of what is not valid
	d.DeletionTimestamp = new(metav1.NewTime(base))
	a, b := set(rolling(3, 1, 0), "c0", 3, 3, 3), set(rolling(3, 1, 0), "c1", 0, 2, 0)
	b.DeletionTimestamp = new(metav1.NewTime(base))
	dec := decide(d, a, nil, b)
	require.Equal(t, []string{"delete md-c0: its deployment is being deleted"}, lines(dec))
	require.Equal(t, []deployment.Reason{deployment.ReasonSetDeleting}, reasons(dec))
	require.True(t, dec.WriteStatus)

	require.Equal(t, []deployment.Action{deployment.RemoveFinalizer{Finalizer: v1alpha1.MCMFinalizerName}}, decide(d).Actions)
	d.Finalizers = nil
	require.Empty(t, decide(d, a).Actions)
	require.Equal(t, deployment.ReasonDeleted, decide(d, a).Reason)
}

func TestOneStep(t *testing.T) {
	d := rolling(3, 1, 0)
	unreported := func(s *v1alpha1.MachineSet) *v1alpha1.MachineSet { s.Generation = 2; return s }
	deleted := func(s *v1alpha1.MachineSet) *v1alpha1.MachineSet {
		s.DeletionTimestamp = new(metav1.NewTime(base))
		return s
	}
	with := func(change func(d *v1alpha1.MachineDeployment)) *v1alpha1.MachineDeployment {
		d := d.DeepCopy()
		change(d)
		return d
	}
	paused := with(func(d *v1alpha1.MachineDeployment) { d.Spec.Paused, d.Spec.Replicas = true, 5 })
	frozen := with(func(d *v1alpha1.MachineDeployment) { d.Labels = map[string]string{"freeze": "True"} })
	four := with(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas = 4 })
	recreate := with(func(d *v1alpha1.MachineDeployment) { d.Spec.Strategy = strategy("Recreate", "", nil, nil) })
	tests := map[string]struct {
		d       *v1alpha1.MachineDeployment
		sets    []*v1alpha1.MachineSet
		actions []string
		holds   []deployment.Reason
	}{
		"machines that are asked for and not reported use up the surge": {
			d, []*v1alpha1.MachineSet{set(d, "c0", 3, 3, 3), set(d, "c1", 1, 0, 0)},
			nil, []deployment.Reason{deployment.ReasonSurgeUsedUp, deployment.ReasonMinimumAvailable},
		},
		"a set that has not reported holds growth and cuts": {
			d, []*v1alpha1.MachineSet{unreported(set(d, "c0", 2, 2, 2)), set(d, "c1", 1, 1, 1)},
			nil, []deployment.Reason{deployment.ReasonSetNotReported, deployment.ReasonSetNotReported},
		},
		"the new set does not grow before it has reported itself": {
			d, []*v1alpha1.MachineSet{set(d, "c0", 1, 1, 1), unreported(set(d, "c1", 1, 1, 1))},
			nil, []deployment.Reason{deployment.ReasonSetNotReported, deployment.ReasonSetNotReported},
		},
		"a set of whose machines nothing is sure may still have available ones": {
			four, []*v1alpha1.MachineSet{set(four, "c0", 2, 13, 10), set(four, "c1", 3, 3, 3)},
			nil, []deployment.Reason{deployment.ReasonSurgeUsedUp, deployment.ReasonMinimumAvailable},
		},
		"a recreation goes on though the replicas change": { // DS-3
			with(func(d *v1alpha1.MachineDeployment) { d.Spec.Replicas, d.Spec.Strategy = 5, recreate.Spec.Strategy }),
			[]*v1alpha1.MachineSet{set(d, "c0", 2, 2, 2), set(d, "c1", 1, 1, 1)},
			[]string{"scale md-c0 from 2 to 0: all old machines go first"}, nil,
		},
		"growth in the middle of a roll-out goes to the new set, up to the replicas": {
			with(func(d *v1alpha1.MachineDeployment) {
				d.Spec.Replicas = 9
				d.Spec.Strategy.RollingUpdate.MaxSurge = new(intstr.FromInt32(5))
			}),
			[]*v1alpha1.MachineSet{set(d, "c0", 2, 2, 2), set(d, "c1", 2, 2, 2)},
			[]string{"keep md-c0 at 2: sized for the present number of replicas", "scale md-c1 from 2 to 9: 4 machines < 9 replicas + 5 max surge"}, nil,
		},
		"a new set that is being deleted holds": {
			d, []*v1alpha1.MachineSet{set(d, "c0", 3, 3, 3), deleted(set(d, "c1", 1, 1, 1))},
			nil, []deployment.Reason{deployment.ReasonSetDeleting, deployment.ReasonMinimumAvailable},
		},
		"a paused deployment is scaled and not rolled": {
			paused, []*v1alpha1.MachineSet{set(d, "c0", 3, 3, 3)},
			[]string{"scale md-c0 from 3 to 5: 3 machines < 5 replicas + 1 max surge"}, []deployment.Reason{deployment.ReasonPaused},
		},
		"a frozen deployment shrinks and does not grow": {
			frozen, []*v1alpha1.MachineSet{set(d, "c0", 3, 3, 3), set(d, "c1", 1, 1, 1)},
			[]string{"scale md-c0 from 3 to 2: 3 machines sure to be available, minimum 3"}, []deployment.Reason{deployment.ReasonFrozen},
		},
		"old machines that are all broken go at once": {
			d, []*v1alpha1.MachineSet{set(d, "c0", 4, 4, 0), set(d, "c1", 0, 0, 0)},
			[]string{"scale md-c0 from 4 to 3: 0 machines sure to be available, minimum 3"}, []deployment.Reason{deployment.ReasonSurgeUsedUp},
		},
		"recreate takes the old machines first": {
			recreate, []*v1alpha1.MachineSet{set(d, "c0", 3, 3, 3)},
			[]string{"scale md-c0 from 3 to 0: all old machines go first"}, nil,
		},
		"recreate waits for the old machines": {
			recreate, []*v1alpha1.MachineSet{set(d, "c0", 0, 1, 0)},
			nil, []deployment.Reason{deployment.ReasonWaitingForMachines},
		},
		"the oldest of two equal sets is the new one": {
			d, []*v1alpha1.MachineSet{later(set(d, "c1", 1, 1, 1)), set(d, "c1", 3, 3, 3)},
			[]string{"scale late from 1 to 0: 3 machines sure to be available, minimum 3"}, nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, s := range test.sets { // no scaling, no propagation
				s.Annotations[v1alpha1.RevisionAnnotation] = "1"
				if deployment.EqualIgnoreHash(s.Spec.Template, d.Spec.Template) && s.Name != "late" {
					s.Annotations[v1alpha1.RevisionAnnotation] = "2"
				}
			}
			dec := decide(test.d, test.sets...)
			require.Equal(t, test.actions, lines(dec))
			require.Equal(t, test.holds, reasons(dec))
			slices.Reverse(test.sets)
			require.Equal(t, dec, decide(test.d, test.sets...), "the order of the sets does not matter")
		})
	}
}

func later(s *v1alpha1.MachineSet) *v1alpha1.MachineSet {
	s.Name, s.UID, s.CreationTimestamp = "late", "late", metav1.NewTime(base.Add(time.Minute))
	return s
}

func TestTheNewSetIsComplete(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Annotations = map[string]string{"a": "b", v1alpha1.TriggerDeletionByMCM: "x"}
	old := set(d, "c0", 3, 3, 3)
	old.Annotations[v1alpha1.RevisionAnnotation] = "6"
	d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 3, 3, 3
	dec := decide(d, old)
	require.Equal(t, deployment.ReasonNewSet, dec.Reason)
	require.Len(t, dec.Actions, 1)
	s := dec.Actions[0].(deployment.CreateSet).Set
	hash := deployment.TemplateHash(d.Spec.Template, nil)
	require.Equal(t, deployment.SetName("md", hash), s.Name)
	require.Equal(t, int32(1), s.Spec.Replicas)
	require.Equal(t, map[string]string{"app": "w", "machine-template-hash": hash}, s.Labels)
	require.Equal(t, s.Labels, s.Spec.Template.Labels)
	require.Equal(t, s.Labels, s.Spec.Selector.MatchLabels)
	require.Equal(t, map[string]string{"app": "w"}, d.Spec.Selector.MatchLabels, "the deployment is untouched")
	require.Equal(t, map[string]string{"a": "b", v1alpha1.RevisionAnnotation: "7", v1alpha1.DesiredReplicasAnnotation: "3", v1alpha1.MaxReplicasAnnotation: "4"}, s.Annotations)
	require.True(t, metav1.IsControlledBy(s, d))
	cond := deployment.GetCondition(dec.Status, v1alpha1.MachineDeploymentProgressing)
	require.Equal(t, v1alpha1.NewMachineSetCreated, cond.Reason)

	status, event := deployment.CreateFailed(dec.Status, s.Name, errors.New("boom"), base)
	require.Equal(t, v1alpha1.MachineSetCreateError, deployment.GetCondition(status, v1alpha1.MachineDeploymentProgressing).Reason)
	require.Equal(t, fmt.Sprintf("Warning MachineSetCreateError Failed to create new machine set %q: boom", s.Name), event.String())
}

func TestATakenNameLeadsToAnotherOne(t *testing.T) {
	d := rolling(3, 1, 0)
	first := decide(d).Actions[0].(deployment.CreateSet).Set
	in := deployment.Observation{Deployment: d, Complete: true, NameTakenBy: first.DeepCopy()}

	dec := deployment.Decide(in, deployment.Policy{}, base)
	require.Empty(t, dec.Actions, "it is ours, and will be seen")
	require.Nil(t, dec.Status.CollisionCount)
	require.Equal(t, []deployment.Reason{deployment.ReasonNameTaken}, reasons(dec))

	in.NameTakenBy.OwnerReferences = nil
	dec = deployment.Decide(in, deployment.Policy{}, base)
	require.Empty(t, dec.Actions)
	require.True(t, dec.WriteStatus)
	require.Equal(t, int32(1), *dec.Status.CollisionCount)
	require.False(t, dec.NextCheck.IsZero())

	d.Status = dec.Status
	dec = deployment.Decide(in, deployment.Policy{}, base)
	require.Len(t, dec.Actions, 1)
	second := dec.Actions[0].(deployment.CreateSet).Set
	require.NotEqual(t, first.Name, second.Name)

	in.NameTakenBy = &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: second.Name, Namespace: second.Namespace}}
	require.Equal(t, int32(2), *deployment.Decide(in, deployment.Policy{}, base).Status.CollisionCount)
}

func TestARolloutIsNotCompleteBeforeItsSetsAreAtRest(t *testing.T) {
	d := rolling(3, 1, 0)
	tests := map[string]func(s *v1alpha1.MachineSet){
		"the set has not reported":                func(s *v1alpha1.MachineSet) { s.Generation = 2 },
		"the set was told to shrink, and did not": func(s *v1alpha1.MachineSet) { s.Spec.Replicas = 2 },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			s := set(d, "c1", 3, 3, 3)
			d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "1"}
			require.Equal(t, deployment.ReasonComplete, decide(d, s).Reason)
			change(s)
			dec := decide(d, s)
			require.True(t, deployment.Complete(d, dec.Status), "by the counters it is")
			require.Equal(t, deployment.ReasonRollingOut, dec.Reason)
			require.NotEqual(t, v1alpha1.NewMachineSetAvailable, deployment.GetCondition(dec.Status, v1alpha1.MachineDeploymentProgressing).Reason)
			require.NotEmpty(t, dec.Holds)
		})
	}
}

func TestAPauseIsWrittenDown(t *testing.T) {
	d := rolling(3, 1, 0)
	s := set(d, "c0", 3, 3, 3)
	reason := func() string {
		d.Status = decide(d, s).Status
		c := deployment.GetCondition(d.Status, v1alpha1.MachineDeploymentProgressing)
		return string(c.Status) + " " + c.Reason
	}
	d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 3, 3, 3
	d.Spec.Paused = true
	require.Equal(t, "Unknown DeploymentPaused", reason())
	d.Spec.Paused, d.Spec.Template.Spec.Class.Name = false, "c0"
	d.Spec.Replicas = 4 // scaled first, so that nothing else is written
	require.Equal(t, "Unknown DeploymentResumed", reason())
}

func TestTheProgressDeadlineIsWaitedForAndReported(t *testing.T) {
	d := rolling(3, 1, 0)
	d.Spec.ProgressDeadlineSeconds = new(int32(60))
	old, newSet := set(d, "c0", 3, 3, 3), set(d, "c1", 1, 1, 0)
	newSet.Annotations[v1alpha1.RevisionAnnotation] = "2"
	sets := []*v1alpha1.MachineSet{old, newSet}
	d.Status = decide(d, sets...).Status
	d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "2"}
	dec := decide(d, sets...)
	require.Equal(t, base.Add(61*time.Second), dec.NextCheck)
	in := deployment.Observation{Deployment: d, Sets: sets, Complete: true}
	dec = deployment.Decide(in, deployment.Policy{}, dec.NextCheck)
	require.Equal(t, v1alpha1.ProgressDeadlineExceeded, deployment.GetCondition(dec.Status, v1alpha1.MachineDeploymentProgressing).Reason)
	require.Contains(t, reasons(dec), deployment.ReasonProgressDeadline)
	require.True(t, dec.NextCheck.IsZero(), "only a change can help")
}

func TestACutNeverGrowsASetAndArrives(t *testing.T) {
	// DS-12: by its rounding the reference gives md-c0 one machine more.
	d := rolling(4, 1, 0)
	old, newSet := set(d, "c0", 2, 2, 2), set(d, "c1", 4, 4, 3)
	for _, s := range []*v1alpha1.MachineSet{old, newSet} {
		s.Annotations[v1alpha1.MaxReplicasAnnotation] = map[string]string{"md-c0": "4", "md-c1": "5"}[s.Name]
	}
	got := map[string]int32{}
	for _, x := range deployment.ScaleTargets(d, newSet, []*v1alpha1.MachineSet{old}) {
		got[x.Set.Name] = x.To
	}
	require.Equal(t, map[string]int32{"md-c0": 2, "md-c1": 3}, got)
	require.Equal(t, int32(-5), deployment.Proportion(deployment.Share{Size: 9, Desired: 4, ToAdd: -5}), "no former total")
	require.Equal(t, int32(5-math.MaxInt32), deployment.Proportion(deployment.Share{Size: math.MaxInt32, Desired: 5, Max: math.MaxInt32, ToAdd: math.MinInt32}))
}

func TestScaleAppliesOnlyToWhatWasSeen(t *testing.T) {
	d := rolling(3, 1, 0)
	s := set(d, "c0", 3, 3, 3)
	s.ResourceVersion = "7"
	a := deployment.Scale{UID: s.UID, ResourceVersion: "7", From: 3, To: 1, Annotations: map[string]string{"k": "v"}}
	next := a.Apply(s)
	require.Equal(t, int32(1), next.Spec.Replicas)
	require.Equal(t, "v", next.Annotations["k"])
	require.Equal(t, int32(3), s.Spec.Replicas)
	for _, change := range []func(s *v1alpha1.MachineSet){
		func(s *v1alpha1.MachineSet) { s.UID = "other" },
		func(s *v1alpha1.MachineSet) { s.Spec.Replicas = 2 },
		func(s *v1alpha1.MachineSet) { s.ResourceVersion = "8" },
	} {
		other := s.DeepCopy()
		change(other)
		require.Nil(t, a.Apply(other))
	}
	require.Nil(t, a.Apply(nil))
}

func TestASetGrowsOnTopOfMachinesThatAreSeenToLeave(t *testing.T) {
	d := rolling(4, 0, 1)
	s := set(d, "c1", 2, 3, 2)
	in := deployment.Observation{Deployment: d, Sets: []*v1alpha1.MachineSet{s}, Complete: true}
	dec := deployment.Decide(in, deployment.Policy{}, base)
	require.Empty(t, lines(dec))
	require.Equal(t, []deployment.Reason{deployment.ReasonWaitingForMachines}, reasons(dec))

	m := &v1alpha1.Machine{}
	m.DeletionTimestamp = new(metav1.NewTime(base))
	m.OwnerReferences = []metav1.OwnerReference{{UID: s.UID, Controller: new(true)}}
	in.Machines = []*v1alpha1.Machine{nil, m}
	dec = deployment.Decide(in, deployment.Policy{}, base)
	require.Equal(t, []string{"scale md-c1 from 2 to 3: 3 machines < 4 replicas + 0 max surge"}, lines(dec))
}

func TestNilIsTolerated(t *testing.T) {
	require.NotPanics(t, func() {
		deployment.MaxSurge(nil)
		deployment.MaxUnavailable(nil)
		deployment.MinAvailable(nil)
		deployment.FindSets(nil, []*v1alpha1.MachineSet{nil, {}})
		deployment.ScalingEvent(nil, nil, nil)
		deployment.ActiveOrLatest(nil, []*v1alpha1.MachineSet{nil})
		deployment.Saturated(nil, nil)
		deployment.ScaleTargets(nil, nil, nil)
		deployment.Propagate(nil, nil, nil)
		deployment.NewSet(nil, nil, 1)
		deployment.NewSet(&v1alpha1.MachineDeployment{}, []*v1alpha1.MachineSet{nil}, 1)
		deployment.NewSetAnnotations(nil, nil, "", true)
		deployment.HistoryCleanup([]*v1alpha1.MachineSet{nil}, new(int32(-1)))
		deployment.Status(nil, nil, nil, base)
		deployment.Status(&v1alpha1.MachineDeployment{}, nil, []*v1alpha1.MachineSet{nil}, base)
		deployment.RolloutStatus(nil, nil, nil, base)
		deployment.Complete(nil, v1alpha1.MachineDeploymentStatus{})
		deployment.TimedOut(nil, v1alpha1.MachineDeploymentStatus{}, base)
		deployment.Validate(nil)
		deployment.SetName(strings.Repeat("x", 300), "")
		_ = deployment.CreateSet{}.String() + deployment.UpdateSet{}.String()
		deployment.CreateSet{}.Event()
	})
}

func FuzzDecide(f *testing.F) {
	f.Add(int32(3), int32(1), "25%", int32(3), int32(3), int32(3), int32(1), int32(0), int32(0), uint8(0))
	f.Add(int32(0), int32(-1), "-10%", int32(-3), int32(5), int32(9), int32(7), int32(7), int32(8), uint8(3))
	f.Add(int32(math.MaxInt32), int32(math.MaxInt32), "2147483647%", int32(math.MaxInt32), int32(math.MaxInt32), int32(math.MaxInt32), int32(1), int32(math.MinInt32), int32(0), uint8(12))
	f.Add(int32(3), int32(-21), "0%", int32(-87), int32(1), int32(69), int32(1), int32(-79), int32(128), uint8(0x5d))
	f.Fuzz(func(t *testing.T, replicas, surge int32, unavailable string, a, b, c, x, y, z int32, flags uint8) {
		d := rolling(replicas, surge, 0)
		d.Spec.Strategy.RollingUpdate.MaxUnavailable = new(intstr.FromString(unavailable))
		d.Spec.Paused = flags&1 != 0
		old, newSet := set(d, "c0", a, b, c), set(d, "c1", x, y, z)
		newSet.Annotations[v1alpha1.RevisionAnnotation] = "2"
		if flags&2 != 0 {
			old.Generation = 2
		}
		if flags&4 != 0 {
			old.Annotations[v1alpha1.DesiredReplicasAnnotation] = "1"
		}
		if flags&8 != 0 {
			newSet = nil
		}
		in := deployment.Observation{Deployment: d, Sets: []*v1alpha1.MachineSet{old, newSet}, Complete: true}
		dec := deployment.Decide(in, deployment.Policy{}, base)
		require.NotEmpty(t, dec.Reason)
		most := int64(max(0, replicas)) + int64(max(0, deployment.MaxSurge(d)))
		var before, after int64
		size := map[types.UID]int32{}
		for _, act := range dec.Actions {
			switch act := act.(type) {
			case deployment.Scale:
				require.GreaterOrEqual(t, act.To, int32(0))
				size[act.UID] = act.To
			case deployment.CreateSet:
				require.GreaterOrEqual(t, act.Set.Spec.Replicas, int32(0))
				after += int64(act.Set.Spec.Replicas)
			}
		}
		for _, s := range in.Sets {
			if s == nil {
				continue
			}
			to, ok := size[s.UID]
			if !ok {
				to = s.Spec.Replicas
			}
			before += int64(max(0, s.Spec.Replicas, s.Status.Replicas))
			after += int64(max(0, to, s.Status.Replicas))
		}
		require.LessOrEqual(t, after, max(before, most))
	})
}

func BenchmarkDecide(b *testing.B) {
	d := rolling(100, 10, 5)
	var all []*v1alpha1.MachineSet
	for i := range 9 {
		s := set(d, fmt.Sprintf("o%d", i), 10, 10, 9)
		s.CreationTimestamp = metav1.NewTime(base.Add(time.Duration(i) * time.Minute))
		all = append(all, s)
	}
	newSet := set(d, "c1", 20, 20, 15)
	newSet.Annotations[v1alpha1.RevisionAnnotation] = "2"
	in := deployment.Observation{Deployment: d, Sets: append(all, newSet), Complete: true}
	b.ReportAllocs()
	for b.Loop() {
		deployment.Decide(in, deployment.Policy{}, base)
	}
}
