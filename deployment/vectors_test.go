// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestFencePostsAreThoseOfTheReference(t *testing.T) {
	type in struct {
		Desired                  int32
		MaxSurge, MaxUnavailable bound
	}
	type out struct {
		Surge, Unavailable int32
		Error              *string
	}
	walk(t, "fenceposts", func(t *testing.T, in in, out out) {
		surge, unavailable, err := deployment.FencePosts(in.MaxSurge.IntOrString, in.MaxUnavailable.IntOrString, in.Desired)
		require.Equal(t, out.Error != nil, err != nil)
		if err != nil {
			require.ErrorIs(t, err, deployment.ErrBound)
		}
		require.Equal(t, [2]int32{out.Surge, out.Unavailable}, [2]int32{surge, unavailable})
	})
}

func TestLimitsAreThoseOfTheReference(t *testing.T) {
	type in struct {
		Replicas                    int32
		MaxSurge, MaxUnavailable    bound
		Strategy, OrchestrationType string
	}
	type out struct{ MaxSurge, MaxUnavailable, MinAvailable int32 }
	walk(t, "max_surge_unavailable", func(t *testing.T, in in, want out) {
		d := &v1alpha1.MachineDeployment{}
		d.Spec.Replicas = in.Replicas
		d.Spec.Strategy = strategy(in.Strategy, in.OrchestrationType, in.MaxSurge.IntOrString, in.MaxUnavailable.IntOrString)
		require.Equal(t, want, out{deployment.MaxSurge(d), deployment.MaxUnavailable(d), deployment.MinAvailable(d)})
	})
}

func TestNewSetSizeIsThatOfTheReferenceButForTheSurge(t *testing.T) {
	type counts struct{ SpecReplicas, StatusReplicas int32 }
	type in struct {
		Replicas                    int32
		MaxSurge, MaxUnavailable    bound
		Strategy, OrchestrationType string
		NewMS                       counts
		OldMSs                      []counts
	}
	type out struct {
		Error       *string
		NewReplicas int32
	}
	better := 0
	walk(t, "new_ms_new_replicas", func(t *testing.T, in in, out out) {
		var seen, counted int32
		for _, c := range append(in.OldMSs, in.NewMS) {
			seen += c.StatusReplicas
			counted += max(c.SpecReplicas, c.StatusReplicas)
		}
		s := strategy(in.Strategy, in.OrchestrationType, in.MaxSurge.IntOrString, in.MaxUnavailable.IntOrString)
		got, err := deployment.NewSetSize(s, in.Replicas, in.NewMS.SpecReplicas, seen)
		require.Equal(t, out.Error != nil, err != nil)
		if err == nil {
			require.Equal(t, out.NewReplicas, got, "by the count of the reference")
		}
		if err != nil || in.Strategy == "Recreate" || in.OrchestrationType == "Manual" {
			return
		}
		bounded, err := deployment.NewSetSize(s, in.Replicas, in.NewMS.SpecReplicas, counted)
		require.NoError(t, err)
		if seen == counted {
			require.Equal(t, out.NewReplicas, bounded)
			return
		}
		// DS-1: machines that are asked for and not reported yet count.
		surge, _, _ := deployment.FencePosts(in.MaxSurge.IntOrString, in.MaxUnavailable.IntOrString, in.Replicas)
		require.LessOrEqual(t, bounded, out.NewReplicas+max(0, in.NewMS.SpecReplicas-in.Replicas))
		if bounded > in.NewMS.SpecReplicas {
			require.LessOrEqual(t, counted+bounded-in.NewMS.SpecReplicas, in.Replicas+surge)
		}
		better++
	})
	t.Logf("%d vectors show DS-1", better)
}

