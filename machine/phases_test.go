// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The phases, in few letters.
const (
	pending   = v1alpha1.MachinePending
	available = v1alpha1.MachineAvailable
	running   = v1alpha1.MachineRunning
	unknown   = v1alpha1.MachineUnknown
	failed    = v1alpha1.MachineFailed
	clbf      = v1alpha1.MachineCrashLoopBackOff
	leavesNow = v1alpha1.MachineTerminating
	updating  = v1alpha1.MachineInPlaceUpdating
	updated   = v1alpha1.MachineInPlaceUpdateSuccessful
	unupdated = v1alpha1.MachineInPlaceUpdateFailed
)

// phaseChange is a change of the phase.
type phaseChange struct{ from, to v1alpha1.MachinePhase }

// routine reports whether a change is part of the life of a machine without failures, which has no
// Events. All others are trouble, or its end.
func routine(c phaseChange) bool {
	return c.to == leavesNow || (c.from == "" || c.from == pending) && (c.to == pending || c.to == running || c.to == available)
}

// TestTransitions_RandomWorlds_MatchTheTable walks observations of any kind:
// each change of phase that is decided is a row of the table, and each row comes
// to pass from each of its phases.
func TestTransitions_RandomWorlds_MatchTheTable(t *testing.T) {
	t.Parallel()
	table := machine.Transitions()
	seen := map[phaseChange]int{}
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 11))
		in, p := anyLife(r), anyPolicy(r)
		c, d, u := nextPhase(t, seed, in, p)
		if u == nil {
			continue
		}
		require.True(t, slices.ContainsFunc(table, func(row machine.Transition) bool {
			return row.To == c.to && (row.From == nil || slices.Contains(row.From, c.from))
		}), "seed %d: %s to %s is no row of the table: %s", seed, c.from, c.to, d)
		require.Equal(t, c.to == v1alpha1.MachinePending, u.Status.CurrentStatus.TimeoutActive, "seed %d", seed)
		phase := slices.ContainsFunc(machine.Events(in.Machine, u), func(e machinist.Event) bool { return e.Reason == machinist.Reason(c.to) })
		require.Equal(t, !routine(c), phase, "seed %d: %s has no Event, or one too many", seed, d)
		seen[c]++
	}
	for _, row := range table {
		from := row.From
		if from == nil {
			from = slices.DeleteFunc(slices.Clone(allPhases), func(p v1alpha1.MachinePhase) bool { return seen[phaseChange{p, row.To}] == 0 })
			require.NotEmpty(t, from, "nothing leads to %s", row.To)
		}
		for _, p := range from {
			require.NotZero(t, seen[phaseChange{p, row.To}], "%s to %s: never from %q", row.Why, row.To, p)
		}
	}
}

// nextPhase carries out what is decided until the phase changes, and returns the
// machine then, or nil if it does not.
func nextPhase(t *testing.T, seed uint64, in machine.Observation, p machine.Policy) (phaseChange, machine.Decision, *v1alpha1.Machine) {
	t.Helper()
	for range 12 {
		d, was := machine.Decide(in, p, now), in.Machine.Status.CurrentStatus
		if m := statusOf(d.Action); m != nil {
			is := m.Status.CurrentStatus
			if is.Phase != was.Phase {
				return phaseChange{was.Phase, is.Phase}, d, m
			}
			require.True(t, was.LastUpdateTime.IsZero() || was.LastUpdateTime.After(now) || was.LastUpdateTime.Equal(&is.LastUpdateTime),
				"seed %d: %s moves what timeouts are counted from", seed, d)
		}
		if !carriedOut(&in, d.Action) {
			break
		}
	}
	return phaseChange{}, machine.Decision{}, nil
}

// situation is a row of the consolidated table of phase transitions: what is
// observed, and what the next change of status says, as phase, type and state of
// the operation, and timeoutActive.
type situation struct {
	name string
	in   machine.Observation
	want string
	// deviates says why this is not what MCM does.
	deviates string
}

// stays is what is wanted if the status does not change.
const stays = "unchanged"

