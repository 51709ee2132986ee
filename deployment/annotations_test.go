// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func TestAnnotationsOfOneObjectStayThere(t *testing.T) {
	d := newMarksWorld(1).d
	d.Annotations = map[string]string{
		"cause": "x", "machinist.dev/delete-first": "m", machineset.ReleasedAnnotation: "s", deployment.NamedAnnotation: "7",
		v1alpha1.TriggerDeletionByMCM: "m", v1alpha1.UnfreezeAnnotation: "", v1alpha1.PreferNoScheduleKey: "True",
		v1alpha1.LastDeploymentReplicaChangeByScalerTime: "t", v1alpha1.EffectiveCreationTimeout: "1h",
	}
	got, changed := deployment.NewSetAnnotations(d, &v1alpha1.MachineSet{}, "1", true)
	require.True(t, changed)
	require.Equal(t, map[string]string{
		"cause": "x", v1alpha1.LastDeploymentReplicaChangeByScalerTime: "t", v1alpha1.EffectiveCreationTimeout: "1h", v1alpha1.RevisionAnnotation: "1",
	}, got)
}

func TestDS19TheHistoryOfRevisionsIsBounded(t *testing.T) {
	s := &v1alpha1.MachineSet{}
	s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "100000", v1alpha1.RevisionHistoryAnnotation: strings.Repeat("12345,", 400) + "99999"}
	got, _ := deployment.NewSetAnnotations(newMarksWorld(1).d, s, "100001", true)
	history := got[v1alpha1.RevisionHistoryAnnotation]
	require.LessOrEqual(t, len(history), 2000)
	require.True(t, strings.HasSuffix(history, ",12345,99999,100000"), "the oldest go")
	require.True(t, strings.HasPrefix(history, "12345,"), "and whole ones")

	s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "1", v1alpha1.RevisionHistoryAnnotation: strings.Repeat("x", 3000)}
	got, _ = deployment.NewSetAnnotations(newMarksWorld(1).d, s, "2", true)
	require.Equal(t, "1", got[v1alpha1.RevisionHistoryAnnotation])
}

func TestDS19AnAnnotationThatChangesAddsNothingToTheHistory(t *testing.T) {
	w := newMarksWorld(1)
	w.sets[0].Annotations[v1alpha1.RevisionAnnotation] = "1"
	for _, at := range []string{"a", "b", "c"} {
		w.d.Annotations = map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: at}
		w.run(t, deployment.Policy{})
		require.Equal(t, at, w.sets[0].Annotations[v1alpha1.LastDeploymentReplicaChangeByScalerTime])
		require.NotContains(t, w.sets[0].Annotations, v1alpha1.RevisionHistoryAnnotation)
	}
}

func TestDS19AnAnnotationThatTheDeploymentLosesStaysOnTheSet(t *testing.T) {
	w := newMarksWorld(1)
	w.sets[0].Annotations["of somebody"] = "else"
	w.rest(t, deployment.Policy{})
	require.Equal(t, "else", w.sets[0].Annotations["of somebody"])
}