func TestProportionIsThatOfTheReferenceButForDivisionByZero(t *testing.T) {
	type in struct {
		MaxReplicasAnnotation                  *string
		MaxSurge, MaxUnavailable               bound
		MachineSet                             json.RawMessage
		MSReplicas                             int32 `json:"msReplicas"`
		Replicas, ReplicasAdded, ReplicasToAdd int32
		StatusReplicas                         int32
		Strategy                               string
	}
	type out struct{ Proportion int32 }
	walk(t, "get_proportion", func(t *testing.T, in in, out out) {
		d := &v1alpha1.MachineDeployment{}
		d.Spec.Replicas = in.Replicas
		d.Spec.Strategy = strategy(in.Strategy, "", in.MaxSurge.IntOrString, in.MaxUnavailable.IntOrString)
		share := deployment.Share{Size: in.MSReplicas, Desired: in.Replicas, Surge: deployment.MaxSurge(d), Max: in.StatusReplicas, ToAdd: in.ReplicasToAdd, Added: in.ReplicasAdded}
		if in.MaxReplicasAnnotation != nil {
			if n, ok := atoi(*in.MaxReplicasAnnotation); ok {
				share.Max = n
			}
		}
		got := deployment.Proportion(share)
		if share.Max == 0 && in.Replicas != 0 {
			// DS-12: the reference divides by zero.
			left := in.ReplicasToAdd - in.ReplicasAdded
			require.GreaterOrEqual(t, got, min(left, -in.MSReplicas, 0))
			require.LessOrEqual(t, got, max(left, 0))
			return
		}
		require.Equal(t, out.Proportion, got)
	})
}

func TestScalingEventIsThatOfTheReference(t *testing.T) {
	type out struct {
		IsScalingEvent, IsSaturated bool
		ActiveOrLatest              *string
	}
	walk(t, "scaling_event", func(t *testing.T, in goldenWorld, out out) {
		d, newSet, old := in.objects(t)
		found, others := deployment.FindSets(d, append(slices.Clone(old), newSet))
		if newSet == nil {
			require.Nil(t, found)
		} else {
			require.Equal(t, newSet.Name, found.Name)
		}
		require.Equal(t, out.IsScalingEvent, deployment.ScalingEvent(d, found, others))
		require.Equal(t, out.IsSaturated, deployment.Saturated(d, found))
		one := deployment.ActiveOrLatest(found, others)
		if out.ActiveOrLatest == nil {
			require.Nil(t, one)
		} else {
			require.Equal(t, *out.ActiveOrLatest, one.Name)
		}
	})
}

func TestNewSetAnnotationsAreThoseOfTheReferenceButForTheHistory(t *testing.T) {
	type in struct {
		Exists                   bool
		MaxSurge, MaxUnavailable bound
		MDAnnotations            map[string]string `json:"mdAnnotations"`
		MSAnnotations            map[string]string `json:"msAnnotations"`
		NewRevision              string
		Replicas                 int32
		Strategy                 string
	}
	type out struct {
		Changed       bool
		MSAnnotations map[string]string `json:"msAnnotations"`
	}
	grown := 0
	walk(t, "set_new_ms_annotations", func(t *testing.T, in in, out out) {
		d := &v1alpha1.MachineDeployment{}
		d.Annotations, d.Spec.Replicas = in.MDAnnotations, in.Replicas
		d.Spec.Strategy = strategy(in.Strategy, "", in.MaxSurge.IntOrString, in.MaxUnavailable.IntOrString)
		s := &v1alpha1.MachineSet{}
		s.Annotations = maps.Clone(in.MSAnnotations)
		got, changed := deployment.NewSetAnnotations(d, s, in.NewRevision, in.Exists)
		require.Equal(t, in.MSAnnotations, s.Annotations, "the input is not modified")
		require.Equal(t, out.Changed, changed)
		want := maps.Clone(out.MSAnnotations)
		if want == nil {
			want = map[string]string{}
		}
		if want[v1alpha1.RevisionAnnotation] == in.MSAnnotations[v1alpha1.RevisionAnnotation] &&
			want[v1alpha1.RevisionHistoryAnnotation] != in.MSAnnotations[v1alpha1.RevisionHistoryAnnotation] {
			// DS-19: the history grows though the revision stays.
			grown++
			delete(want, v1alpha1.RevisionHistoryAnnotation)
			if h, ok := in.MSAnnotations[v1alpha1.RevisionHistoryAnnotation]; ok {
				want[v1alpha1.RevisionHistoryAnnotation] = h
			}
		}
		require.Equal(t, want, got)
	})
	t.Logf("%d vectors show DS-19", grown)
}

