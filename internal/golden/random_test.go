// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestModels_RandomWorlds_EqualOrDeviation treats results of the models for random inputs as
// vectors, which the readers have to understand.
func TestModels_RandomWorlds_EqualOrDeviation(t *testing.T) {
	const worlds = 400
	for name, try := range map[string]func(r *rand.Rand) (any, []string, error){
		"rolling_step": tried(rollingModel, rollingStep, func(r *rand.Rand) world { return randomWorld(r, "RollingUpdate", false) }),
		"scale": tried(func(in world, m mended) scaleOut { return scaleModel(in, m).out() }, scale, func(r *rand.Rand) world {
			return randomWorld(r, pick(r, "RollingUpdate", "RollingUpdate", "Recreate", "InPlaceUpdate"), true)
		}),
		"inplace_step":     tried(inPlaceModel, inPlaceStep, randomInPlace),
		"trigger_deletion": tried(triggerModel, triggerDeletion, randomTrigger),
		"manage_replicas":  tried(manageModel, manageReplicas, randomSet),
		"scale_down_order": tried(orderModel, scaleDownOrder, func(r *rand.Rand) scaleDownOrderIn { return scaleDownOrderIn{randomSet(r).Machines} }),
		"machineset_status": tried(statusModel, machineSetStatus, func(r *rand.Rand) machineSetStatusIn {
			set := randomSet(r)
			return machineSetStatusIn{set.MachineSet, set.Machines, pick(r, ptr.To("quota exceeded"), nil)}
		}),
		"set_new_ms_annotations": tried(newAnnotationsModel, setNewAnnotations, func(r *rand.Rand) setNewAnnotationsIn {
			return setNewAnnotationsIn{
				Exists: r.IntN(2) == 0, bounded: bounded{MaxSurge: randomBound(r, 3), MaxUnavailable: randomBound(r, 3), Replicas: r.Int32N(5), Strategy: "RollingUpdate"},
				MDAnnotations: randomAnnotations(r), MSAnnotations: randomAnnotations(r), NewRevision: pick(r, "1", "4", "12", "bad"),
			}
		}),
		"sync_existing_new_ms": tried(syncModel, syncExistingNewSet, randomSync),
		"rollback":             tried(rollbackModel, rollback, randomRollback),
		"get_proportion": tried(func(in getProportionIn, m mended) getProportionOut {
			return getProportionOut{proportionModel(in.share(), m)}
		}, getProportion, func(r *rand.Rand) getProportionIn {
			in := getProportionIn{
				bounded:    bounded{MaxSurge: randomBound(r, 4), MaxUnavailable: randomBound(r, 4), Strategy: "RollingUpdate", Replicas: r.Int32N(9)},
				MSReplicas: r.Int32N(9), ReplicasAdded: r.Int32N(9) - 4, ReplicasToAdd: r.Int32N(19) - 9, StatusReplicas: 1 + r.Int32N(9),
			}
			if r.IntN(2) == 0 {
				in.MaxReplicasAnnotation = ptr.To(pick(r, "0", "-3", "5", "9", "x"))
			}
			return in
		}),
		"safety_freeze": tried(freezeModel, safetyFreeze, randomFreeze),
	} {
		t.Run(name, func(t *testing.T) {
			c := counts{deviations: map[string]int{}}
			for seed := range uint64(worlds) {
				in, deviations, err := try(rand.New(rand.NewPCG(seed, 1)))
				c.count(deviations, err)
				if err != nil && c.failed <= 5 {
					text, _ := json.Marshal(in)
					t.Errorf("seed %d: %v\n%s", seed, err, text)
				}
			}
			t.Logf("%d worlds: %d equal, %d failed, %v", c.n, c.equal, c.failed, c.deviations)
		})
	}
}

