// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestDecide_NewSet_HasAllOfTheDeployment(t *testing.T) {
	s := newScenario("rolling 3 +1 named=x want=c1; old 3/3/3 revision=6")
	d := s.in.Deployment
	d.Annotations["a"] = "b"
	d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 3, 3, 3
	dec := s.decide()
	require.Equal(t, machinist.Reason("CreatingSet"), dec.Reason)
	set := decided.Creates[*v1alpha1.MachineSet](dec.Actions)[0]
	hash := deployment.TemplateHash(d.Spec.Template, nil)
	require.Equal(t, deployment.SetName("md", hash), set.Name)
	require.Equal(t, int32(1), set.Spec.Replicas)
	require.Equal(t, map[string]string{"app": "w", "machine-template-hash": hash}, set.Labels)
	require.Equal(t, set.Labels, set.Spec.Template.Labels)
	require.Equal(t, set.Labels, set.Spec.Selector.MatchLabels)
	require.Equal(t, map[string]string{"app": "w"}, d.Spec.Selector.MatchLabels, "the deployment is untouched")
	require.Equal(t, map[string]string{"a": "b", v1alpha1.RevisionAnnotation: "7", v1alpha1.DesiredReplicasAnnotation: "3", v1alpha1.MaxReplicasAnnotation: "4"}, set.Annotations)
	require.True(t, metav1.IsControlledBy(set, d))
	require.Equal(t, v1alpha1.NewMachineSetCreated, progressing(dec.Status).Reason)

	status, event := deployment.CreateFailed(d.Status, set.Name, errors.New("boom"), rollNow)
	require.Equal(t, v1alpha1.MachineSetCreateError, progressing(status).Reason)
	require.Equal(t, fmt.Sprintf("Warning MachineSetCreateError Failed to create new machine set %q: boom", set.Name), event.String())
}

func TestDecide_NameTaken_NextAttemptTakesAnother(t *testing.T) {
	s := newScenario("rolling 3 +1; old 0")
	first := decided.Creates[*v1alpha1.MachineSet](s.decide().Actions)[0]
	s.in.NameTakenBy = first.DeepCopy()
	dec := s.decide()
	require.Empty(t, dec.Actions, "it is ours, and will be seen")
	require.Nil(t, dec.Status.CollisionCount)
	require.Equal(t, []machinist.Reason{machinist.Reason("NameTaken")}, reasons(dec))

	s.in.NameTakenBy.OwnerReferences = nil
	dec = s.decide()
	require.Empty(t, dec.Actions)
	require.True(t, dec.WriteStatus)
	require.Equal(t, int32(1), *dec.Status.CollisionCount)
	require.False(t, dec.NextCheck.IsZero())

	s.in.Deployment.Status = dec.Status
	second := decided.Creates[*v1alpha1.MachineSet](s.decide().Actions)[0]
	require.NotEqual(t, first.Name, second.Name)
	s.in.NameTakenBy = &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: second.Name, Namespace: second.Namespace}}
	require.Equal(t, int32(2), *s.decide().Status.CollisionCount)
}

// TestDecide_SetsNotAtRest_RolloutIsNotComplete has two deployments that are complete by the
// counters of their status.
func TestDecide_SetsNotAtRest_RolloutIsNotComplete(t *testing.T) { checkScenes(t) }

// TestStatus_PassThatResizes_UnavailableReplicas asserts that a set that is created or grows counts
// with the size that it had, as in MCM.
func TestStatus_PassThatResizes_UnavailableReplicas(t *testing.T) { checkScenes(t) }

func TestDecide_RevisionBehindItsSet_DeploymentAndStatusAreWritten(t *testing.T) { checkScenes(t) }

func TestProgress_Pause_IsWrittenDown(t *testing.T) { checkScenes(t) }

func TestProgress_Deadline_IsWaitedForAndReported(t *testing.T) { checkScenes(t) }

func TestProgress_OldSetIsNewAgain_DeadlineRestarts(t *testing.T) { checkScenes(t) }

func TestProgress_SetNotCreatedYet_EndOfTheLastRolloutIsReplaced(t *testing.T) { checkScenes(t) }

