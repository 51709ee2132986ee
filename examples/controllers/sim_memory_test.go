// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/machine"
)

// TestDrain_NewDrain_StartsWithEmptyState checks that the state of a drain is not used for another
// drain.
func TestDrain_NewDrain_StartsWithEmptyState(t *testing.T) {
	t.Parallel()
	cluster, node := draintest.New(draintest.Options{}), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	require.NoError(t, cluster.Add(node))
	seen := newFeed(newSite("target", cluster), "")
	require.NoError(t, seen.informerFor(node).GetIndexer().Add(node))
	drains, err := runner.NewInformers(builtinFeed{feed: seen})
	require.NoError(t, err)
	r := &machineReconciler{cfg: &Config{Target: cluster.Client(), Clock: clock.RealClock{}}, drains: drains}

	now := time.Now()
	before := now.Add(-time.Hour)
	in := machine.Observation{
		Node: machine.NodeView{Looked: true, Node: node}, Drain: machine.DrainView{Started: before, State: drain.State{Started: before}},
	}
	do := machine.DrainNode{NodeName: "n", Started: before}
	require.NoError(t, r.drain(t.Context(), &in, &memory{}, do))
	require.Equal(t, before, in.Drain.State.Started)
	do.Started = now
	require.NoError(t, r.drain(t.Context(), &in, &memory{}, do))
	require.True(t, in.Drain.State.Started.After(before))
	require.Equal(t, now, in.Drain.Started)
}