func TestTemplateEqualityIsThatOfTheReferenceButForLabelsThatAreMissing(t *testing.T) {
	type in struct{ A, B *goldenTemplate }
	type out struct{ EqualIgnoringHash bool }
	labels := func(t *goldenTemplate) map[string]string {
		m := maps.Clone(t.Labels)
		delete(m, v1alpha1.DefaultMachineDeploymentUniqueLabelKey)
		return m
	}
	walk(t, "template_equality", func(t *testing.T, in in, out out) {
		a, b := in.A.spec(), in.B.spec()
		got := deployment.EqualIgnoreHash(a, b)
		require.Equal(t, got, deployment.EqualIgnoreHash(b, a), "the order does not matter")
		if got {
			require.Equal(t, deployment.TemplateHash(a, nil), deployment.TemplateHash(b, nil))
		}
		if out.EqualIgnoringHash && !maps.Equal(labels(in.A), labels(in.B)) {
			// The reference looks at the labels of one side only, and takes a missing
			// one for an empty one.
			require.False(t, got)
			return
		}
		require.Equal(t, out.EqualIgnoringHash, got)
	})
}

func TestRevisionsAreThoseOfTheReference(t *testing.T) {
	type in struct{ Revisions []*string }
	type out struct{ Last, Max int64 }
	walk(t, "revisions", func(t *testing.T, in in, out out) {
		var list []*v1alpha1.MachineSet
		for _, r := range in.Revisions {
			s := &v1alpha1.MachineSet{}
			if r != nil {
				s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: *r}
			}
			list = append(list, s, nil)
		}
		require.Equal(t, out.Max, deployment.MaxRevision(list))
		require.Equal(t, out.Last, deployment.LastRevision(list))
	})
}

func TestHistoryCleanupIsThatOfTheReference(t *testing.T) {
	type in struct {
		OldMSs               []*goldenSet
		RevisionHistoryLimit *int32
	}
	type out struct{ Deleted []string }
	walk(t, "history_cleanup", func(t *testing.T, in in, out out) {
		var got []string
		for _, s := range deployment.HistoryCleanup(sets(in.OldMSs), in.RevisionHistoryLimit) {
			got = append(got, s.Name)
		}
		require.ElementsMatch(t, out.Deleted, got)
		if len(out.Deleted) > 0 {
			require.Equal(t, out.Deleted, got, "in order")
		}
	})
}

func TestValidationIsThatOfTheReference(t *testing.T) {
	type in struct {
		MachineDeployment   goldenDeployment
		SelectorMatchLabels map[string]string
	}
	type problem struct{ Type, Field, Detail string }
	type out struct{ Errors []problem }
	walk(t, "validation_machinedeployment", func(t *testing.T, in in, out out) {
		d := in.MachineDeployment.object(t)
		d.Spec.Selector.MatchLabels = in.SelectorMatchLabels
		got := []problem{}
		for _, e := range deployment.Validate(d) {
			kind := map[field.ErrorType]string{field.ErrorTypeRequired: "FieldValueRequired", field.ErrorTypeInvalid: "FieldValueInvalid"}[e.Type]
			got = append(got, problem{kind, e.Field, e.Detail})
		}
		require.Equal(t, out.Errors, got)
	})
}

func TestNameSuffixIsThatOfTheReference(t *testing.T) {
	type out struct{ HashLabel, NameSuffix string }
	walk(t, "hash_names", func(t *testing.T, _ json.RawMessage, out out) {
		require.Equal(t, out.NameSuffix, deployment.NameSuffix(out.HashLabel))
	})
}