// recordedAt returns a Progressing condition, all its times recorded then.
func recordedAt(status v1alpha1.ConditionStatus, reason string, at time.Time) []v1alpha1.MachineDeploymentCondition {
	t := metav1.NewTime(at.Truncate(time.Second))
	return []v1alpha1.MachineDeploymentCondition{{
		Type: v1alpha1.MachineDeploymentProgressing, Status: status, Reason: reason, LastUpdateTime: t, LastTransitionTime: t,
	}}
}

// stored is a status as the API server keeps it, without fractions of a second.
func stored(s v1alpha1.MachineDeploymentStatus) v1alpha1.MachineDeploymentStatus {
	s = *s.DeepCopy()
	for i := range s.Conditions {
		s.Conditions[i].LastUpdateTime.Time = s.Conditions[i].LastUpdateTime.Truncate(time.Second)
		s.Conditions[i].LastTransitionTime.Time = s.Conditions[i].LastTransitionTime.Truncate(time.Second)
	}
	return s
}

// TestProgress_TimesRecordedByAnotherClock_NoLoopAndNoLateDeadline asserts that whatever was
// recorded by another clock, one pass writes the status, the next one at the same time does not,
// and each says when it wants to be asked again, within the progress deadline.
func TestProgress_TimesRecordedByAnotherClock_NoLoopAndNoLateDeadline(t *testing.T) {
	now := rollNow.Add(300 * time.Millisecond)
	for reason, status := range map[string]v1alpha1.ConditionStatus{
		v1alpha1.MachineSetUpdated: v1alpha1.ConditionTrue, v1alpha1.NewMachineSetCreated: v1alpha1.ConditionTrue,
		v1alpha1.NewMachineSetAvailable: v1alpha1.ConditionTrue, v1alpha1.DeploymentResumed: v1alpha1.ConditionUnknown,
		v1alpha1.ProgressDeadlineExceeded: v1alpha1.ConditionFalse, string(deployment.ReasonInvalid): v1alpha1.ConditionFalse,
	} {
		for _, skew := range []time.Duration{-time.Hour, 0, 3 * time.Second, 30 * time.Minute, 100 * 365 * 24 * time.Hour} {
			t.Run(fmt.Sprint(reason, skew), func(t *testing.T) {
				s := newScenario("rolling 3 +1 deadline=600 revision=2; old 3/3/3; new 1/1/0")
				d := s.in.Deployment
				d.Status = stored(deployment.Decide(s.in, s.policy, now).Status) // no counter tells of progress
				d.Status.Conditions = recordedAt(status, reason, now.Add(skew))
				for _, m := range s.in.Machines {
					m.Status.CurrentStatus.LastUpdateTime = metav1.NewTime(now.Add(skew))
				}
				for pass := range 3 {
					dec := deployment.Decide(s.in, s.policy, now)
					for _, e := range dec.Events {
						require.Equal(t, machinist.Reason(v1alpha1.ProgressDeadlineExceeded), e.Reason)
						require.Zero(t, pass)
					}
					require.True(t, dec.NextCheck.IsZero() || dec.NextCheck.After(now))
					if reason := progressing(dec.Status).Reason; reason != v1alpha1.ProgressDeadlineExceeded && reason != v1alpha1.NewMachineSetAvailable {
						require.False(t, dec.NextCheck.IsZero())
						require.False(t, dec.NextCheck.After(now.Add(601*time.Second)), "%s", dec.NextCheck.Sub(now))
					}
					require.False(t, pass > 1 && dec.WriteStatus, "pass %d writes again", pass)
					d.Status = stored(dec.Status)
				}
			})
		}
	}
}

