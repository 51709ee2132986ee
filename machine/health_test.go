// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func condition(kind string, status corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status}
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	rules := machine.ParseHealthRules("KernelDeadlock")
	for name, tc := range map[string]struct {
		conditions []corev1.NodeCondition
		want       bool
		bad        int
	}{
		"no conditions are not healthy":              {nil, false, 0},
		"Ready is healthy":                           {[]corev1.NodeCondition{condition("Ready", "True")}, true, 0},
		"Ready has to be True":                       {[]corev1.NodeCondition{condition("Ready", "Unknown")}, false, 1},
		"Ready has to be there (DM-30)":              {[]corev1.NodeCondition{condition("KernelDeadlock", "False")}, false, 0},
		"a listed condition has to be False":         {[]corev1.NodeCondition{condition("Ready", "True"), condition("KernelDeadlock", "True")}, false, 1},
		"Unknown is not False":                       {[]corev1.NodeCondition{condition("KernelDeadlock", "Unknown"), condition("Ready", "True")}, false, 1},
		"one that is not listed may be what it is":   {[]corev1.NodeCondition{condition("Ready", "True"), condition("DiskPressure", "True")}, true, 0},
		"all that is bad is told, in its order":      {[]corev1.NodeCondition{condition("KernelDeadlock", "True"), condition("Ready", "False")}, false, 2},
		"a listed condition that is False is no ill": {[]corev1.NodeCondition{condition("Ready", "True"), condition("KernelDeadlock", "False")}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := machine.JudgeHealth(tc.conditions, rules, now)
			require.Equal(t, tc.want, got.Healthy)
			require.Len(t, got.Bad, tc.bad)
		})
	}
}

func TestConditionsChanged(t *testing.T) {
	t.Parallel()
	a, b := condition("A", "True"), condition("B", "False")
	heartbeat := a
	heartbeat.LastHeartbeatTime, heartbeat.Message, heartbeat.Reason = metav1.NewTime(now), "m", "r"
	update := condition(string(v1alpha1.NodeInPlaceUpdate), "True")
	progress := update
	progress.Reason = v1alpha1.ReadyForUpdate
	type list = []corev1.NodeCondition
	for name, tc := range map[string]struct {
		recorded, observed list
		want               bool
	}{
		"nothing is no change":                      {nil, list{}, false},
		"the same in another order is none":         {list{a, b}, list{b, a}, false},
		"heartbeat, message and reason are none":    {list{a}, list{heartbeat}, false},
		"a status is one":                           {list{a}, list{condition("A", "False")}, true},
		"a type that comes is one":                  {list{a}, list{a, b}, true},
		"a type that goes is one":                   {list{a, b}, list{a}, true},
		"a type that comes for another is one":      {list{a}, list{b}, true},
		"the reason of the in-place update is one":  {list{update}, list{progress}, true},
		"a type that stands twice counts once":      {list{a, condition("A", "False")}, list{a, condition("A", "False")}, false},
		"but a change of how many there are is one": {list{a}, list{a, a}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, machine.ConditionsChanged(tc.recorded, tc.observed))
		})
	}
}

func TestReplacing(t *testing.T) {
	t.Parallel()
	of := func(uid string, p v1alpha1.MachinePhase, preserved bool) *v1alpha1.Machine {
		m := newMachine("s")
		m.UID, m.Status.CurrentStatus.Phase = machineUID(uid), p
		if preserved {
			m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now}
		}
		return m
	}
	for name, tc := range map[string]struct {
		siblings []*v1alpha1.Machine
		want     int
	}{
		"nobody":                                {nil, 0},
		"nil entries count nothing":             {[]*v1alpha1.Machine{nil}, 0},
		"the machine itself does not (DM-08)":   {[]*v1alpha1.Machine{of("me", v1alpha1.MachineFailed, false)}, 0},
		"Running and Unknown do not":            {[]*v1alpha1.Machine{of("a", v1alpha1.MachineRunning, false), of("b", v1alpha1.MachineUnknown, false)}, 0},
		"any other phase does":                  {[]*v1alpha1.Machine{of("a", "", false), of("b", v1alpha1.MachineFailed, false), of("c", v1alpha1.MachinePending, false)}, 3},
		"a preserved machine does not":          {[]*v1alpha1.Machine{of("a", v1alpha1.MachineFailed, true)}, 0},
		"one Terminating counts twice":          {[]*v1alpha1.Machine{of("a", v1alpha1.MachineTerminating, false)}, 2},
		"once if it was preserved":              {[]*v1alpha1.Machine{of("a", v1alpha1.MachineTerminating, true)}, 1},
		"a machine without UID is not excepted": {[]*v1alpha1.Machine{of("", v1alpha1.MachineFailed, false)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, machine.Replacing(tc.siblings, of("me", v1alpha1.MachineUnknown, false)))
		})
	}
	nameless := of("", v1alpha1.MachineFailed, false)
	require.Equal(t, 1, machine.Replacing([]*v1alpha1.Machine{nameless}, nil), "nobody is excepted")
	require.Equal(t, 1, machine.Replacing([]*v1alpha1.Machine{nameless}, of("", v1alpha1.MachineFailed, false)), "no UID is nobody's")
	require.Zero(t, machine.Replacing([]*v1alpha1.Machine{nameless}, nameless))
	update := v1alpha1.MachineInPlaceUpdateFailed
	others := []*v1alpha1.Machine{of("me", update, false), of("a", update, false), of("b", v1alpha1.MachineFailed, false)}
	require.Equal(t, 1, machine.Replacing(others, others[0]), "those whose update failed do not wait for each other (DM-08)")
	require.Equal(t, 3, machine.Replacing(others, of("x", v1alpha1.MachineUnknown, false)), "but others wait for them")
}

