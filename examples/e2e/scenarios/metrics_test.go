// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// series are the values of a scrape, by name and labels as Prometheus writes them.
type series map[string]float64

// scraped returns what a manager says at /metrics.
func scraped(ctx context.Context, m *env.Manager) (series, error) {
	status, text, err := m.Health(ctx, "/metrics")
	if err != nil || status != http.StatusOK {
		return nil, err
	}
	all := series{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		if line == "" || line[0] == '#' {
			continue
		}
		if all[line[:end]], err = strconv.ParseFloat(line[end+1:], 64); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// sum adds up the series of a metric that have all the labels.
func (s series) sum(name string, labels ...string) (sum float64) {
	for key, v := range s {
		if metric, _, _ := strings.Cut(key, "{"); metric != name {
			continue
		}
		has := true
		for _, l := range labels {
			has = has && strings.Contains(key, l)
		}
		if has {
			sum += v
		}
	}
	return sum
}

// watched is what the watch log says of the machines of an environment.
type watched struct {
	alive                              map[types.UID]v1alpha1.MachinePhase
	withVM, joined, gone, failed, sets map[types.UID]bool
}

func watch(s *env.Env) watched {
	w := watched{map[types.UID]v1alpha1.MachinePhase{}, map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{}, map[types.UID]bool{}}
	for _, c := range s.AuditLog().Changes {
		if set, is := c.Object.(*v1alpha1.MachineSet); is {
			if w.sets[set.UID] = true; c.Gone {
				delete(w.sets, set.UID)
			}
		}
		m, is := c.Object.(*v1alpha1.Machine)
		switch {
		case !is:
			continue
		case c.Gone:
			delete(w.alive, m.UID)
			w.gone[m.UID] = true
			continue
		}
		w.alive[m.UID] = m.Status.CurrentStatus.Phase
		if m.Spec.ProviderID != "" {
			w.withVM[m.UID] = true
		}
		switch m.Status.CurrentStatus.Phase {
		case v1alpha1.MachineRunning:
			w.joined[m.UID] = true
		case v1alpha1.MachineFailed:
			w.failed[m.UID] = true
		default:
		}
	}
	return w
}

// TestMetrics_FiftyMachinesRoll_AsTheWatchLogSays scrapes while a deployment rolls, and compares
// what the scrapes say with a log that the manager has no part in.
func TestMetrics_FiftyMachinesRoll_AsTheWatchLogSays(t *testing.T) {
	t.Parallel()
	const replicas, surge = 50, 10
	s := cluster.Set(t, "metrics", fastOptions())
	m := s.StartManager(t, "manager", "--machine-creation-timeout=20s")
	scrapes, most := 0, 0.0
	end := alongside(t, 200*time.Millisecond, func(ctx context.Context) {
		seen, err := scraped(ctx, m)
		if err != nil || seen == nil {
			return // it is ending
		}
		scrapes++
		all := seen.sum("machinist_machines", `machine_deployment="workers"`)
		most = max(most, all)
		if total := seen.sum("mcm_machine_items_total"); total != seen.sum("machinist_machines") {
			t.Errorf("%v machines in all, %v by phase", total, seen.sum("machinist_machines"))
		}
	})
	deploy(t, s, s.Deployment("workers", "small", replicas, surge, 0))
	s.Nodes.SilenceNext(2) // two new machines fail to join
	roll(t, s, "workers", "large")
	s.Wait(t, 2*patience, "rolled", s.Complete("workers"))
	s.Wait(t, patience, "the old machines are gone", func(context.Context) (string, error) {
		if n := len(watch(s).alive); n != replicas {
			return strconv.Itoa(n) + " machines", nil
		}
		return "", nil
	})

	var seen series
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var err error
		seen, err = scraped(t.Context(), m)
		require.NoError(c, err)
		w := watch(s)
		agrees(c, seen, w, s)
	}, patience, time.Second)
	end()
	t.Logf("%d scrapes, at most %v machines, %v joins failed", scrapes, most, seen.sum("mcm_machine_num_failed_join"))
	require.Greater(t, scrapes, 20)
	require.Greater(t, most, float64(replicas), "no scrape was in the middle of the roll")
	require.LessOrEqual(t, most, 2.0*(replicas+surge), "machines that end, too")
	require.EqualValues(t, 2, seen.sum("mcm_machine_num_failed_join"))
	removeAll(t, s)

	require.EventuallyWithT(t, func(c *assert.CollectT) { // nothing is left of the deployment
		seen, err := scraped(t.Context(), m)
		require.NoError(c, err)
		for key := range seen {
			require.NotContains(c, key, `"workers`)
		}
		require.Zero(c, seen.sum("mcm_machine_items_total"))
	}, patience, time.Second)
}

// agrees compares a scrape with the watch log and the records of the cloud.
func agrees(t require.TestingT, seen series, w watched, s *env.Env) {
	const of = `machine_deployment="workers"`
	phases := map[v1alpha1.MachinePhase]int{}
	for _, phase := range w.alive {
		phases[phase]++
	}
	for phase, n := range phases {
		require.EqualValues(t, n, seen.sum("machinist_machines", of, `phase="`+string(phase)+`"`), phase)
	}
	require.EqualValues(t, len(w.alive), seen.sum("mcm_machine_items_total"))
	require.EqualValues(t, len(w.alive), seen.sum("mcm_machine_deployment_status_replicas"))
	require.EqualValues(t, len(w.sets), seen.sum("mcm_machine_set_items_total"))
	require.EqualValues(t, len(w.withVM), seen.sum("machinist_machine_creation_duration_seconds_count", of))
	require.EqualValues(t, len(w.joined), seen.sum("machinist_machine_join_duration_seconds_count", of))
	require.EqualValues(t, len(w.gone), seen.sum("machinist_machine_deletion_duration_seconds_count", of))
	require.EqualValues(t, len(w.failed), seen.sum("mcm_machine_num_failed_join", of))
	require.EqualValues(t, len(w.failed), seen.sum("mcm_machine_stale_machines_total"))
	require.EqualValues(t, s.Cloud.Calls(driver.OpCreateMachine, codes.OK), seen.sum("machinist_driver_calls_total", `operation="CreateMachine"`, `code="OK"`))
	require.EqualValues(t, s.Cloud.Calls(driver.OpDeleteMachine, codes.OK), seen.sum("machinist_driver_calls_total", `operation="DeleteMachine"`, `code="OK"`))
	require.EqualValues(t, 1, seen.sum("machinist_leader"))
	require.Zero(t, seen.sum("mcm_machine_controller_frozen"))
}