func TestDecision_JSON_NamesObjectsWithoutZeroTimes(t *testing.T) {
	set, machine, node := &v1alpha1.MachineSet{}, &v1alpha1.Machine{}, &corev1.Node{}
	set.Name, set.Spec.Replicas, machine.Name, node.Name = "small", 2, "small-0", "node-0"
	larger, old := set.DeepCopy(), &v1alpha1.MachineSet{}
	larger.Spec.Replicas, old.Name = 3, "old"
	d := &v1alpha1.MachineDeployment{}
	d.Name = "workers"
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	dec := deployment.Decision{
		Reason: machinist.Reason("Progressing"), Message: "1 of 3 machines updated, 3 available",
		Targets: []deployment.Target{{
			Name: "small", UID: "1", From: 3, To: 2, Message: "3 machines available, minimum 3",
			Victims: []machineset.Victim{{Machine: machine, By: "Availability"}},
		}},
		Actions: []machinist.Action{
			machinist.Update{Object: d, Changes: []string{"revision is 2"}},
			machinist.Update{Object: machine, Changes: []string{"counted by its new set"}},
			machinist.Create{Object: set, Message: "2 replicas (3 machines, 4 allowed)"},
			machinist.Update{Before: larger, Object: set, Changes: []string{"from 3 to 2 replicas", "3 machines available, minimum 3"}},
			machinist.Update{Before: set, Object: set, Changes: []string{"differs from the deployment: annotations"}},
			machinist.Delete{Object: old, Message: "the deployment is being deleted"},
			machinist.Update{Object: node, Changes: []string{"taint removed"}},
			machinist.Refresh{Kind: "MachineSet", Name: "small"},
			machinist.Refresh{Kind: "MachineSet"},
		},
		Holds:       []machinist.Hold{{Subject: "machine/large-0", Reason: deployment.ReasonNewUnavailable, Message: "Pending"}},
		Events:      []machinist.Event{{Type: "Normal", Reason: "ScalingMachineSet", Message: "Scaled down machine set small to 2"}},
		WriteStatus: true, NextCheck: at,
	}
	data, err := json.MarshalIndent(dec, "", "  ")
	require.NoError(t, err)
	golden(t, "testdata/decision.json", string(data)+"\n")

	data, err = json.Marshal(deployment.Decision{})
	require.NoError(t, err)
	require.JSONEq(t, `{}`, string(data))
	for _, a := range []machinist.Action{machinist.Update{}, machinist.Create{}, machinist.Delete{}, machinist.Refresh{}} {
		_, err := json.Marshal(deployment.Decision{Actions: []machinist.Action{a}})
		require.NoError(t, err)
	}
}

// refusedSpecs are edits that make a spec invalid, with a part of what is said about it.
var refusedSpecs = map[string]struct {
	edit func(spec *v1alpha1.MachineDeploymentSpec)
	says string
}{
	"nil selector": {func(s *v1alpha1.MachineDeploymentSpec) { s.Selector = nil }, "spec.selector: Required value: selector has to be given"},
	"selector with an unknown operator": {func(s *v1alpha1.MachineDeploymentSpec) {
		s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "near"}}
	}, "spec.selector: Invalid value"},
	"selector with two bad values": {func(s *v1alpha1.MachineDeploymentSpec) {
		s.Selector.MatchLabels = map[string]string{"a": "*", "b": "*"}
	}, `values[0][a]`},
	"selector that does not match the template": {func(s *v1alpha1.MachineDeploymentSpec) {
		s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
	}, "spec.selector.matchLabels: Required value: is not matching with spec.template.metadata.labels"},
	"selector whose expression does not match the template": {func(s *v1alpha1.MachineDeploymentSpec) {
		s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "absent", Operator: metav1.LabelSelectorOpExists}}
	}, "does not select spec.template.metadata.labels"},
	"no class":               {func(s *v1alpha1.MachineDeploymentSpec) { s.Template.Spec.Class.Name = "" }, "Name is required"},
	"no strategy":            {func(s *v1alpha1.MachineDeploymentSpec) { s.Strategy = v1alpha1.MachineDeploymentStrategy{} }, "strategy type must be one of"},
	"no bounds":              {func(s *v1alpha1.MachineDeploymentSpec) { s.Strategy.RollingUpdate = nil }, "RollingUpdate parameter cannot be nil"},
	"no surge":               {func(s *v1alpha1.MachineDeploymentSpec) { s.Strategy.RollingUpdate.MaxSurge = nil }, "unable to convert maxSurge"},
	"surge without a number": {bounds(intstr.FromString("many"), intstr.FromInt32(1)), "unable to convert maxSurge"},
	"negative bounds":        {bounds(intstr.FromInt32(-5), intstr.FromInt32(-1)), `maxSurge: Invalid value: "-5": must not be negative`},
	"negative replicas":      {func(s *v1alpha1.MachineDeploymentSpec) { s.Replicas = -1 }, "Replicas has to be a whole number"},
	"empty selector":         {func(s *v1alpha1.MachineDeploymentSpec) { s.Selector = &metav1.LabelSelector{} }, "non-empty selector is required"},
}