// TestARuleMayGiveAConditionTime has a condition count once it has been bad for
// long enough, and says when that will be.
func TestARuleMayGiveAConditionTime(t *testing.T) {
	t.Parallel()
	rules := []machine.HealthRule{
		{Type: "Slow", Unhealthy: []corev1.ConditionStatus{corev1.ConditionTrue}, For: 10 * time.Minute},
		{Type: "Slower", Unhealthy: []corev1.ConditionStatus{corev1.ConditionTrue}, For: time.Hour},
		{Type: corev1.NodeReady, Unhealthy: []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown}, For: 3 * time.Minute},
	}
	since := func(kind string, status corev1.ConditionStatus, ago time.Duration) corev1.NodeCondition {
		c := condition(kind, status)
		c.LastTransitionTime = metav1.NewTime(now.Add(-ago))
		return c
	}
	type list = []corev1.NodeCondition
	for name, tc := range map[string]struct {
		conditions list
		healthy    bool
		next       time.Duration // zero is never
	}{
		"not yet":                           {list{since("Ready", "True", 0), since("Slow", "True", 4*time.Minute)}, true, 6 * time.Minute},
		"then":                              {list{since("Ready", "True", 0), since("Slow", "True", 10*time.Minute)}, false, 0},
		"the first counts":                  {list{since("Ready", "True", 0), since("Slower", "True", 0), since("Slow", "True", 0)}, true, 10 * time.Minute},
		"one counts and another will":       {list{since("Ready", "True", 0), since("Slower", "True", 0), since("Slow", "True", time.Hour)}, false, time.Hour},
		"a good one never does":             {list{since("Ready", "True", 0), since("Slow", "False", 0)}, true, 0},
		"a time that is not known is over":  {list{since("Ready", "True", 0), condition("Slow", "True")}, false, 0},
		"a rule may be about Ready":         {list{since("Ready", "False", time.Minute)}, true, 2 * time.Minute},
		"which ends as well":                {list{since("Ready", "Unknown", 3*time.Minute)}, false, 0},
		"a status that no rule names is no": {list{since("Ready", "True", 0), since("Slow", "Unknown", time.Hour)}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := machine.JudgeHealth(tc.conditions, rules, now)
			require.Equal(t, tc.healthy, got.Healthy)
			if tc.next == 0 {
				require.Zero(t, got.NextCheck)
			} else {
				require.Equal(t, now.Add(tc.next), got.NextCheck)
			}
			p := machine.Policy{HealthRules: rules}
			d := lawful(t, living(v1alpha1.MachineRunning, node(tc.conditions...), copied), p)
			require.Equal(t, tc.healthy, d.Reason == machine.ReasonNodeReady)
			if tc.healthy && tc.next > 0 {
				require.Equal(t, now.Add(tc.next), d.NextCheck)
			}
			waiting := lawful(t, living(v1alpha1.MachineUnknown, node(append(tc.conditions, condition("Ready", "False"))...), copied, noClass), p)
			if tc.next > 0 && waiting.Do == nil {
				require.Equal(t, now.Add(tc.next), waiting.NextCheck, "also while it is not well")
			}
		})
	}
}

func TestTheOrderOfRulesAndConditionsDoesNotMatter(t *testing.T) {
	t.Parallel()
	rules := machine.ParseHealthRules("A,B")
	conditions := []corev1.NodeCondition{condition("Ready", "True"), condition("A", "True"), condition("B", "Unknown")}
	want := machine.JudgeHealth(conditions, rules, now)
	slices.Reverse(rules)
	require.Equal(t, want, machine.JudgeHealth(conditions, rules, now))
	slices.Reverse(conditions)
	got := machine.JudgeHealth(conditions, rules, now)
	require.Equal(t, want.Healthy, got.Healthy)
	require.ElementsMatch(t, want.Bad, got.Bad)
}

func FuzzTheListOfConditionTypesIsRead(f *testing.F) {
	for _, list := range []string{"", ",", "A", "KernelDeadlock,ReadonlyFilesystem", " A , B ,A", "a,\x00,é"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		rules := machine.ParseHealthRules(list)
		var types []string
		for _, r := range rules {
			require.Equal(t, strings.TrimSpace(string(r.Type)), string(r.Type))
			require.NotEmpty(t, r.Type)
			require.NotContains(t, types, string(r.Type))
			require.Contains(t, list, string(r.Type))
			types = append(types, string(r.Type))
		}
		require.Equal(t, rules, machine.ParseHealthRules(strings.Join(types, ",")))
	})
}
