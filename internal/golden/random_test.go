// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// What the twins say of worlds that nobody has recorded is as good as a vector:
// the readers have to know what to make of it.
func TestWhatTheTwinsSayOfOtherWorldsIsEqualOrADeviation(t *testing.T) {
	const worlds = 1500
	for name, try := range map[string]func(r *rand.Rand) (any, []string, error){
		"rolling_step": func(r *rand.Rand) (any, []string, error) {
			in := randomWorld(r, "RollingUpdate", false)
			return tried(in, rollingTwin(in, nil), rollingStep)
		},
		"scale": func(r *rand.Rand) (any, []string, error) {
			in := randomWorld(r, pick(r, "RollingUpdate", "RollingUpdate", "Recreate", "InPlaceUpdate"), true)
			return tried(in, scaleTwin(in, nil).out(), scale)
		},
		"inplace_step": func(r *rand.Rand) (any, []string, error) {
			in := randomInPlace(r)
			return tried(in, inPlaceTwin(in, nil), inPlaceStep)
		},
		"trigger_deletion": func(r *rand.Rand) (any, []string, error) {
			in := randomTrigger(r)
			return tried(in, triggerTwin(in), triggerDeletion)
		},
		"safety_freeze": func(r *rand.Rand) (any, []string, error) {
			in := randomFreeze(r)
			return tried(in, freezeTwin(in), safetyFreeze)
		},
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

func tried[In, Out any](in In, out Out, judge func(In, Out) ([]string, error)) (any, []string, error) {
	deviations, err := judge(in, out)
	return in, deviations, err
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
			Name: "md", Replicas: int32(r.IntN(6)), Strategy: pick(r, "RollingUpdate", "InPlaceUpdate"), OrchestrationType: "Auto",
			MaxSurge: randomBound(r, 3), MaxUnavailable: randomBound(r, 3),
		}
	}
	return in
}