func bounds(surge, unavailable intstr.IntOrString) func(s *v1alpha1.MachineDeploymentSpec) {
	return func(s *v1alpha1.MachineDeploymentSpec) {
		s.Strategy.RollingUpdate.MaxSurge, s.Strategy.RollingUpdate.MaxUnavailable = &surge, &unavailable
	}
}

// completed is a scene of a rollout that has ended.
func completed() *scenario {
	s := newScenario("rolling 3 +1 revision=1; new 3/3/3")
	s.in.Deployment.Status = s.decide().Status
	return s
}

func TestRefusal_InvalidSpec_SaysSoInTheStatusAndInOneEvent(t *testing.T) {
	for name, test := range refusedSpecs {
		t.Run(name, func(t *testing.T) {
			s := completed()
			d := s.in.Deployment
			valid := *d.Spec.DeepCopy()
			test.edit(&d.Spec)
			d.Generation++
			reason := deployment.ReasonInvalid
			if name == "empty selector" {
				reason = deployment.ReasonSelectsNothing
			}

			dec := s.decide()
			require.Empty(t, dec.Actions)
			require.Empty(t, dec.Targets)
			require.Equal(t, reason, dec.Reason)
			require.Contains(t, reasons(dec), reason)
			require.True(t, dec.WriteStatus)
			require.Len(t, dec.Events, 1)
			require.Contains(t, dec.Events[0].String(), "Warning")
			require.Contains(t, dec.Events[0].Message, test.says)
			cond := progressing(dec.Status)
			require.Equal(t, []string{"False", string(reason)}, []string{string(cond.Status), cond.Reason})
			require.Contains(t, cond.Message, test.says)
			require.Equal(t, d.Generation, dec.Status.ObservedGeneration)
			require.Equal(t, int32(3), dec.Status.AvailableReplicas)
			require.NotContains(t, fmt.Sprint(dec.Status.Conditions), "successfully")
			require.False(t, deployment.Complete(d, dec.Status))

			d.Status = dec.Status
			for range 20 { // a message that follows the order of a map differs sometimes
				dec = deployment.Decide(s.in, s.policy, rollNow.Add(time.Hour))
				require.False(t, dec.WriteStatus, "it is said once")
				require.Empty(t, dec.Events)
			}
			d.Spec, d.Generation = valid, d.Generation+1
			dec = s.decide()
			require.Equal(t, deployment.ReasonComplete, dec.Reason)
			require.Equal(t, v1alpha1.NewMachineSetAvailable, progressing(dec.Status).Reason)
		})
	}
}

func TestRefusal_OneInvalidSpecAfterAnother_HasAnEventForEach(t *testing.T) { checkScenes(t) }

func TestRefusal_PausedDeploymentThatIsValidAgain_IsPaused(t *testing.T) { checkScenes(t) }

func TestClaim_InvalidSpec_ReleasesAndAdoptsNothing(t *testing.T) {
	for name, test := range refusedSpecs {
		s := completed()
		d, set := s.in.Deployment, s.in.Sets[0]
		orphan := set.DeepCopy()
		orphan.UID, orphan.OwnerReferences = "orphan", nil
		sets := []*v1alpha1.MachineSet{set, orphan}
		require.Len(t, deployment.Claim(d, sets).Adopt, 1)
		test.edit(&d.Spec)
		want := machineset.Claims[*v1alpha1.MachineSet]{Owned: sets[:1]}
		require.Equal(t, want, deployment.Claim(d, sets), name)
	}
	require.Equal(t, machineset.Claims[*v1alpha1.MachineSet]{}, deployment.Claim(nil, nil))
}

func TestRefusal_Event_AsInMCMAndShort(t *testing.T) {
	s := completed()
	s.in.Deployment.Spec.Selector = &metav1.LabelSelector{}
	require.Equal(t, []machinist.Event{{
		Type: "Warning", Reason: "SelectingAll",
		Message: "This deployment is selecting all machines. A non-empty selector is required.",
	}}, s.decide().Events)
	s.in.Deployment.Spec.Strategy.Type = v1alpha1.MachineDeploymentStrategyType(strings.Repeat("x", 5000))
	require.Less(t, len(s.decide().Events[0].Message), 1024)
}

