// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

// TestDrain_APIServerRestarts_Continues asserts that a drain survives an outage of the API server.
func TestDrain_APIServerRestarts_Continues(t *testing.T) {
	t.Parallel()
	c, err := controlplane.Start(t.Context(), controlplane.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	w := newDrainWorld(t, c)
	pod := w.pod(t, "web", w.a)
	w.budget(t, "web", "web", 1, 1, 1)
	g := w.drains(t.Context(), w.client, lenient)
	g.waits(t, w, "pod/"+w.ns+"/web", drain.ReasonBudgetNever)

	require.NoError(t, c.StopAPIServer(t.Context()))
	select {
	case <-g.ended:
		require.FailNow(t, "it is over", "%v %v", g.plan, g.err)
	case <-time.After(3 * time.Second):
	}
	require.NoError(t, c.StartAPIServer(t.Context()))
	require.True(t, w.there(t, pod))
	w.until(t, "the budget is freed", func(ctx context.Context) bool {
		_, err := w.client.PolicyV1().PodDisruptionBudgets(w.ns).Patch(ctx, "web", mergePatch, []byte(`{"spec":{"minAvailable":0}}`), metav1.PatchOptions{})
		return err == nil
	})
	require.NoError(t, g.end(t).err)
	require.Equal(t, drain.Drained, g.plan.Outcome)
	require.False(t, w.there(t, pod))
}
