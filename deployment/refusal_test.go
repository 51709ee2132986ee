// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// refusedSpecs are edits that make a spec invalid, with a part of what is said about it.
var refusedSpecs = map[string]struct {
	edit   func(spec *v1alpha1.MachineDeploymentSpec)
	reason machinist.Reason
	says   string
}{
	"nil selector": {func(s *v1alpha1.MachineDeploymentSpec) { s.Selector = nil }, deployment.ReasonInvalid, "spec.selector: Required value: selector has to be given"},
	"selector with an unknown operator": {func(s *v1alpha1.MachineDeploymentSpec) {
		s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "near"}}
	}, deployment.ReasonInvalid, "spec.selector: Invalid value"},
	"selector with two bad values": {func(s *v1alpha1.MachineDeploymentSpec) {
		s.Selector.MatchLabels = map[string]string{"a": "*", "b": "*"}
	}, deployment.ReasonInvalid, `values[0][a]`},
	"selector that does not match the template": {func(s *v1alpha1.MachineDeploymentSpec) {
		s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
	}, deployment.ReasonInvalid, "spec.selector.matchLabels: Required value: is not matching with spec.template.metadata.labels"},
	"selector whose expression does not match the template": {func(s *v1alpha1.MachineDeploymentSpec) {
		s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "absent", Operator: metav1.LabelSelectorOpExists}}
	}, deployment.ReasonInvalid, "does not select spec.template.metadata.labels"},
	"template without labels": {func(s *v1alpha1.MachineDeploymentSpec) { s.Template.Labels = nil }, deployment.ReasonInvalid, "is not matching with spec.template.metadata.labels"},
	"no class":                {func(s *v1alpha1.MachineDeploymentSpec) { s.Template.Spec.Class.Name = "" }, deployment.ReasonInvalid, "Name is required"},
	"no strategy":             {func(s *v1alpha1.MachineDeploymentSpec) { s.Strategy = v1alpha1.MachineDeploymentStrategy{} }, deployment.ReasonInvalid, "strategy type must be one of"},
	"unknown strategy":        {func(s *v1alpha1.MachineDeploymentSpec) { s.Strategy.Type = "Sometimes" }, deployment.ReasonInvalid, `"Sometimes"`},
	"no bounds":               {func(s *v1alpha1.MachineDeploymentSpec) { s.Strategy.RollingUpdate = nil }, deployment.ReasonInvalid, "RollingUpdate parameter cannot be nil"},
	"no surge":                {func(s *v1alpha1.MachineDeploymentSpec) { s.Strategy.RollingUpdate.MaxSurge = nil }, deployment.ReasonInvalid, "unable to convert maxSurge"},
	"surge that is text":      {bounds(intstr.FromString("0"), intstr.FromInt32(0)), deployment.ReasonInvalid, "unable to convert maxSurge"},
	"surge without a number":  {bounds(intstr.FromString("many"), intstr.FromInt32(1)), deployment.ReasonInvalid, "unable to convert maxSurge"},
	"negative bounds":         {bounds(intstr.FromInt32(-5), intstr.FromInt32(-1)), deployment.ReasonInvalid, `maxSurge: Invalid value: "-5": must not be negative`},
	"negative percentage":     {bounds(intstr.FromInt32(1), intstr.FromString("-5%")), deployment.ReasonInvalid, `maxUnavailable: Invalid value: "-5%": must not be negative`},
	"negative replicas":       {func(s *v1alpha1.MachineDeploymentSpec) { s.Replicas = -1 }, deployment.ReasonInvalid, "Replicas has to be a whole number"},
	"empty selector":          {func(s *v1alpha1.MachineDeploymentSpec) { s.Selector = &metav1.LabelSelector{} }, machinist.Reason("EmptySelector"), "non-empty selector is required"},
	"selector with an empty map": {func(s *v1alpha1.MachineDeploymentSpec) {
		s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{}}
	}, machinist.Reason("EmptySelector"), "non-empty selector is required"},
}

func bounds(surge, unavailable intstr.IntOrString) func(s *v1alpha1.MachineDeploymentSpec) {
	return func(s *v1alpha1.MachineDeploymentSpec) {
		s.Strategy.RollingUpdate.MaxSurge, s.Strategy.RollingUpdate.MaxUnavailable = &surge, &unavailable
	}
}

// complete returns a deployment whose roll-out has ended, and its set.
func complete(t *testing.T) (*v1alpha1.MachineDeployment, *v1alpha1.MachineSet) {
	t.Helper()
	d := rolling(3, 1, 0)
	set := rollSet(d, "c1", 3, 3, 3)
	d.Annotations = map[string]string{v1alpha1.RevisionAnnotation: set.Annotations[v1alpha1.RevisionAnnotation]}
	dec := rollPlan(d, set)
	require.Equal(t, deployment.ReasonComplete, dec.Reason)
	d.Status = dec.Status
	require.Equal(t, v1alpha1.NewMachineSetAvailable, deployment.ConditionOf(d.Status, v1alpha1.MachineDeploymentProgressing).Reason)
	return d, set
}

