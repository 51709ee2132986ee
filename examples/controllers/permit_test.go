// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// oneNode is a reader with one Node.
type oneNode struct {
	runner.Reader
	node *corev1.Node
}

func (r oneNode) Node(context.Context, string) (*corev1.Node, error) { return r.node, nil }

func TestGuard_Zone_FromNodeElseTemplate(t *testing.T) {
	t.Parallel()
	control, clients := machinetest.New(draintest.Options{})
	target := draintest.New(draintest.Options{})
	cfg := Config{Machines: clients, Control: control.Client(), Target: target.Client(), Driver: drivertest.NewCloud(drivertest.CloudOptions{}), Guard: safety.DefaultGuardPolicy()}
	require.NoError(t, cfg.complete())
	c := newCaches(&cfg)
	r := made(newMachines(&cfg, c, nil))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelTopologyZone: "a"}}}
	r.failures.reader = oneNode{r.informers, node}

	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "m"}}
	require.Empty(t, r.failures.member(t.Context(), m, false, cfg.Clock.Now()).Zone)
	m.Spec.NodeTemplateSpec.Labels = map[string]string{corev1.LabelTopologyZone: "b"}
	require.Equal(t, "b", r.failures.member(t.Context(), m, false, cfg.Clock.Now()).Zone, "its Node has not joined")
	m.Labels = map[string]string{v1alpha1.NodeLabelKey: "n"}
	require.Equal(t, "a", r.failures.member(t.Context(), m, false, cfg.Clock.Now()).Zone)
}

// TestGuard_FailedBeforeRestart_CountsWhenItsSetDeletesItLate starts with a Failed machine, which
// its set deletes only after the end of a freeze.
func TestGuard_FailedBeforeRestart_CountsWhenItsSetDeletesItLate(t *testing.T) {
	t.Parallel()
	control, clients := machinetest.New(draintest.Options{})
	clock := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	cfg := Config{
		Machines: clients, Control: control.Client(), Driver: drivertest.NewCloud(drivertest.CloudOptions{}), Clock: clock,
		Guard: safety.DefaultGuardPolicy(),
	}
	require.NoError(t, cfg.complete())
	failures := made(newMachines(&cfg, newCaches(&cfg), nil)).failures
	failedAt := clock.Now().Add(-5 * time.Minute)
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "m"}}
	m.Status.CurrentStatus = v1alpha1.CurrentStatus{Phase: v1alpha1.MachineFailed, LastUpdateTime: metav1.NewTime(failedAt)}

	failures.Settle(t.Context(), m, false)
	clock.Step(2 * time.Minute) // the cache has lost it
	members := failures.look(t.Context(), "ns", clock.Now())
	require.Len(t, members, 1)
	require.True(t, failedAt.Equal(members[0].ReplacedAt), "%s", members[0].ReplacedAt)

	clock.Step(time.Hour)
	require.Empty(t, failures.look(t.Context(), "ns", clock.Now()))
}
