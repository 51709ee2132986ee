// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
)

// runUncordons is a person who opens the Node as soon as a pod is said to wait.
type runUncordons struct {
	runHeard

	do func()
}

func (h *runUncordons) Observe(e drain.Progress) {
	h.runHeard.Observe(e)
	if e.Reason == drain.ReasonBudgetNever && h.do != nil {
		h.do()
		h.do = nil
	}
}

// A person opens the Node before the watch has shown the drain its own fence. The drain
// remembers its fence from the answer to its write, and does not set it again.
func TestRun_UncordonedBeforeTheWatchShowsTheFence_Stops(t *testing.T) {
	for name, policy := range map[string]drain.Policy{
		"cordon": {}, "owner": {Fence: nodeops.Fence{Owner: "one", ExcludeFromLoadBalancers: true}},
	} {
		for _, late := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " and the watch is late"}[late], func(t *testing.T) {
				inRunWorld(t, func(t *testing.T, w *runWorld) {
					release := w.HoldWatches()
					observer := &runUncordons{do: func() {
						_, err := w.Client().CoreV1().Nodes().Patch(t.Context(), "node-1", types.StrategicMergePatchType,
							[]byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
						require.NoError(t, err)
						if !late {
							release() // both changes are seen at once
							return
						}
						time.AfterFunc(time.Minute, release) // until then rounds see the Node as it was before
					}}
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					plan, err := runner.Executor{Client: w.client, Observer: observer}.Run(ctx, "node-1", policy)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.Equal(t, drain.ReasonUncordoned, plan.Gates[0].Reason, "%v", observer.runHeard)
					node, err := w.client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
					require.NoError(t, err)
					require.False(t, node.Spec.Unschedulable, "it is not closed again")
				}, append(runPods(1), execBudget("never", "web", 1))...)
			})
		}
	}
}

// A Node as it was read before the drain fenced it does not show that the fence was taken
// away; a later one does.
func TestStep_NodeOlderThanTheFence_CountsAsFenced(t *testing.T) {
	in := observed(newPod("a"))
	in.Node = openNode()
	in.Node.ResourceVersion = "99"
	past := drain.State{NodeUID: in.Node.UID, Started: now, FencedAt: now, FencedVersion: "100"}
	_, plan := drain.Step(past, in, drain.Policy{}, now)
	require.Nil(t, plan.Fence)
	require.Empty(t, plan.Gates)
	require.Equal(t, drain.Evict, plan.Rows[0].Verdict)

	in.Node.ResourceVersion = "101"
	_, plan = drain.Step(past, in, drain.Policy{}, now)
	require.Equal(t, drain.ReasonUncordoned, plan.Gates[0].Reason)

	in.Node.ResourceVersion = "99"
	_, plan = drain.Step(past, in, drain.Policy{Fence: nodeops.Fence{ExcludeFromLoadBalancers: true}}, now)
	require.NotNil(t, plan.Fence, "the policy has another fence by now")
}
