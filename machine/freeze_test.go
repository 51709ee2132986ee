// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// TestFreeze_Frozen_OnlyDeletionsContinue asserts for random machines that a freeze stops all
// actions except deletions.
func TestFreeze_Frozen_OnlyDeletionsContinue(t *testing.T) {
	t.Parallel()
	byNode := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 9))
		in, p := anything(r), anyPolicy(r)
		in.Freeze = machine.Freeze{}
		without := machine.Decide(in, p, now)
		in.Freeze = machine.Freeze{Frozen: true, Since: now.Add(-time.Minute), Message: "the target API server does not answer"}
		d := machine.Decide(in, p, now)
		if !in.Machine.DeletionTimestamp.IsZero() {
			require.Equal(t, without, d, "seed %d", seed)
			continue
		}
		if _, deletes := d.Action.(machinist.Delete); deletes {
			byNode++
			continue
		}
		require.Nil(t, d.Action, "seed %d", seed)
		require.Equal(t, machine.ReasonFrozen, d.Reason)
		require.Equal(t, now.Add(time.Minute), d.NextCheck)
		require.Contains(t, d.Holds[0].Message, "the target API server does not answer")
		require.Equal(t, in.Freeze.Since, d.Holds[0].Since)
	}
	require.Positive(t, byNode)
}

// TestFreeze_DeletionByTheNode_IsCarriedOut asserts both ways in which a user deletes a machine by its
// Node, and that nothing else of the Node deletes it.
func TestFreeze_DeletionByTheNode_IsCarriedOut(t *testing.T) {
	annotated := onNode(func(n *corev1.Node) { n.Annotations[v1alpha1.TriggerDeletionByMCM] = "true" })
	deleted := onNode(func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: now} })
	deletes := "delete machine m (Deleting)"
	for name, c := range map[string]struct {
		in   machine.Observation
		want string
	}{
		"annotation":                {living(v1alpha1.MachineRunning, healthy, annotated), deletes},
		"kubectl delete node":       {living(v1alpha1.MachineRunning, healthy, deleted), deletes},
		"unhealthy":                 {living(v1alpha1.MachineUnknown, sick, deleted), deletes},
		"another value":             {living(v1alpha1.MachineRunning, healthy, onNode(func(n *corev1.Node) { n.Annotations[v1alpha1.TriggerDeletionByMCM] = "false" })), ""},
		"Node that others delete":   {living(v1alpha1.MachineRunning, healthy, deleted, onNode(func(n *corev1.Node) { n.Finalizers = []string{"other"} })), ""},
		"Node of another machine":   {living(v1alpha1.MachineRunning, healthy, annotated, ofAnother), ""},
		"Node that was not read":    {living(v1alpha1.MachineRunning, healthy, annotated, func(in *machine.Observation) { in.Node.Looked = false }), ""},
		"machine without finalizer": {living(v1alpha1.MachineRunning, healthy, annotated, spec(func(m *v1alpha1.Machine) { m.Finalizers = nil })), ""},
		"neither":                   {living(v1alpha1.MachineRunning, healthy), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Freeze = machine.Freeze{Frozen: true, Since: now}
			d := lawful(t, c.in, machine.DefaultPolicy())
			if c.want == "" {
				require.Equal(t, machine.ReasonFrozen, d.Reason)
				return
			}
			require.Equal(t, c.want, d.String())
		})
	}
}

// TestFreeze_AfterOutage_TimeoutsBeginAnew has machines whose phase began an hour ago. Each fails
// only after its whole timeout since the API servers answer.
func TestFreeze_AfterOutage_TimeoutsBeginAnew(t *testing.T) {
	t.Parallel()
	silent := node(ready(corev1.ConditionUnknown))
	selected := onNode(func(n *corev1.Node) { n.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] = "true" })
	p := machine.DefaultPolicy()
	p.MaxReplacements = 100
	long := spec(func(m *v1alpha1.Machine) {
		m.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
		m.Status.CurrentStatus.LastUpdateTime, m.Status.LastOperation.LastUpdateTime = m.CreationTimestamp, m.CreationTimestamp
	})
	for name, tc := range map[string]struct {
		in      machine.Observation
		timeout time.Duration
	}{
		"Unknown":         {after(withID, phase(v1alpha1.MachineUnknown), silent, copied, long), p.HealthTimeout},
		"Pending":         {after(withID, phase(v1alpha1.MachinePending), silent, copied, long), p.CreationTimeout},
		"InPlaceUpdating": {after(withID, phase(v1alpha1.MachineInPlaceUpdating), silent, selected, copied, long), p.InPlaceTimeout},
		"no VM yet":       {after(intended, seen(machine.Absent), long), p.CreationTimeout},
	} {
		for _, answering := range []time.Duration{0, time.Second, tc.timeout - time.Second, tc.timeout, 24 * time.Hour} {
			in := tc.in
			in.Siblings.Complete = true
			in.Freeze.ClocksFrom = now.Add(-answering)
			held(0)(&in)
			d := machine.Decide(in, p, now)
			fails := d.Reason == machine.ReasonHealthTimeout || d.Reason == machine.ReasonCreationTimeout || d.Reason == machine.ReasonUpdateTimeout
			require.Equal(t, answering >= tc.timeout, fails, "%s, answering for %s: %s", name, answering, d)
		}
		in := tc.in
		in.Siblings.Complete = true
		in.Freeze.ClocksFrom = now.Add(time.Hour) // of a clock that is ahead
		require.Equal(t, machine.Decide(tc.in, p, now).Reason, machine.Decide(in, p, now).Reason, name)
	}
}