// TestBoundsOf_BothZero_OneMayBeUnavailable asserts that two bounds that are zero, or come out as
// zero, would never let an update move: one machine may be unavailable then, whatever the strategy.
func TestBoundsOf_BothZero_OneMayBeUnavailable(t *testing.T) {
	zeros := []intstr.IntOrString{intstr.FromInt32(0), intstr.FromString("0%"), intstr.FromString("0")}
	for _, surge := range zeros {
		for _, unavailable := range append(zeros, intstr.FromString("9%")) { // of 10, rounded down
			for _, kind := range []v1alpha1.MachineDeploymentStrategyType{kindRolling, kindInPlace} {
				b, err := deployment.BoundsOf(rollDeployment(10, kind, surge, unavailable))
				require.NoError(t, err)
				require.Equal(t, deployment.Bounds{Desired: 10, Unavailable: 1}, b, "%s: %s, %s", kind, surge.String(), unavailable.String())
			}
		}
	}
	for _, kind := range []v1alpha1.MachineDeploymentStrategyType{kindRolling, kindRecreate, kindInPlace} {
		b, err := deployment.BoundsOf(rollDeployment(-3, kind, intstr.FromString("50%"), intstr.FromInt32(0)))
		require.NoError(t, err)
		require.Zero(t, b, "%s: fewer than none are none", kind)
	}
	b, err := deployment.BoundsOf(rolling(3, -1, -2))
	require.NoError(t, err)
	require.Equal(t, deployment.Bounds{Desired: 3, Unavailable: 1}, b, "negative bounds count as 0")
}

// TestBoundsOf_StrategyWithoutParameters_IsAnError asserts that a strategy without its parameters,
// or none, is an error and never a panic, and leaves no room.
func TestBoundsOf_StrategyWithoutParameters_IsAnError(t *testing.T) {
	for _, kind := range []v1alpha1.MachineDeploymentStrategyType{kindRolling, kindInPlace, "", "Other"} {
		s := newScenario("rolling 3 +1 -1; old 3/3/3")
		s.in.Deployment.Spec.Strategy = v1alpha1.MachineDeploymentStrategy{Type: kind}
		b, err := deployment.BoundsOf(s.in.Deployment)
		require.ErrorContains(t, err, "strategy without usable bounds", "%q", kind)
		require.Equal(t, deployment.Bounds{Desired: 3}, b)
		require.NotEmpty(t, deployment.Validate(s.in.Deployment))
		dec := s.decide()
		require.Empty(t, dec.Actions)
		require.NotEmpty(t, dec.Holds)
	}
}

func TestDelete_SetsFirst_ThenTheFinalizer(t *testing.T) {
	checkScenes(t)
	s := newScenario("rolling 3 +1 deleting finalizers=foreign," + v1alpha1.MCMFinalizerName)
	next := decided.Writes[*v1alpha1.MachineDeployment](s.decide().Actions)[0]
	require.Equal(t, []string{"foreign"}, next.Finalizers)
}

func TestDecide_FinalizerMissing_IsWrittenFirstAndOnceInAPass(t *testing.T) { checkScenes(t) }

// TestValidate_ClassOfAnyForm_RefusedAsForAMachine asserts that a reference to a class that is refused
// for a machine is refused for its set and its deployment, with the same message.
func TestValidate_ClassOfAnyForm_RefusedAsForAMachine(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"", "MachineClass", "machineclass", "AWSMachineClass"} {
		for _, name := range []string{"", "small"} {
			d, m, set := rolling(1, 1, 0), &v1alpha1.Machine{}, &v1alpha1.MachineSet{}
			d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: kind, Name: name}
			m.Spec.Class, set.Spec.Template, set.Spec.Selector = d.Spec.Template.Spec.Class, d.Spec.Template, d.Spec.Selector
			want := machine.Validate(m)
			require.Equal(t, kind == "MachineClass" && name != "", len(want) == 0, "%q %q", kind, name)
			for i := range want {
				want[i].Field = strings.Replace(want[i].Field, "spec.class", "spec.template.spec.class", 1)
			}
			set.Name, set.UID = "s", "uid-s"
			refused := machineset.Decide(machineset.Observation{Set: set, Complete: true}, machineset.Policy{}, rollNow)
			require.Equal(t, len(want) > 0, refused.Reason == machineset.ReasonInvalid, "%q %q", kind, name)
			for _, err := range want {
				require.Contains(t, refused.Holds[0].Message, err.Error(), "%q %q", kind, name)
			}
			require.Equal(t, want, deployment.Validate(d), "%q %q", kind, name)
		}
	}
}
