// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// alongside runs another writer until the returned function is called.
func alongside(t *testing.T, every time.Duration, write func(context.Context)) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	writing.Go(func() {
		for ctx.Err() == nil {
			write(context.WithoutCancel(ctx)) // a write is not cut off
			select {
			case <-time.After(every):
			case <-ctx.Done():
			}
		}
	})
	end = func() { cancel(); writing.Wait() }
	t.Cleanup(end)
	return end
}

func TestRoll_LabelsRemovedFromMachines_BoundedReplacements(t *testing.T) {
	t.Parallel()
	const replicas = 4
	o := fastOptions()
	// Each of two sets replaces so many, and the old one may have lost all its others
	// when it gets smaller.
	o.Bounds.Lost = 2*3 + replicas
	s := cluster.Set(t, "labels", o)
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", replicas, 1, 1))
	f := &labelTaker{s: s, taken: map[string]time.Time{}}
	end := alongside(t, 200*time.Millisecond, func(ctx context.Context) { f.round(ctx, 2, 4*time.Second) })
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "a while has passed", passed(8*time.Second))
	s.Wait(t, patience, "labels were removed many times", when(func() bool { return f.thefts.Load() > 10 }))
	end()
	f.round(t.Context(), 0, 0) // all is given back
	require.Empty(t, f.failed)
	s.Wait(t, patience, "all that was let go is taken or gone", allRun(s, replicas))
	s.Wait(t, patience, "rolled nevertheless", s.Complete("workers"))
	allOf(t, s, setOf(t, s, "large"), replicas)
	require.NotEmpty(t, firsts(s, func(m *v1alpha1.Machine) bool { return m.Annotations["machinist.dev/released-by"] != "" }), "none was ever let go")
	removeAll(t, s)
}

func TestRoll_FieldsOfOtherWriters_AreKept(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "others", fastOptions())
	s.StartManager(t, "manager")
	deploy(t, s, s.Deployment("workers", "small", 4, 1, 1))
	w := &writer{s: s, last: map[string]string{}}
	end := alongside(t, 20*time.Millisecond, w.round)
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "rolled", s.Complete("workers"))
	change(t, s, "workers", `{"spec":{"replicas":5}}`)
	s.Wait(t, patience, "scaled", s.Complete("workers"))
	require.NoError(t, s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Delete(t.Context(), "workers", metav1.DeleteOptions{}))
	s.Wait(t, patience, "only its other guard is left", deploymentIs(s, "workers", func(d *v1alpha1.MachineDeployment) bool {
		return slices.Equal(d.Finalizers, []string{theirs})
	}))
	end()
	w.letGo(t.Context())
	require.Empty(t, w.lost)
	require.Empty(t, w.failed)
	require.Greater(t, w.writes, 10)
	t.Logf("the other writer wrote %d times and lost %d times", w.writes, w.conflicts)
	removeAll(t, s)
}
