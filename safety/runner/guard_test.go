// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// oneNode is a Reader of at most one Node.
type oneNode struct{ node *corev1.Node }

func (r oneNode) Get(_ context.Context, o machinist.Object) (machinist.Object, error) {
	if _, node := o.(*corev1.Node); node && r.node != nil {
		return r.node, nil
	}
	return nil, nil
}

func (oneNode) List(context.Context, machinist.Object, string, string) ([]machinist.Object, error) {
	return nil, nil
}

func newGuard(node *corev1.Node, now time.Time) (*Guard, *clocktesting.FakeClock) {
	clock := clocktesting.NewFakeClock(now)
	return &Guard{
		Policy:   safety.DefaultGuardPolicy(),
		Machines: &machinerunner.Executor{Reader: oneNode{node: node}, Clock: clock, Policy: machine.DefaultPolicy()},
	}, clock
}

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// machineIn returns a machine that has been in a phase since a time.
func machineIn(phase v1alpha1.MachinePhase, at time.Time) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "m", CreationTimestamp: metav1.NewTime(at)}}
	m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: phase, LastUpdateTime: metav1.NewTime(at)}
	return m
}

func TestGuard_Zone_FromNodeElseTemplate(t *testing.T) {
	t.Parallel()
	g, _ := newGuard(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelTopologyZone: "a"}}}, began)
	m := machineIn(v1alpha1.MachineRunning, began)
	require.Empty(t, g.member(t.Context(), m, false, g.now()).Zone)
	m.Spec.NodeTemplateSpec.Labels = map[string]string{corev1.LabelTopologyZone: "b"}
	require.Equal(t, "b", g.member(t.Context(), m, false, g.now()).Zone, "its Node has not joined")
	m.Labels = map[string]string{v1alpha1.NodeLabelKey: "n"}
	require.Equal(t, "a", g.member(t.Context(), m, false, g.now()).Zone)
}

// TestGuard_FailedBeforeRestart_CountsWhenItsSetDeletesItLate starts with a Failed machine, which its set
// deletes two minutes later.
func TestGuard_FailedBeforeRestart_CountsWhenItsSetDeletesItLate(t *testing.T) {
	t.Parallel()
	g, clock := newGuard(nil, began)
	failedAt := began.Add(-5 * time.Minute)
	g.Settle(t.Context(), machineIn(v1alpha1.MachineFailed, failedAt), false)
	clock.Step(2 * time.Minute)
	members := g.look(t.Context(), "ns", clock.Now())
	require.Len(t, members, 1)
	require.True(t, failedAt.Equal(members[0].ReplacedAt), "%s", members[0].ReplacedAt)

	clock.Step(time.Hour)
	require.Empty(t, g.look(t.Context(), "ns", clock.Now()))
}

// TestGuard_FieldMissing_Holds asserts that a Guard that cannot read lets no machine fail.
func TestGuard_FieldMissing_Holds(t *testing.T) {
	t.Parallel()
	m, g := machineIn(v1alpha1.MachineUnknown, began), &Guard{}
	require.Equal(t, machine.ReasonNotObserved, g.Ask(t.Context(), m, true, nil).Reason)
	g.Settle(t.Context(), m, true)
	g.Revoke(m)
	g.Revoke(nil)
}

// TestGuard_Began_CountsMachinesOfTheFirstPass has a set and its machines that this process has made before the
// end of its first pass over a machine. They replace none.
func TestGuard_Began_CountsMachinesOfTheFirstPass(t *testing.T) {
	t.Parallel()
	m := machineIn(v1alpha1.MachineRunning, began.Add(time.Second))
	g, _ := newGuard(nil, began.Add(2*time.Second))
	require.False(t, g.member(t.Context(), m, false, g.now()).ReplacedAt.IsZero(), "an earlier process may have made it")
	g, _ = newGuard(nil, began.Add(2*time.Second))
	g.Began = began
	require.Zero(t, g.member(t.Context(), m, false, g.now()).ReplacedAt)
}

func TestGuard_NamespacesComeAndGo_KeepsNoPopulation(t *testing.T) {
	t.Parallel()
	g, clock := newGuard(nil, began)
	for i := range 20 {
		m := machineIn(v1alpha1.MachineUnknown, began)
		m.Namespace = fmt.Sprint("ns-", i)
		g.Ask(t.Context(), m, false, nil)
		clock.Step(time.Minute)
	}
	require.Len(t, g.seen, 1)
}
