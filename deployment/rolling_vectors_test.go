// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func TestScaleTargetsAreThoseOfTheReferenceButForCutsThatGrowAndGrowthThatIsDropped(t *testing.T) {
	type set struct {
		Name                                             string
		Replicas                                         int32
		DesiredReplicasAnnotation, MaxReplicasAnnotation *string
	}
	type out struct {
		Events      []string
		MachineSets []set
	}
	seen := map[string]int{}
	walk(t, "scale", func(t *testing.T, in goldenWorld, out out) {
		d, newSet, old := in.objects(t)
		targets := deployment.ScaleTargets(d, newSet, old)
		size, events := map[string]int32{}, []string{}
		var before, after, wanted int64
		grew := false
		for _, s := range append(slices.Clone(old), newSet) {
			if s != nil {
				size[s.Name] = s.Spec.Replicas
				before += int64(s.Spec.Replicas)
			}
		}
		for _, w := range out.MachineSets {
			wanted += int64(w.Replicas)
			grew = grew || w.Replicas > size[w.Name]
		}
		for _, x := range targets {
			action := deployment.Scale{Name: x.Set.Name, From: x.Set.Spec.Replicas, To: x.To}
			if e := action.Event(); e != nil {
				events = append(events, e.String())
			}
			size[x.Set.Name] = x.To
		}
		for _, n := range size {
			after += int64(n)
		}
		most := int64(d.Spec.Replicas) + int64(max(0, deployment.MaxSurge(d)))
		several := deployment.ActiveOrLatest(newSet, old) == nil && d.Spec.Strategy.Type == v1alpha1.RollingUpdateMachineDeploymentStrategyType
		switch {
		case several && before > most && (grew || wanted > most):
			seen["DS-12"]++ // a cut that grows a set, or does not arrive
			require.Equal(t, most, after)
			for _, x := range targets {
				require.LessOrEqual(t, x.To, x.Set.Spec.Replicas)
			}
		case several && before < most && wanted == before && (newSet == nil || newSet.Spec.Replicas == 0):
			seen["DS-13"]++ // growth that no set takes
			require.Equal(t, most, after)
		default:
			for _, w := range out.MachineSets {
				require.Equal(t, w.Replicas, size[w.Name], w.Name)
			}
			require.Equal(t, out.Events, events)
		}
	})
	t.Log(seen)
}

func TestOneRollingStepIsThatOfTheReferenceWhereItIsSafe(t *testing.T) {
	type out struct {
		NewSetScaled, OldSetsScaledDown bool
		Replicas                        map[string]int32
	}
	seen := map[string]int{}
	walk(t, "rolling_step", func(t *testing.T, in goldenWorld, out out) {
		d, newSet, old := in.objects(t)
		for _, s := range old {
			s.Spec.Template.Spec.Class.Name = "before"
		}
		newSet.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "1"}
		all := append(slices.Clone(old), newSet)
		got := map[string]int32{}
		var counted, reported, sure int64
		settled, broken, overfull := true, false, false
		for _, s := range all {
			got[s.Name] = s.Spec.Replicas
			counted += int64(max(s.Spec.Replicas, s.Status.Replicas))
			reported += int64(s.Status.Replicas)
			settled = settled && s.Spec.Replicas == s.Status.Replicas
			broken = broken || s.Spec.Replicas > s.Status.AvailableReplicas
			overfull = overfull || s != newSet && s.Spec.Replicas > 0 && s.Status.AvailableReplicas > s.Spec.Replicas
			sure += int64(max(0, s.Status.AvailableReplicas-max(0, s.Status.Replicas-s.Spec.Replicas)))
		}
		dec := deployment.Decide(deployment.Observation{Deployment: d, Sets: all, Complete: true}, deployment.Policy{}, base)
		for _, a := range dec.Actions {
			if s, ok := a.(deployment.Scale); ok {
				require.Equal(t, got[s.Name], s.From)
				got[s.Name] = s.To
			}
		}
		most := int64(d.Spec.Replicas) + int64(max(0, deployment.MaxSurge(d)))
		least := min(int64(deployment.MinAvailable(d)), sure)
		if settled && newSet.Status.AvailableReplicas == newSet.Spec.Replicas && cutBy(all, got) == 1 {
			least-- // the way out of a deadlock
		}
		require.GreaterOrEqual(t, worst(all, got), least)
		switch {
		case maps.Equal(out.Replicas, got):
			seen["same"]++
		case counted != reported && out.NewSetScaled:
			seen["DS-1"]++ // machines that are asked for and not reported
			require.LessOrEqual(t, counted+int64(got[newSet.Name]-newSet.Spec.Replicas), max(counted, most))
		case out.Replicas[newSet.Name] > newSet.Spec.Replicas && newSet.Status.Replicas > newSet.Spec.Replicas:
			seen["DS-1"]++ // new machines come on top of those that are being deleted
			require.Equal(t, newSet.Spec.Replicas, got[newSet.Name])
		case overfull:
			seen["DS-11"]++ // more available than asked for: the reference gives up
			require.GreaterOrEqual(t, cutBy(all, got), cutBy(all, out.Replicas))
		case broken || !settled:
			seen["DS-10"]++ // counts on unavailable machines being deleted first
			require.LessOrEqual(t, cutBy(all, got), cutBy(all, out.Replicas))
			require.Less(t, worst(all, out.Replicas), least, "the reference is not safe here")
		default:
			require.Equal(t, out.Replicas, got)
		}
	})
	t.Log(seen)
}

