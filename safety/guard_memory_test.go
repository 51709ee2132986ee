// SPDX-License-Identifier: Apache-2.0

package safety_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	life "github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

func member(id string) safety.GuardMember { return safety.GuardMember{ID: id, Pool: "pool", Zone: "a"} }

func withoutVM(m safety.GuardMember) safety.GuardMember {
	m.VMGone = true
	return m
}

func TestGuardMemory_Replaced_CountsForAnHourAlsoOnceDeleted(t *testing.T) {
	t.Parallel()
	var g safety.GuardMemory
	g.Replace(withoutVM(member("m")), start)
	want := member("m")
	want.ReplacedAt, want.VMGone = start, true
	require.Equal(t, []safety.GuardMember{want}, g.Members(nil, start.Add(time.Minute)), "the machine was deleted")

	cached := member("m")
	cached.Available = true
	all := g.Members([]safety.GuardMember{cached}, start.Add(time.Minute))
	require.Len(t, all, 1)
	require.Equal(t, start, all[0].ReplacedAt, "the cache does not show it yet")
	g.Keep("m")
	require.Empty(t, g.Members(nil, start))

	g.Replace(member("m"), start)
	require.Len(t, g.Members(nil, start.Add(time.Hour)), 1)
	require.Empty(t, g.Members(nil, start.Add(time.Hour+time.Second)))
}

func TestGuardMemory_Settle_RecordsReplacementsOfAnEarlierProcess(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		failed bool
		at     time.Time
		want   int
	}{
		"failed before the restart": {true, start.Add(-time.Minute), 1},
		"failed long ago":           {true, start.Add(-2 * time.Hour), 0},
		"deleted, but healthy":      {true, time.Time{}, 0},
		"created as a replacement":  {false, start.Add(-time.Minute), 0},
	} {
		var g safety.GuardMemory
		m := member("m")
		m.ReplacedAt = tc.at
		g.Settle(m, tc.failed, start)
		require.Len(t, g.Members(nil, start), tc.want, name)
	}
	var g safety.GuardMemory
	g.Settle(withoutVM(member("m")), false, start)
	require.True(t, g.Members([]safety.GuardMember{member("m")}, start)[0].VMGone)
	g.Settle(member("m"), false, start)
	require.False(t, g.Members([]safety.GuardMember{member("m")}, start)[0].VMGone)
}

func TestGuardMemory_Report_EventForEachChangeOfTheAction(t *testing.T) {
	t.Parallel()
	var g safety.GuardMemory
	m := member("m")
	for i, step := range []struct {
		after  time.Duration
		reason machinist.Reason
		event  string
	}{
		{0, machinist.Reason(""), ""},
		{0, safety.ReplacementsSlowed, "Warning ReplacementsSlowed slowly"},
		{time.Minute, safety.ReplacementsSlowed, ""},
		{time.Minute, safety.ReplacementsHeld, "Warning ReplacementsHeld none"},
		{2 * time.Minute, safety.ReplacementsSlowed, ""}, // another machine may still be held
		{4 * time.Minute, safety.ReplacementsSlowed, "Warning ReplacementsSlowed slowly"},
		{7 * time.Minute, machinist.Reason(""), "Normal ReplacementsResumed all; they are replaced as usual"},
		{7 * time.Minute, machinist.Reason(""), ""},
	} {
		message := map[machinist.Reason]string{machinist.Reason(""): "all", safety.ReplacementsSlowed: "slowly", safety.ReplacementsHeld: "none"}[step.reason]
		e := g.Report(m, safety.Decision[machinist.Action]{Reason: step.reason, Message: message}, start.Add(step.after))
		if step.event == "" {
			require.Nil(t, e, "step %d", i)
			continue
		}
		require.NotNil(t, e, "step %d", i)
		require.Equal(t, step.event, e.String())
		require.Equal(t, step.reason != machinist.Reason(""), g.Reported(m))
	}
	g.Report(m, safety.Decision[machinist.Action]{Reason: safety.ReplacementsHeld}, start)
	other := m
	other.Zone = "b"
	require.False(t, g.Reported(other), "another zone")
	require.Equal(t, "Normal ReplacementsResumed its machines no longer fail all at once; they are replaced as usual", g.Resume(m, "").String())
	require.False(t, g.Reported(m))
}

func TestNewGuardMember_EachMachine_AvailableOrReplaced(t *testing.T) {
	t.Parallel()
	began, now := start, start.Add(10*time.Minute)
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(start.Add(d)) }
	set := &v1alpha1.MachineSet{}
	set.CreationTimestamp = at(-time.Hour)
	for name, tc := range map[string]struct {
		created   time.Duration
		phase     v1alpha1.MachinePhase
		set       *v1alpha1.MachineSet
		available bool
		replaced  time.Time
	}{
		"running for long":                     {created: -2 * time.Hour, phase: v1alpha1.MachineRunning, available: true},
		"failed":                               {created: -2 * time.Hour, phase: v1alpha1.MachineFailed, replaced: start.Add(5 * time.Minute)},
		"created shortly before the restart":   {created: -10 * time.Minute, phase: v1alpha1.MachineRunning, available: true, replaced: start.Add(-10 * time.Minute)},
		"created after it by an older set":     {created: 30 * time.Second, phase: v1alpha1.MachinePending, set: set, replaced: start.Add(30 * time.Second)},
		"created after it without a set":       {created: 30 * time.Second, phase: v1alpha1.MachinePending},
		"created a minute after the restart":   {created: time.Minute, phase: v1alpha1.MachinePending, set: set},
		"created more than an hour before it ": {created: -time.Hour - time.Second, phase: v1alpha1.MachineRunning, set: set, available: true},
	} {
		m := machineOf(tc.phase, at(tc.created))
		got := safety.NewGuardMember(m, tc.set, life.DefaultPolicy(), began, now)
		require.Equal(t, tc.available, got.Available, name)
		require.True(t, tc.replaced.Equal(got.ReplacedAt), "%s: %s", name, got.ReplacedAt)
	}
}

// machineOf returns a machine in a phase that it has had since 5 minutes after start.
func machineOf(phase v1alpha1.MachinePhase, created metav1.Time) *v1alpha1.Machine {
	m := machineAt("m", created)
	m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: metav1.NewTime(start.Add(5 * time.Minute))}
	return m
}

func machineAt(name string, created metav1.Time) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name, UID: "m", CreationTimestamp: created}}
}