var (
	callFailed   = func(code codes.Code) change { return failure(driver.OpCreateMachine, code, 0, machine.NotLooked) }
	ofAnother    = onNode(func(n *corev1.Node) { unmark(n).Labels[v1alpha1.MachineNameLabelKey] = "other" })
	longUpdating = entered(20 * time.Minute)
	// askedFor is an update in place that has come to a step.
	atStep = func(reason string) change {
		return func(in *machine.Observation) {
			labeled("candidate selected")(in)
			updates(reason)(in)
		}
	}
	// keptNow is what a preserved machine looks like whose Node knows of it.
	keptNow = spec(func(m *v1alpha1.Machine) {
		m.Annotations = map[string]string{v1alpha1.PreserveMachineAnnotationKey: "now"}
		m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now.Add(time.Hour)}
	})
	patient = config(&v1alpha1.MachineConfiguration{DisableHealthTimeout: ptr.To(true)})
)

// consolidated are the rows, in the order of the specification of the reference
// system.
func consolidated() []situation {
	return []situation{
		{"a VM that was made is written down first", after(intended, seen(machine.Uninitialized)), stays, ""},
		{"a new machine with its VM has to join", after(intended, withID, seen(machine.Present)), "Pending Create Processing true", ""},
		{"so has one that had trouble", living(clbf, seen(machine.Present)), "Pending Create Processing true", ""},
		{"without a cluster it is available", after(intended, withID, noTarget, seen(machine.Present)), "Available Create Successful false", ""},
		{"also after trouble", living(clbf, noTarget, seen(machine.Present)), "Available Create Successful false", ""},
		{"a driver that fails in time is asked again", after(intended, callFailed(codes.Internal)), "CrashLoopBackOff Create Failed false", ""},
		{"a machine for which a VM was asked for is in trouble without its class", after(intended, noClass), "CrashLoopBackOff Create Failed false", "told in the status (DM-47)"},
		{"a driver that fails too late fails the machine", after(intended, old, callFailed(codes.Internal)), "Failed Create Failed false", ""},
		{"also after trouble", after(phase(clbf), old, callFailed(codes.Internal)), "Failed Create Failed false", ""},
		{"the Node of another fails a machine that is to join", living(pending, intended, healthy, ofAnother), "Failed Create Failed false", ""},
		{"a healthy Node runs", living(pending, intended, healthy), "Running Create Successful false", ""},
		{"not before its critical components", living(pending, intended, healthy, copied, taint, looked), stays, ""},
		{"who does not join in time fails", living(pending, old, operation("Update", "Processing", "", "")), "Failed Update Failed false", ""},
		{"one in trouble is made before it runs", living(clbf, healthy, seen(machine.Present)), "Pending Create Processing true", "it was not made yet (DM-31)"},
		{"one that failed runs if its Node became Ready afterwards", living(failed, readyAt(time.Second)), "Running HealthCheck Successful false", ""},
		{"also if it is preserved", living(failed, healthy, keptNow), "Running HealthCheck Successful false", ""},
		{"its creation may be unfinished", living(unknown, intended, healthy), "Running Create Successful false", ""},
		{"one that is not being deleted is created again", after(intended, phase(leavesNow)), "CrashLoopBackOff HealthCheck Processing false", "there it stays"},
		{"without a cluster it is available again", living(leavesNow, noTarget), "Available HealthCheck Processing false", "there it stays"},
		{"so is one whose cluster was taken away", living(unknown, noTarget), "Available HealthCheck Processing false", "there it stays"},
		{"one without a Node that was never seen is doubted", living(running), "Unknown HealthCheck Processing false", "there it stays Running, for ever"},
		{"one that does not recover fails, of no deployment", living(unknown, longUnknown, sick, healthLast), "Failed HealthCheck Failed false", ""},
		{"with its permit, of a deployment", living(unknown, longUnknown, sick, healthLast, inPool, siblings(true), held(1)), "Failed HealthCheck Failed false", ""},
		{"one that is refused stays", living(unknown, longUnknown, sick, copied, inPool, siblings(true, pending)), stays, ""},
		{"one that may take its time stays", living(unknown, longUnknown, sick, copied, looked, patient), stays, ""},
		{"a frozen controller leaves it alone", living(unknown, longUnknown, sick, frozen), stays, "there the end of the freeze makes it Running"},
		{"a Node drained for its update is updated", living(running, healthy, atStep(v1alpha1.SelectedForUpdate), updateDrained), "InPlaceUpdating InPlaceUpdate Processing false", ""},
		{"an update that succeeds is one", living(updating, healthy, atStep(v1alpha1.ReadyForUpdate), labeled("successful")), "InPlaceUpdateSuccessful InPlaceUpdate Successful false", ""},
		{"one that fails is none", living(updating, healthy, atStep(v1alpha1.ReadyForUpdate), labeled("failed")), "InPlaceUpdateFailed InPlaceUpdate Failed false", ""},
		{"one that takes too long is none", living(updating, longUpdating, healthy, atStep(v1alpha1.ReadyForUpdate)), "InPlaceUpdateFailed InPlaceUpdate Failed false", ""},
		{"also if its Node is gone", living(updating, longUpdating), "InPlaceUpdateFailed InPlaceUpdate Failed false", ""},
		{"which may take for ever", living(updating, longUpdating, config(&v1alpha1.MachineConfiguration{MachineInPlaceUpdateTimeout: &metav1.Duration{}})), stays, ""},
		{"one that failed may succeed", living(unupdated, healthy, atStep(v1alpha1.ReadyForUpdate), labeled("successful")), "InPlaceUpdateSuccessful InPlaceUpdate Successful false", ""},
		{"one that failed for too long fails", living(unupdated, longUnknown, healthy, atStep(v1alpha1.UpdateFailed), healthLast), "Failed HealthCheck Failed false", ""},
		{"also of a deployment (DM-08)", living(unupdated, longUnknown, healthy, atStep(v1alpha1.UpdateFailed), healthLast, inPool, siblings(true, running), held(1)), "Failed HealthCheck Failed false", "there it counts itself (DM-08)"},
		{"also if its Node is gone", living(unupdated, longUnknown, healthLast), "Failed HealthCheck Failed false", ""},
		{"unless it may take its time", living(unupdated, longUnknown, healthy, atStep(v1alpha1.UpdateFailed), copied, patient), stays, ""},
		{"one whose VM was never initialized is created to the end", living(unknown, seen(machine.Uninitialized)), "CrashLoopBackOff HealthCheck Processing false", "there it fails"},
		{"also a pending one", living(pending, intended, seen(machine.Uninitialized)), "CrashLoopBackOff HealthCheck Processing false", "there it waits for its timeout"},
		{"a phase that does not exist is corrected", living("Bogus", healthy), "Unknown HealthCheck Processing false", "there it stays"},
		{"also before there is a VM", after(phase("Bogus")), "CrashLoopBackOff HealthCheck Processing false", "there it stays"},
		{"a deletion ends every phase", living(running, leaving), "Terminating Delete Processing false", ""},
		{"also that of a failed machine", living(failed, leaving), "Terminating Delete Processing false", ""},
	}
}