// tried judges what a model answers for a random input, which it returns.
func tried[In, Out any](model func(In, mended) Out, judge func(In, Out) ([]string, error), random func(*rand.Rand) In) func(*rand.Rand) (any, []string, error) {
	return func(r *rand.Rand) (any, []string, error) {
		in := random(r)
		deviations, err := judge(in, model(in, nil))
		return in, deviations, err
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomBound(r *rand.Rand, most int) bound {
	var b bound
	text := fmt.Sprint(r.IntN(most + 1))
	if r.IntN(2) == 0 {
		text = fmt.Sprintf(`"%d%%"`, r.IntN(100))
	}
	if err := b.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return b
}

// randomWorld has a new set and up to three old ones. What sets report is often,
// but not always, what they were asked for.
func randomWorld(r *rand.Rand, strategy string, scaling bool) world {
	desired := int32(r.IntN(15))
	g := world{MachineDeployment: machineDeployment{
		Name: "md", Replicas: desired, Strategy: strategy, OrchestrationType: "Auto",
		MaxSurge: randomBound(r, 4), MaxUnavailable: randomBound(r, 4), Paused: scaling && r.IntN(3) == 0,
	}}
	set := func(name string, created int) *machineSet {
		s := &machineSet{Name: name, CreatedOffset: created, Replicas: int32(r.IntN(int(desired) + 4))}
		if r.IntN(3) == 0 {
			s.Replicas = 0
		}
		s.Status.Replicas = s.Replicas
		if r.IntN(3) == 0 {
			s.Status.Replicas = int32(r.IntN(int(desired) + 4))
		}
		s.Status.AvailableReplicas = pick(r, s.Status.Replicas, s.Status.Replicas, int32(r.IntN(int(s.Status.Replicas)+1)))
		if scaling && r.IntN(8) > 0 {
			was := int32(r.IntN(15))
			s.Annotations = map[string]string{
				"deployment.kubernetes.io/desired-replicas": fmt.Sprint(was),
				"deployment.kubernetes.io/max-replicas":     fmt.Sprint(was + int32(r.IntN(4))),
			}
		}
		return s
	}
	if !scaling || r.IntN(6) > 0 {
		g.NewMS = set("new", 100)
	}
	for i := range r.IntN(4) {
		s := set(fmt.Sprint("old", i), 10*i)
		g.OldMSs = append(g.OldMSs, s)
		g.MachineDeployment.Status.Replicas += s.Status.Replicas
	}
	return g
}

// randomInPlace is a world in the midst of an update in place, whose old machines
// are those that the sets report. All sets together are asked for the replicas, or
// for one or two machines more.
func randomInPlace(r *rand.Rand) inPlaceStepIn {
	w := randomWorld(r, "InPlaceUpdate", false)
	w.MachineDeployment.OrchestrationType = pick(r, "Auto", "Auto", "Manual")
	in := inPlaceStepIn{w.MachineDeployment, w.NewMS, w.OldMSs, map[string][]oldMachine{}}
	left := w.MachineDeployment.Replicas + int32(r.IntN(3))
	w.NewMS.Replicas = min(w.NewMS.Replicas, w.MachineDeployment.Replicas, left)
	left -= w.NewMS.Replicas
	for i, s := range w.OldMSs {
		if s.Replicas = min(s.Replicas, left); i == len(w.OldMSs)-1 {
			s.Replicas = left
		}
		left -= s.Replicas
	}
	if left > 0 {
		w.NewMS.Replicas = w.MachineDeployment.Replicas
	}
	w.NewMS.Status.Replicas = w.NewMS.Replicas
	w.NewMS.Status.AvailableReplicas = min(w.NewMS.Replicas, w.NewMS.Status.AvailableReplicas)
	for _, s := range w.OldMSs {
		s.Status.Replicas, s.Status.AvailableReplicas = s.Replicas, 0
		for i := range s.Replicas {
			m := oldMachine{Machine: fmt.Sprintf("%s-m%d", s.Name, i), HasNode: r.IntN(6) > 0, CandidateForUpdate: r.IntN(6) > 0, Phase: v1alpha1.MachineRunning}
			if m.HasNode && m.CandidateForUpdate && r.IntN(3) == 0 {
				m.SelectedForUpdate = true
				m.UpdateResult = pick(r, "", "", "failed", "successful")
				switch m.UpdateResult {
				case "failed":
					m.InPlaceConditionReason, m.Phase = "UpdateFailed", "InPlaceUpdateFailed"
				case "successful":
					m.InPlaceConditionReason, m.Phase = "UpdateSuccessful", "InPlaceUpdateSuccessful"
				default:
					m.InPlaceConditionReason = pick(r, "SelectedForUpdate", "ReadyForUpdate")
				}
				if m.InPlaceConditionReason == "ReadyForUpdate" {
					m.Phase = "InPlaceUpdating"
				}
			}
			s.Status.AvailableReplicas += one(m.Phase == v1alpha1.MachineRunning)
			in.OldMachines[s.Name] = append(in.OldMachines[s.Name], m)
		}
	}
	return in
}

func randomTrigger(r *rand.Rand) triggerDeletionIn {
	in := triggerDeletionIn{Annotations: map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: "2026-01-01T00:00:50Z"}}
	text := ""
	for i := range r.IntN(4) {
		if i > 0 {
			text += ","
		}
		text += pick(r, "m0", "m1", "m2", "m3", "") + pick(r, "", "~2026-01-01T00:01:40Z", "~2026-01-01T00:01:41Z", "~bad", "~x~y")
	}
	if r.IntN(5) > 0 {
		in.Annotations[triggerKey] = text
	}
	for i := range 1 + r.IntN(4) {
		m := machine{Name: fmt.Sprint("m", i), Phase: pick[v1alpha1.MachinePhase](r, "Running", "Pending", "Failed", "Terminating"), Deleting: r.IntN(4) == 0}
		m.Annotations = pick(r, nil, nil, map[string]string{v1alpha1.MachinePriority: "1"}, map[string]string{v1alpha1.MachinePriority: "3"},
			map[string]string{v1alpha1.MachinePriority: pick(r, "1", "3"), v1alpha1.MarkedForDeletionTime: "2026-01-01T00:00:05Z"})
		in.Machines = append(in.Machines, m)
	}
	return in
}

func randomFreeze(r *rand.Rand) safetyFreezeIn {
	in := safetyFreezeIn{
		MachineCount: r.IntN(15), SafetyUp: int32(r.IntN(4)), SafetyDown: int32(r.IntN(4)),
		MachineSet: machineSet{Name: "ms", Replicas: int32(r.IntN(6)), Labels: pick(r, nil, map[string]string{"freeze": "True"}, map[string]string{"freeze": "true"})},
	}
	if r.IntN(2) == 0 {
		in.MachineSet.Status.Conditions = []condition{{Type: "Frozen", Status: pick(r, "True", "False"), Reason: pick(r, "OverShootingReplicaCount", "x")}}
	}
	if r.IntN(3) > 0 {
		in.MachineDeployment = &machineDeployment{
			Name: "md", Replicas: int32(r.IntN(6)), Strategy: pick(r, "RollingUpdate", "InPlaceUpdate"), OrchestrationType: pick(r, "Auto", "Manual", ""),
			MaxSurge: pick(r, randomBound(r, 4), number(-1)), MaxUnavailable: pick(r, randomBound(r, 3), bound{}),
		}
	}
	return in
}

// randomSet is a set with machines in all states, each with a Node or without.
func randomSet(r *rand.Rand) manageReplicasIn {
	in := manageReplicasIn{FailCreateFrom: pick(r, 0, 0, 1, 3), MachineSet: machineSet{Name: "ms", Replicas: r.Int32N(8)}}
	in.MachineSet.Labels = pick(r, nil, nil, nil, map[string]string{"freeze": "True"}, map[string]string{v1alpha1.LabelKeyMachineSetScaleUpDisabled: ""})
	if r.IntN(2) == 0 {
		in.MachineSet.Annotations = map[string]string{v1alpha1.LastDeploymentReplicaChangeByScalerTime: "2026-01-01T00:01:00Z"}
	}
	in.MachineSet.Template = &template{Labels: map[string]string{"app": "w"}, ClassKind: "MachineClass", ClassName: "c1"}
	if r.IntN(3) == 0 {
		in.MachineSet.Status.Conditions = []condition{{Type: pick(r, "ReplicaFailure", "Frozen"), Status: "True", Reason: "x", Message: "y"}}
	}
	for i := range r.IntN(10) {
		m := machine{
			Name: fmt.Sprintf("m%02d", i), CreatedOffset: r.IntN(4), Deleting: r.IntN(6) == 0, Annotations: map[string]string{},
			Phase: pick[v1alpha1.MachinePhase](r, "", "Pending", "Available", "Running", "Running", "Unknown", "Failed", "Failed", "CrashLoopBackOff", "Terminating",
				"InPlaceUpdating", "InPlaceUpdateSuccessful", "InPlaceUpdateFailed"),
			Node:               pick(r, "", fmt.Sprint("n", i)),
			Labels:             pick(r, nil, map[string]string{"app": "w"}, map[string]string{"app": "w", v1alpha1.LabelKeyNodeUpdateResult: pick(r, "successful", "failed")}),
			LastOperationState: pick[v1alpha1.MachineState](r, "", "Failed", "Processing"),
			Owner:              pick(r, "ms", "ms", ""),
		}
		for k, v := range map[string]string{
			v1alpha1.MachinePriority:              pick(r, "", "1", "2", "x", "-1"),
			v1alpha1.MarkedForDeletionTime:        pick(r, "", "2026-01-01T00:00:30Z", "2026-01-01T00:02:00Z", "bad"),
			v1alpha1.PreserveMachineAnnotationKey: pick(r, "", "", "now", "when-failed", "auto-preserved", "false", "junk"),
		} {
			if v != "" {
				m.Annotations[k] = v
			}
		}
		if r.IntN(3) == 0 {
			m.PreserveExpiryInSeconds = ptr.To(pick(r, -3600, 3600, 7200))
		}
		in.Machines = append(in.Machines, m)
	}
	return in
}

func randomAnnotations(r *rand.Rand) map[string]string {
	a := map[string]string{}
	for k, v := range map[string]string{
		"a": pick(r, "", "1", "2"), "b": pick(r, "", "1"), v1alpha1.RevisionAnnotation: pick(r, "", "1", "4", "9", "bad"),
		v1alpha1.RevisionHistoryAnnotation: pick(r, "", "1", "1,2", ",1"), v1alpha1.DesiredReplicasAnnotation: pick(r, "", "3"),
		v1alpha1.PreferNoScheduleKey: pick(r, "", "True"), v1alpha1.TriggerDeletionByMCM: pick(r, "", "x"),
	} {
		if v != "" {
			a[k] = v
		}
	}
	return a
}

func randomTemplate(r *rand.Rand, class string) *template {
	t := &template{Labels: map[string]string{"app": "w"}, ClassKind: pick(r, "MachineClass", "OtherClass"), ClassName: class}
	if r.IntN(2) == 0 {
		t.NodeTemplateLabels = map[string]string{"x": pick(r, "1", "2")}
	}
	if r.IntN(2) == 0 {
		t.DrainTimeoutSeconds = ptr.To(pick(r, 60, 120))
	}
	return t
}

func randomSync(r *rand.Rand) syncIn {
	in := syncIn{
		MachineDeployment: machineDeployment{
			Name: "md", Replicas: 3, Strategy: "RollingUpdate", MaxSurge: number(1), MaxUnavailable: number(0),
			Annotations: map[string]string{v1alpha1.RevisionAnnotation: pick(r, "1", "4")}, Template: randomTemplate(r, "c1"),
		},
		NewMS: &machineSet{Name: "new", CreatedOffset: 50, Replicas: 3, Template: randomTemplate(r, "c1"), Annotations: map[string]string{
			v1alpha1.DesiredReplicasAnnotation: "3", v1alpha1.MaxReplicasAnnotation: "4", v1alpha1.RevisionAnnotation: pick(r, "1", "4", "6"),
		}},
	}
	if r.IntN(3) == 0 {
		in.MachineDeployment.Annotations["a"] = "1"
	}
	if r.IntN(2) == 0 {
		in.NewMS.Annotations[v1alpha1.RevisionHistoryAnnotation] = pick(r, "1", "1,2")
	}
	if r.IntN(2) == 0 {
		in.MachineDeployment.Status.Conditions = []condition{{Type: "Progressing", Status: "True", Reason: "NewMachineSetAvailable"}}
	}
	for range r.IntN(3) {
		in.OldRevisions = append(in.OldRevisions, pick(r, "1", "2", "5", "bad"))
	}
	return in
}

func randomRollback(r *rand.Rand) rollbackIn {
	in := rollbackIn{RollbackToRevision: r.Int64N(6)}
	n := 1 + r.IntN(4)
	for i := range n { // a template with another kind of class is refused, and not rolled back
		in.MachineSets = append(in.MachineSets, &machineSet{
			Name: fmt.Sprint("ms", i), CreatedOffset: 10 * i, Replicas: r.Int32N(3), Template: randomTemplate(r, fmt.Sprint("c", i)),
			Annotations: map[string]string{"cause": fmt.Sprint("r", i), v1alpha1.RevisionAnnotation: pick(r, fmt.Sprint(i+1), fmt.Sprint(i+1), "junk")},
		})
		in.MachineSets[i].Template.ClassKind = v1alpha1.MachineClassKind
	}
	in.MachineDeployment = machineDeployment{
		Name: "md", Replicas: 3, Strategy: "RollingUpdate", MaxSurge: number(1), MaxUnavailable: number(0),
		Annotations: map[string]string{"cause": "now", v1alpha1.RevisionAnnotation: "99"}, Template: in.MachineSets[n-1].Template,
	}
	return in
}
