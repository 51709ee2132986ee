// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func condition(kind string, status corev1.ConditionStatus) corev1.NodeCondition {
	return corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status}
}

func TestHealth_Conditions_Phase(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []corev1.NodeCondition
		want       bool
		bad        int
	}{
		"no conditions: unhealthy":                {nil, false, 0},
		"Ready: healthy":                          {[]corev1.NodeCondition{condition("Ready", "True")}, true, 0},
		"Ready Unknown: unhealthy":                {[]corev1.NodeCondition{condition("Ready", "Unknown")}, false, 1},
		"Ready missing: unhealthy (DM-30)":        {[]corev1.NodeCondition{condition("KernelDeadlock", "False")}, false, 0},
		"listed condition True: unhealthy":        {[]corev1.NodeCondition{condition("Ready", "True"), condition("KernelDeadlock", "True")}, false, 1},
		"listed condition Unknown: unhealthy":     {[]corev1.NodeCondition{condition("KernelDeadlock", "Unknown"), condition("Ready", "True")}, false, 1},
		"two bad conditions: both in the message": {[]corev1.NodeCondition{condition("KernelDeadlock", "True"), condition("Ready", "False")}, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			in := living(v1alpha1.MachineRunning, node(tc.conditions...), copied)
			d := lawful(t, in, machine.Policy{HealthConditions: []corev1.NodeConditionType{"KernelDeadlock"}})
			require.Equal(t, tc.bad, strings.Count(d.Message, "="), d.String())
			require.Equal(t, tc.want, d.Reason == machine.ReasonNodeReady, d.String())
		})
	}
}

func TestConditions_Changed_AreCopied(t *testing.T) {
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
		"another order: no change":        {list{a, b}, list{b, a}, false},
		"new type: change":                {list{a}, list{a, b}, true},
		"reason of InPlaceUpdate: change": {list{update}, list{progress}, true},
		"duplicate type: no change":       {list{a, condition("A", "False")}, list{a, condition("A", "False")}, false},
		"another number: change":          {list{a}, list{a, a}, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := living(v1alpha1.MachineInPlaceUpdateFailed, node(tc.observed...), withResult("failed"), spec(func(m *v1alpha1.Machine) { m.Status.Conditions = tc.recorded }))
			d := lawful(t, in, machine.Policy{})
			require.Equal(t, tc.want, d.Reason == machine.ReasonConditionsChanged, d.String())
		})
	}
}

// TestReplacementLimit_Siblings_CountOfReplaced asserts the number of machines being replaced in
// the message of a policy with the limit 0.
func TestReplacementLimit_Siblings_CountOfReplaced(t *testing.T) {
	const failed, unknown, failedUpdate, leaves = v1alpha1.MachineFailed, v1alpha1.MachineUnknown, v1alpha1.MachineInPlaceUpdateFailed, v1alpha1.MachineTerminating
	of := func(uid string, p v1alpha1.MachinePhase, preserved bool) *v1alpha1.Machine {
		m := newMachine("s")
		m.UID, m.Status.CurrentStatus.Phase = machineUID(uid), p
		if preserved {
			m.Status.CurrentStatus.PreserveExpiryTime = &metav1.Time{Time: now}
		}
		return m
	}
	type list = []*v1alpha1.Machine
	updates := list{of("me", failedUpdate, false), of("a", failedUpdate, false), of("b", failed, false)}
	for name, tc := range map[string]struct {
		phase    v1alpha1.MachinePhase
		siblings list
		want     int
	}{
		"nil: not counted":                                               {unknown, list{nil}, 0},
		"the machine itself: not counted (DM-08)":                        {unknown, list{of("me", failed, false)}, 0},
		"Running and Unknown: not counted":                               {unknown, list{of("a", v1alpha1.MachineRunning, false), of("b", unknown, false)}, 0},
		"other phases: counted":                                          {unknown, list{of("a", "", false), of("b", failed, false), of("c", v1alpha1.MachinePending, false)}, 3},
		"preserved: not counted":                                         {unknown, list{of("a", failed, true)}, 0},
		"Terminating: counted twice":                                     {unknown, list{of("a", leaves, false)}, 2},
		"Terminating and preserved: counted once":                        {unknown, list{of("a", leaves, true)}, 1},
		"no UID: counted":                                                {unknown, list{of("", failed, false)}, 1},
		"InPlaceUpdateFailed does not count InPlaceUpdateFailed (DM-08)": {failedUpdate, updates, 1},
		"InPlaceUpdateFailed: counted for other machines":                {unknown, updates, 2},
	} {
		t.Run(name, func(t *testing.T) {
			in := living(tc.phase, longUnknown, sick, withResult("failed"), copied, inPool)
			in.Machine.UID, in.Siblings = "me", machine.Siblings{Complete: true, Machines: tc.siblings}
			require.Equal(t, fmt.Sprintf("machines being replaced: %d, limit: 0", tc.want), lawful(t, in, limited(0)).Message)
		})
	}
}

func FuzzParseHealthConditions(f *testing.F) {
	for _, list := range []string{"", ",", "A", "KernelDeadlock,ReadonlyFilesystem", " A , B ,A", "a,\x00,é"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		types := machine.ParseHealthConditions(list)
		var texts []string
		for _, kind := range types {
			text := string(kind)
			require.Equal(t, strings.TrimSpace(text), text)
			require.NotEmpty(t, text)
			require.NotContains(t, texts, text)
			require.Contains(t, list, text)
			texts = append(texts, text)
		}
		require.Equal(t, types, machine.ParseHealthConditions(strings.Join(texts, ",")))
	})
}