var (
	conditionsKnown = spec(func(m *v1alpha1.Machine) {
		m.Status.Conditions = []corev1.NodeCondition{ready(corev1.ConditionTrue)}
	})
	healthLast = operation(v1alpha1.MachineOperationHealthCheck, v1alpha1.MachineStateProcessing, "", "")
)

// updateDrained has the drain of a Node for its update done.
func updateDrained(in *machine.Observation) {
	started := now.Add(-time.Minute)
	in.Drain = machine.DrainView{Round: now, Done: true, DoneAt: now, Started: started, ForceAt: started.Add(machine.DefaultPolicy().DrainTimeout)}
}

// nextStatus carries out what is decided until the phase of the machine changes, and
// returns what that says.
func nextStatus(t *testing.T, in machine.Observation) string {
	t.Helper()
	_, _, m := nextPhase(t, 0, in, machine.DefaultPolicy())
	if m == nil {
		return stays
	}
	s := m.Status
	return fmt.Sprint(s.CurrentStatus.Phase, " ", s.LastOperation.Type, " ", s.LastOperation.State, " ", s.CurrentStatus.TimeoutActive)
}

func TestPhases_ConsolidatedTable_EachChange(t *testing.T) {
	for _, s := range consolidated() {
		t.Run(s.name, func(t *testing.T) {
			require.Equal(t, s.want, nextStatus(t, s.in), s.deviates)
		})
	}
}

