// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
)

func TestARoundLooksAgainBeforeItIsDone(t *testing.T) {
	cluster, _ := newCluster(t, newNode(), newPod("a"))
	behind := observed() // a cache that does not show the pod
	plan, answers, err := drain.Round(t.Context(), cluster.Client(), behind, drain.Policy{}, "node-1", now)
	require.NoError(t, err)
	require.False(t, plan.Done)
	require.Len(t, plan.Holds(), 1)
	require.Len(t, answers, 1)
	require.NotNil(t, observation(t, cluster, nil).Pods[0].DeletionTimestamp, "and was evicted")

	other, _ := newCluster(t, newNode(), newPod("elsewhere", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }))
	plan, _, err = drain.Round(t.Context(), other.Client(), behind, drain.Policy{}, "node-1", now)
	require.NoError(t, err)
	require.True(t, plan.Done)
}

func TestARoundSaysWhatRefusedAPod(t *testing.T) {
	cluster, _ := newCluster(t, newNode(), newPod("a"))
	cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "create", Resource: "pods"})
	in := observation(t, cluster, nil)
	plan, answers, err := drain.Round(t.Context(), cluster.Client(), in, drain.Policy{}, "node-1", now)
	require.NoError(t, err, "what the API server says of a pod is in the plan")
	require.False(t, plan.Done)
	require.Equal(t, drain.ReasonForbidden, plan.Holds()[0].Reason)
	require.Equal(t, now.Add(5*time.Second), plan.NextCheck)
	require.NotEmpty(t, answers)
	require.Empty(t, in.Answers, "what was given is not changed")
}

func TestARoundThatCannotLookIsNotDone(t *testing.T) {
	for name, p := range map[string]drain.Policy{"in peace": {}, "by force": forced()} {
		t.Run(name, func(t *testing.T) {
			cluster, _ := newCluster(t, newNode())
			in := observation(t, cluster, nil)
			cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "list", Resource: "pods"})
			plan, _, err := drain.Round(t.Context(), cluster.Client(), in, p, "node-1", now)
			require.True(t, apierrors.IsForbidden(err), err)
			require.False(t, plan.Done)
			require.Equal(t, now.Add(5*time.Second), plan.NextCheck)
		})
	}
	plan, _, err := drain.Round(t.Context(), nil, observed(), drain.Policy{}, "node-1", now)
	require.Error(t, err)
	require.False(t, plan.Done)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cluster, _ := newCluster(t, newNode())
	plan, _, err = drain.Round(ctx, cluster.Client(), observed(), drain.Policy{}, "node-1", now)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, plan.Done)
}

func TestARoundByForceDoesNotWaitForTheCordon(t *testing.T) {
	for _, tt := range []struct {
		policy drain.Policy
		done   bool
	}{{drain.Policy{}, false}, {forced(), true}} {
		cluster, _ := newCluster(t, openNode())
		cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch", Resource: "nodes"})
		plan, _, err := drain.Round(t.Context(), cluster.Client(), observation(t, cluster, nil), tt.policy, "node-1", now)
		require.Equal(t, tt.done, plan.Done)
		require.Equal(t, tt.done, err == nil, err)
	}
}