func TestPlan_InvalidSpec_SaysSoInTheStatusAndInOneEvent(t *testing.T) {
	for name, test := range refusedSpecs {
		t.Run(name, func(t *testing.T) {
			d, set := complete(t)
			valid := *d.Spec.DeepCopy()
			test.edit(&d.Spec)
			d.Generation++

			dec := rollPlan(d, set)
			require.Empty(t, dec.Actions)
			require.Empty(t, dec.Targets)
			require.Equal(t, test.reason, dec.Reason)
			require.Contains(t, rollReasons(dec), test.reason)
			require.True(t, dec.WriteStatus)
			require.Len(t, dec.Events, 1)
			require.Equal(t, "Warning", dec.Events[0].Type)
			require.Contains(t, dec.Events[0].Message, test.says)
			cond := deployment.ConditionOf(dec.Status, v1alpha1.MachineDeploymentProgressing)
			require.Equal(t, v1alpha1.ConditionFalse, cond.Status)
			require.Equal(t, string(test.reason), cond.Reason)
			require.Contains(t, cond.Message, test.says)
			require.Equal(t, d.Generation, dec.Status.ObservedGeneration)
			require.Equal(t, int32(3), dec.Status.AvailableReplicas)
			for _, c := range dec.Status.Conditions {
				require.NotContains(t, c.Message, "successfully")
			}
			require.False(t, deployment.Complete(d, dec.Status))

			d.Status = dec.Status
			for range 20 { // a message that follows the order of a map differs sometimes
				dec = deployment.Decide(rollSee(d, set), rollPolicy, rollNow.Add(time.Hour))
				require.False(t, dec.WriteStatus, "it is said once")
				require.Empty(t, dec.Events)
			}

			d.Spec = valid
			d.Generation++
			dec = rollPlan(d, set)
			require.Equal(t, deployment.ReasonComplete, dec.Reason)
			require.Equal(t, v1alpha1.NewMachineSetAvailable, deployment.ConditionOf(dec.Status, v1alpha1.MachineDeploymentProgressing).Reason)
			require.True(t, deployment.Complete(d, dec.Status))
		})
	}
}

func TestPlan_OneInvalidSpecAfterAnother_HasAnEventForEach(t *testing.T) {
	d, set := complete(t)
	d.Spec.Strategy.Type = "Sometimes"
	dec := rollPlan(d, set)
	require.Len(t, dec.Events, 1)
	first := deployment.ConditionOf(dec.Status, v1alpha1.MachineDeploymentProgressing)

	d.Status = dec.Status
	d.Spec.Strategy.Type = "Seldom"
	dec = deployment.Decide(rollSee(d, set), rollPolicy, rollNow.Add(time.Minute))
	require.Len(t, dec.Events, 1)
	second := deployment.ConditionOf(dec.Status, v1alpha1.MachineDeploymentProgressing)
	require.Contains(t, second.Message, "Seldom")
	require.Equal(t, first.LastTransitionTime, second.LastTransitionTime, "the status is False as before")
}

func TestPlan_EmptySelector_HasTheEventOfTheReferenceSystem(t *testing.T) {
	d, set := complete(t)
	d.Spec.Selector = &metav1.LabelSelector{}
	require.Equal(t, []machinist.Event{{
		Type: "Warning", Reason: "SelectingAll",
		Message: "This deployment is selecting all machines. A non-empty selector is required.",
	}}, rollPlan(d, set).Events)
}

func TestPlan_PausedDeploymentThatIsValidAgain_IsPaused(t *testing.T) {
	d, set := complete(t)
	good := d.Spec.Strategy.Type
	d.Spec.Paused, d.Spec.Strategy.Type = true, "Sometimes"
	d.Status = rollPlan(d, set).Status
	d.Spec.Strategy.Type = good
	cond := deployment.ConditionOf(rollPlan(d, set).Status, v1alpha1.MachineDeploymentProgressing)
	require.Equal(t, v1alpha1.DeploymentPaused, cond.Reason)
}

func TestClaimSelector_InvalidSpec_ReleasesAndAdoptsNothing(t *testing.T) {
	for name, test := range refusedSpecs {
		t.Run(name, func(t *testing.T) {
			d, set := complete(t)
			d.UID, set.UID = "d", "s"
			set.OwnerReferences = []metav1.OwnerReference{machineset.OwnerDeployment(d).Reference()}
			orphan := set.DeepCopy()
			orphan.UID, orphan.OwnerReferences = "orphan", nil
			claim := func() machineset.Claims[*v1alpha1.MachineSet] {
				return machineset.Claim(machineset.OwnerDeployment(d), deployment.ClaimSelector(d), []*v1alpha1.MachineSet{set, orphan})
			}
			require.Len(t, claim().Adopt, 1)
			test.edit(&d.Spec)
			claims := claim()
			require.Empty(t, claims.Adopt)
			require.Empty(t, claims.Release)
			require.Equal(t, []*v1alpha1.MachineSet{set}, claims.Owned)
		})
	}
	require.Nil(t, deployment.ClaimSelector(nil))
}

func TestEventOfAnInvalidSpec_LongMessage_IsCut(t *testing.T) {
	d, set := complete(t)
	d.Spec.Strategy.Type = v1alpha1.MachineDeploymentStrategyType(strings.Repeat("x", 5000))
	require.Less(t, len(rollPlan(d, set).Events[0].Message), 1024)
}