// TestHealth_PhaseAndNode_Matrix has the conditions of the Node conditionsKnown, and all
// phases entered a minute ago.
func TestHealth_PhaseAndNode_Matrix(t *testing.T) {
	const run = "Running HealthCheck Successful false"
	const doubt = "Unknown HealthCheck Processing false"
	for p, want := range map[v1alpha1.MachinePhase]struct{ healthy, unhealthy, missing, deviates string }{
		v1alpha1.MachinePending:                 {run, stays, stays, ""},
		v1alpha1.MachineAvailable:               {run, doubt, doubt, "it would not be replaced otherwise"},
		v1alpha1.MachineRunning:                 {stays, doubt, doubt, ""},
		v1alpha1.MachineTerminating:             {doubt, doubt, "CrashLoopBackOff HealthCheck Processing false", "it is not being deleted, so the phase is corrected"},
		v1alpha1.MachineUnknown:                 {run, stays, stays, ""},
		v1alpha1.MachineFailed:                  {stays, stays, stays, "its owner replaces it already (DM-31)"},
		v1alpha1.MachineCrashLoopBackOff:        {stays, stays, stays, "its VM is looked for first (DM-31)"},
		v1alpha1.MachineInPlaceUpdating:         {doubt, doubt, stays, "the Node knows of no update, so the phase is corrected"},
		v1alpha1.MachineInPlaceUpdateSuccessful: {run, doubt, doubt, "it would not be replaced otherwise"},
		v1alpha1.MachineInPlaceUpdateFailed:     {doubt, doubt, stays, "the Node knows of no update, so the phase is corrected"},
	} {
		t.Run(string(p), func(t *testing.T) {
			require.Equal(t, want.healthy, nextStatus(t, living(p, healthy, copied)), want.deviates)
			require.Equal(t, want.unhealthy, nextStatus(t, living(p, sick, copied)), want.deviates)
			require.Equal(t, want.missing, nextStatus(t, living(p, conditionsKnown)), want.deviates)
		})
	}
	blocked := living(v1alpha1.MachinePending, healthy, copied, taint)
	require.Equal(t, stays, nextStatus(t, blocked), "critical components")
}

// TestPhases_AnyRecordedPhase_FollowsReality asserts that a recorded phase does not decide how a machine
// ends: within a day it has the phase of what exists, and nothing is repeated. Only a Failed machine
// stays, because its owner replaces it.
func TestPhases_AnyRecordedPhase_FollowsReality(t *testing.T) {
	gone := status.Error(codes.NotFound, "none")
	unknown := func(in *machine.Observation) { // nothing of the VM is recorded
		in.Machine.Spec.ProviderID = ""
		delete(in.Machine.Labels, v1alpha1.NodeLabelKey)
	}
	unnamed := func(in *machine.Observation) { delete(in.Machine.Labels, v1alpha1.NodeLabelKey) }
	for name, c := range map[string]struct {
		changes []change
		look    error
		want    v1alpha1.MachinePhase
	}{
		"VM and healthy Node":                         {[]change{old, healthy, copied}, nil, running},
		"VM and healthy Node, nothing recorded":       {[]change{healthy, copied, unknown}, nil, running},
		"VM and unhealthy Node":                       {[]change{old, sick, copied}, nil, failed},
		"VM without a Node":                           {[]change{old}, nil, failed},
		"VM without a Node, the name is not recorded": {[]change{old, unnamed}, nil, failed},
		"Node without a VM":                           {[]change{old, sick, copied}, gone, failed},
		"nothing":                                     {[]change{old}, gone, failed},
		"nothing, and the name is not recorded":       {[]change{old, unnamed}, gone, failed},
		"nothing, and nothing recorded":               {[]change{old, unknown}, gone, failed},
		"nothing yet":                                 {[]change{unknown}, gone, failed},
		"VM without a cluster":                        {[]change{old, noTarget}, nil, available},
		"VM without a cluster, nothing recorded":      {[]change{noTarget, unknown}, nil, available},
		"nothing without a cluster":                   {[]change{old, noTarget, unknown}, gone, failed},
		"nothing yet without a cluster":               {[]change{noTarget, unknown}, gone, available},
	} {
		for _, begin := range append([]v1alpha1.MachinePhase{"Bogus"}, allPhases...) {
			t.Run(fmt.Sprintf("%s, phase %q", name, begin), func(t *testing.T) {
				in := living(begin, c.changes...)
				w := newWorld(in)
				w.lookErr = c.look
				w.lasts(t, 24*time.Hour, func() {})
				want := c.want
				if begin == failed {
					want = failed
				}
				require.Equal(t, want, w.in.Machine.Status.CurrentStatus.Phase, w.log())
				require.Less(t, w.writes, 12, w.log())
			})
		}
	}
}
