// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// of is a deployment with a surge of 1.
func of(replicas int32) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{}
	d.Spec.Replicas, d.Spec.Strategy.Type = replicas, v1alpha1.RollingUpdateMachineDeploymentStrategyType
	d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{
		MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
	}}
	return d
}

func TestScalingOf_CutRoundsUp_ShrinksOtherSets(t *testing.T) {
	set := func(name string, replicas int32, most string) *v1alpha1.MachineSet {
		s := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{v1alpha1.MaxReplicasAnnotation: most}}}
		s.Spec.Replicas = replicas
		return s
	}
	got := map[string]int32{}
	for _, x := range rollout.ScalingOf(of(4), set("new", 4, "5"), []*v1alpha1.MachineSet{set("old", 2, "4")}).Targets {
		got[x.Set.Name] = x.To
	}
	require.Equal(t, map[string]int32{"old": 2, "new": 3}, got)
}

// TestShare_NumbersThatMCMCannotDivide_StayInBounds has a former total that is not known, and numbers whose
// product needs more than 32 bits.
func TestShare_NumbersThatMCMCannotDivide_StayInBounds(t *testing.T) {
	const many = 1 << 30
	for share, want := range map[rollout.Share]int32{
		{Size: 4, Desired: 6, ToAdd: -2}:                                                -2,
		{Size: 4, Desired: 6, ToAdd: -9}:                                                -4,
		{Size: 4, Desired: 6, ToAdd: -9, Max: -3}:                                       -4,
		{Size: 4, Desired: 6, ToAdd: 2}:                                                 2,
		{Size: many, Desired: many, Surge: many, Max: many, ToAdd: many}:                many,
		{Size: many, Desired: 2, Max: many, ToAdd: 2 - many}:                            2 - many,
		{Size: math.MaxInt32, Desired: 1, Max: math.MaxInt32, ToAdd: 1 - math.MaxInt32}: 1 - math.MaxInt32,
	} {
		require.Equal(t, want, share.Change(), "%+v", share)
	}
}

func TestNewSetAnnotations_OfOneObject_StayThere(t *testing.T) {
	d := of(1)
	d.Annotations = map[string]string{
		"cause": "x", "machinist.dev/delete-first": "m", "machinist.dev/released-by": "s", "machinist.dev/before-named": "7",
		v1alpha1.TriggerDeletionByMCM: "m", v1alpha1.UnfreezeAnnotation: "", v1alpha1.PreferNoScheduleKey: "True", v1alpha1.LastDeploymentReplicaChangeByScalerTime: "t", v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout: "1h",
	}
	got, changed := rollout.NewSetAnnotations(d, &v1alpha1.MachineSet{}, "1", true)
	require.True(t, changed)
	require.Equal(t, map[string]string{
		"cause": "x", v1alpha1.LastDeploymentReplicaChangeByScalerTime: "t", v1alpha1.AnnotationKeyMachineEffectiveCreationTimeout: "1h", v1alpha1.RevisionAnnotation: "1",
	}, got)
}

func TestNewSetAnnotations_EmptyValueThatTheSetLacks_IsNotAdded(t *testing.T) {
	d, s := of(3), &v1alpha1.MachineSet{}
	s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "1", "had": "a value"}
	d.Annotations = map[string]string{"new": "", "had": ""}
	annotations, changed := rollout.NewSetAnnotations(d, s, "1", true)
	require.True(t, changed)
	require.Equal(t, map[string]string{v1alpha1.RevisionAnnotation: "1", "had": ""}, annotations)
	s.Annotations = annotations
	_, changed = rollout.NewSetAnnotations(d, s, "1", true)
	require.False(t, changed)
}

func TestNewSetAnnotations_History_IsBoundedAndOfRevisionsOnly(t *testing.T) {
	for _, c := range []struct{ history, revision, next, prefix, suffix string }{
		{strings.Repeat("12345,", 400) + "99999", "100000", "100001", "12345,", ",12345,99999,100000"}, // the oldest go, and whole ones
		{strings.Repeat("x", 3000), "1", "2", "1", "1"},
		{"", "1", "1", "", ""}, // another annotation changes
	} {
		d, s := of(1), &v1alpha1.MachineSet{}
		d.Annotations = map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: "a"}
		s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: c.revision, v1alpha1.RevisionHistoryAnnotation: c.history}
		got, changed := rollout.NewSetAnnotations(d, s, c.next, true)
		require.True(t, changed)
		history := got[v1alpha1.RevisionHistoryAnnotation]
		require.LessOrEqual(t, len(history), 2000)
		require.True(t, strings.HasPrefix(history, c.prefix) && strings.HasSuffix(history, c.suffix), history)
		require.Equal(t, c.suffix == "", history == "")
	}
}

// TestRecorded_Due asserts that counters are written once a second, a message alone once it has lasted for two,
// and all else at once.
func TestRecorded_Due(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	in := now.Add
	stored := v1alpha1.MachineDeploymentStatus{Replicas: 3, Conditions: []v1alpha1.MachineDeploymentCondition{{
		Type: v1alpha1.MachineDeploymentProgressing, Reason: "a", Message: "a", LastUpdateTime: metav1.NewTime(now),
	}}}
	next := func(change func(*v1alpha1.MachineDeploymentStatus)) v1alpha1.MachineDeploymentStatus {
		s := *stored.DeepCopy()
		change(&s)
		return s
	}
	counters := next(func(s *v1alpha1.MachineDeploymentStatus) { s.AvailableReplicas++ })
	message := next(func(s *v1alpha1.MachineDeploymentStatus) { s.Conditions[0].Message = "b" })
	other := next(func(s *v1alpha1.MachineDeploymentStatus) { s.Conditions[0].Message = "c" })
	none := time.Time{}
	recorded := rollout.Recorded{}.Written(now)
	for i, step := range []struct {
		next  v1alpha1.MachineDeploymentStatus
		alone bool
		now   time.Duration
		want  time.Time
	}{
		{next(func(s *v1alpha1.MachineDeploymentStatus) { s.Replicas++ }), true, 0, in(time.Second)},
		{next(func(s *v1alpha1.MachineDeploymentStatus) {
			s.Conditions[0].LastUpdateTime = metav1.NewTime(in(time.Hour))
		}), true, 0, in(time.Second)},
		{next(func(s *v1alpha1.MachineDeploymentStatus) { s.Conditions[0].Reason = "b" }), true, 0, none},
		{next(func(s *v1alpha1.MachineDeploymentStatus) { s.ObservedGeneration++ }), true, 0, none},
		{message, true, 0, in(2 * time.Second)},
		{other, true, time.Second, in(2 * time.Second)}, // messages that follow each other delay it no longer
		{other, false, time.Second, none},
		{message, true, 2 * time.Second, in(4 * time.Second)}, // anew
		{counters, true, 3 * time.Second, in(time.Second)},
		{message, true, 4 * time.Second, in(6 * time.Second)},
	} {
		kept := step.next.DeepCopy()
		due, after := recorded.Due(stored, step.next, step.alone, in(step.now))
		require.Equal(t, step.want, due, "step %d", i)
		require.Equal(t, *kept, step.next, "step %d: the argument changed", i)
		recorded = after
	}
	due, _ := recorded.Written(in(5*time.Second)).Due(stored, message, true, in(5*time.Second))
	require.Equal(t, in(7*time.Second), due, "what was written needs no message")
}