func cutBy(all []*v1alpha1.MachineSet, size map[string]int32) int64 {
	var n int64
	for _, s := range all {
		n += int64(s.Spec.Replicas - size[s.Name])
	}
	return n
}

// worst is how many machines stay available if sets delete available ones first.
func worst(all []*v1alpha1.MachineSet, size map[string]int32) int64 {
	var left int64
	for _, s := range all {
		exist := max(s.Status.Replicas, s.Spec.Replicas)
		left += int64(max(0, s.Status.AvailableReplicas-max(0, exist-size[s.Name])))
	}
	return left
}

func TestPropagationIsThatOfTheReferenceButForTheHistory(t *testing.T) {
	type in struct {
		MachineDeployment goldenDeployment
		NewMS             *goldenSet
		OldRevisions      []string
	}
	type out struct {
		Conditions                          []goldenCondition
		MachineDeploymentRevisionAnnotation string
		MachineSet                          struct {
			Annotations         map[string]string
			ClassKind           string
			DrainTimeoutSeconds *int
			NodeTemplateLabels  map[string]string
		}
		Writes []string
	}
	walk(t, "sync_existing_new_ms", func(t *testing.T, in in, out out) {
		d, newSet := in.MachineDeployment.object(t), in.NewMS.object()
		all := []*v1alpha1.MachineSet{newSet}
		for i, r := range in.OldRevisions {
			s := &v1alpha1.MachineSet{}
			s.Name, s.Annotations = "old"+strconv.Itoa(i), map[string]string{v1alpha1.RevisionAnnotation: r}
			s.Spec.Template.Spec.Class.Name = "before"
			all = append(all, s)
		}
		dec := deployment.Decide(deployment.Observation{Deployment: d, Sets: all, Complete: true}, deployment.Policy{}, base)
		after, revision := newSet, d.Annotations[v1alpha1.RevisionAnnotation]
		updates := 0
		for _, a := range dec.Actions {
			switch a := a.(type) {
			case deployment.UpdateSet:
				after = a.Set
				updates++
			case deployment.Annotate:
				revision = a.Annotations[v1alpha1.RevisionAnnotation]
			}
		}
		want := out.MachineSet.Annotations
		was := newSet.Annotations
		delete(want, v1alpha1.RevisionHistoryAnnotation) // DS-19: it grows with every change
		if h, ok := was[v1alpha1.RevisionHistoryAnnotation]; ok {
			want[v1alpha1.RevisionHistoryAnnotation] = h
		}
		if r, ok := was[v1alpha1.RevisionAnnotation]; ok && r != want[v1alpha1.RevisionAnnotation] {
			h := want[v1alpha1.RevisionHistoryAnnotation]
			if h != "" {
				h += ","
			}
			want[v1alpha1.RevisionHistoryAnnotation] = h + r
		}
		require.Equal(t, want, after.Annotations)
		require.Equal(t, out.MachineSet.ClassKind, after.Spec.Template.Spec.Class.Kind)
		require.Equal(t, out.MachineSet.NodeTemplateLabels, after.Spec.Template.Spec.NodeTemplateSpec.Labels)
		require.Equal(t, out.MachineSet.DrainTimeoutSeconds != nil, after.Spec.Template.Spec.MachineConfiguration != nil)
		require.Equal(t, out.MachineDeploymentRevisionAnnotation, revision)
		require.Equal(t, slices.Contains(out.Writes, "update machinesets new"), updates == 1)
		progressing := func(list []goldenCondition) []goldenCondition {
			return slices.DeleteFunc(list, func(c goldenCondition) bool { return c.Type != "Progressing" })
		}
		if updates == 1 || len(progressing(out.Conditions)) == 0 || out.Conditions[0].Reason == v1alpha1.FoundNewMachineSet {
			require.Equal(t, progressing(out.Conditions), progressing(plain(dec.Status.Conditions)))
		}
	})
}
