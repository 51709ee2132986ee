// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

type safetyFreezeIn struct {
	MachineCount         int
	MachineDeployment    *machineDeployment
	MachineSet           machineSet
	SafetyUp, SafetyDown int32
}

type safetyFreezeOut struct {
	FrozenLabel, MDFrozenLabel string
	Conditions, MDConditions   []condition
	Events                     []string
	Error                      *string
}

// safetyFreeze compares the decision on one set and what follows for its deployment. In MCM a
// deployment follows its sets in a later step.
func safetyFreeze(in safetyFreezeIn, out safetyFreezeOut) ([]string, error) {
	set, policy := in.MachineSet.object(), safety.OvershootPolicy{Up: in.SafetyUp, Down: in.SafetyDown}
	// The vector's error is that a strategy has no surge (DS-34).
	deviations, want := []string(nil), out
	if out.Error != nil {
		deviations = []string{"DS-34"}
		want = freezeModel(in, nil)
	}
	seen := safety.OvershootObservation{Sets: []*v1alpha1.MachineSet{set}, Complete: true}
	if md := in.MachineDeployment; md != nil {
		seen.Deployments = []*v1alpha1.MachineDeployment{md.object()}
	} else {
		set.OwnerReferences = nil
	}
	state, _ := safety.StepOvershoot(safety.OvershootState{}, seen, policy, now.Add(-time.Hour))
	for i := range in.MachineCount { // created since
		m := machine{Name: fmt.Sprint("m", i), Phase: v1alpha1.MachineRunning, Labels: set.Spec.Template.Labels, Owner: set.Name}.object()
		m.CreationTimestamp = metav1.NewTime(now)
		seen.Machines = append(seen.Machines, m)
	}
	after, d := set, &v1alpha1.MachineDeployment{}
	var events []string
	_, decision := safety.StepOvershoot(state, seen, policy, now)
	for _, w := range decision.Actions {
		switch o := w.Object.(type) {
		case *v1alpha1.MachineSet: // the last update of an object has all changes
			if after = o; w.Report != nil {
				events = append(events, w.Report.String())
			}
		case *v1alpha1.MachineDeployment:
			if after != set { // the updates of sets come first
				d = o
			}
		}
	}
	got := safetyFreezeOut{after.Labels["freeze"], d.Labels["freeze"], plain(after.Status.Conditions), plain(d.Status.Conditions), events, want.Error}
	others, err := explain([]string{halfFrozen, notLowered, noMachine, manualSurge, unreadBounds, "DS-14"}, func(m mended) safetyFreezeOut { return freezeModel(in, m) }, want, got)
	return append(deviations, others...), err
}

// Faults of MCM that have no number.
const (
	// halfFrozen: a set that has the label or the condition, and lacks the other, stays so.
	halfFrozen = "half a freeze"
	// notLowered: the machines of a set whose replicas its deployment has not lowered yet
	// count as too many.
	notLowered = "replicas not lowered yet"
	// noMachine: a set without a machine has too many.
	noMachine = "too many without a machine"
	// manualSurge: an update in place that is orchestrated manually creates no machine, and
	// its surge counts all the same.
	manualSurge = "surge in place"
	// unreadBounds: the surge counts although no rollout can read the bounds.
	unreadBounds = "bounds not read"
)

// frozenSurge returns the surge by which a freeze is decided.
func (g machineDeployment) frozenSurge(m mended) int {
	surge, _ := boundsModel(g.surge(), g.MaxUnavailable.IntOrString, g.Replicas)
	switch {
	case m[manualSurge] && g.Strategy == "InPlaceUpdate" && g.OrchestrationType == "Manual", m[unreadBounds] && g.MaxUnavailable.IntOrString == nil:
		return 0
	case m["DS-14"]:
		return max(0, int(surge))
	}
	return int(surge)
}

// freezeModel takes no surge for a surge of 0, which mends DS-34.
func freezeModel(in safetyFreezeIn, m mended) safetyFreezeOut {
	g, name := in.MachineSet, in.MachineSet.Name
	high := 2*int(g.Replicas) + int(in.SafetyUp)
	if md := in.MachineDeployment; md != nil {
		most := int(md.Replicas) + md.frozenSurge(m)
		if m[notLowered] {
			most = max(most, int(g.Replicas))
		}
		high = most + int(in.SafetyUp)
	}
	o := safetyFreezeOut{FrozenLabel: g.Labels["freeze"], Conditions: plain(g.Status.Conditions)}
	isFrozen := func(c condition) bool { return c.Type == "Frozen" }
	labeled, low := o.FrozenLabel == "True", high-int(in.SafetyDown)
	told := slices.ContainsFunc(o.Conditions, func(c condition) bool { return isFrozen(c) && c.Status == "True" })
	switch {
	case m[halfFrozen] && labeled && !told && in.MachineCount > low:
		why := condition{
			Type: "Frozen", Status: "True", Reason: "OverShootingReplicaCount",
			Message: fmt.Sprintf("MachineSet %s has %d machines and stays frozen until it has %d", name, in.MachineCount, low),
		}
		if in.MachineDeployment != nil {
			o.MDFrozenLabel, o.MDConditions = "True", []condition{why}
		}
		o.Conditions = append(slices.DeleteFunc(o.Conditions, isFrozen), why)
		o.Events = []string{"Normal FrozeMachineSet SafetyController: Froze MachineSet " + name + " due to replica overshooting"}
	case m[halfFrozen] && told && !labeled && in.MachineCount > low && in.MachineCount < high:
		o.FrozenLabel, o.Conditions = "", slices.DeleteFunc(o.Conditions, isFrozen)
		o.Events = []string{"Normal UnfrozeMachineSet SafetyController: Unfroze MachineSet " + name}
	case in.MachineCount >= high && !labeled && (!m[noMachine] || in.MachineCount > 0):
		why := condition{
			Type: "Frozen", Status: "True", Reason: "OverShootingReplicaCount",
			Message: fmt.Sprintf("The number of machines backing MachineSet: %s is %d >= %d which is the Max-ScaleUp-Limit", name, in.MachineCount, high),
		}
		o.FrozenLabel = "True"
		if in.MachineDeployment != nil {
			o.MDFrozenLabel, o.MDConditions = "True", []condition{why}
		}
		if i := slices.IndexFunc(o.Conditions, isFrozen); i < 0 || o.Conditions[i].Reason != why.Reason || o.Conditions[i].Status != "True" {
			o.Conditions = append(slices.DeleteFunc(o.Conditions, isFrozen), why)
		}
		o.Events = []string{"Normal FrozeMachineSet SafetyController: Froze MachineSet " + name + " due to replica overshooting"}
	case in.MachineCount <= high-int(in.SafetyDown) && (labeled || slices.ContainsFunc(o.Conditions, isFrozen)):
		o.FrozenLabel, o.Conditions = "", slices.DeleteFunc(o.Conditions, isFrozen)
		o.Events = []string{"Normal UnfrozeMachineSet SafetyController: Unfroze MachineSet " + name}
	}
	return o
}