func TestProgressIsThatOfTheReference(t *testing.T) {
	type in struct {
		Generation              int64
		NewStatus, OldStatus    goldenStatus
		ProgressDeadlineSeconds *int32
		ProgressingCondition    *goldenCondition
		Replicas                int32
	}
	type out struct{ Complete, Progressing, TimedOut bool }
	walk(t, "deployment_progress", func(t *testing.T, in in, want out) {
		d := &v1alpha1.MachineDeployment{}
		d.Generation, d.Spec.Replicas, d.Spec.ProgressDeadlineSeconds = in.Generation, in.Replicas, in.ProgressDeadlineSeconds
		from, to := in.OldStatus.deployment(), in.NewStatus
		if in.ProgressingCondition != nil {
			in.ProgressingCondition.Type = "Progressing"
			to.Conditions = append(to.Conditions, *in.ProgressingCondition)
		}
		status := to.deployment()
		require.Equal(t, want, out{deployment.Complete(d, status), deployment.Progressing(from, status), deployment.TimedOut(d, status, base)})
	})
}

type goldenStatusOut struct {
	Replicas, UpdatedReplicas, ReadyReplicas, AvailableReplicas int32
	UnavailableReplicas, PreservedFailedReplicas                int32
	ObservedGeneration                                          int64
	CollisionCount                                              *int32
	Conditions                                                  []goldenCondition
	FailedMachines                                              []string
	StatusWritten                                               bool
}

func plain(list []v1alpha1.MachineDeploymentCondition) []goldenCondition {
	out := []goldenCondition{}
	for _, c := range list {
		out = append(out, goldenCondition{Type: string(c.Type), Status: string(c.Status), Reason: c.Reason, Message: c.Message})
	}
	return out
}

func TestStatusIsThatOfTheReference(t *testing.T) {
	walk(t, "machinedeployment_status", func(t *testing.T, in goldenWorld, out goldenStatusOut) {
		d, newSet, old := in.objects(t)
		before := d.DeepCopy()
		got := deployment.Status(d, newSet, old, base)
		require.Equal(t, before, d)
		require.Equal(t, out.Conditions, plain(got.Conditions))
		names := []string{}
		for _, m := range got.FailedMachines {
			names = append(names, m.Name)
		}
		require.Equal(t, out.FailedMachines, names)
		shown := goldenStatusOut{
			got.Replicas, got.UpdatedReplicas, got.ReadyReplicas, got.AvailableReplicas, got.UnavailableReplicas, got.PreservedFailedReplicas,
			got.ObservedGeneration, got.CollisionCount, plain(got.Conditions), names, false,
		}
		require.Equal(t, out, shown)
	})
}

func TestRolloutStatusIsThatOfTheReference(t *testing.T) {
	walk(t, "rollout_status", func(t *testing.T, in goldenWorld, out goldenStatusOut) {
		d, newSet, old := in.objects(t)
		got, expires := deployment.RolloutStatus(d, newSet, old, base)
		require.True(t, expires.IsZero() || expires.After(base))
		require.Equal(t,
			[]int64{int64(out.Replicas), int64(out.UpdatedReplicas), int64(out.ReadyReplicas), int64(out.AvailableReplicas), int64(out.UnavailableReplicas), out.ObservedGeneration},
			[]int64{int64(got.Replicas), int64(got.UpdatedReplicas), int64(got.ReadyReplicas), int64(got.AvailableReplicas), int64(got.UnavailableReplicas), got.ObservedGeneration})
		stored := deployment.GetCondition(d.Status, v1alpha1.MachineDeploymentProgressing)
		which := func(now, then time.Time) string {
			if stored != nil && now.Equal(then) {
				return "kept"
			}
			require.Equal(t, base, now)
			return "new"
		}
		conditions := plain(got.Conditions)
		for i, c := range got.Conditions {
			if c.Type != v1alpha1.MachineDeploymentProgressing {
				continue
			}
			var was v1alpha1.MachineDeploymentCondition
			if stored != nil {
				was = *stored
			}
			conditions[i].LastUpdateTime = which(c.LastUpdateTime.Time, was.LastUpdateTime.Time)
			conditions[i].LastTransitionTime = which(c.LastTransitionTime.Time, was.LastTransitionTime.Time)
		}
		require.Equal(t, out.Conditions, conditions)
	})
}
