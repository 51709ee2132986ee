// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/programs/manager/metrics"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// everyMetric returns metrics of which each one has a value.
func everyMetric(t *testing.T) *shown {
	t.Helper()
	d, of, m := deployment(), set(), newMachine(0, v1alpha1.MachinePending)
	limit, zero, deadline := int32(3), int32(0), int32(600)
	d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds, d.Status.CollisionCount = &limit, &deadline, &zero
	d.Spec.RollbackTo = &v1alpha1.RollbackConfig{Revision: 2}
	of.Status.Conditions = []v1alpha1.MachineSetCondition{{Type: v1alpha1.MachineSetFrozen, Status: v1alpha1.ConditionTrue}}
	m.Labels = map[string]string{v1alpha1.NodeLabelKey: "node-1"}
	m.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	failing := newMachine(1, v1alpha1.MachinePending)
	s := show(t, metrics.Options{PerMachine: true}, controllers.All, d, of, m, failing, small())
	s.held = []controllers.Held{{Kind: "machine", Hold: machinist.Hold{Reason: "WaitingForNode", Since: now}}}
	s.Decided(controllers.Note{Kind: "machine", Reason: "Failed", Err: errors.New("no")})
	s.Collected("VM", nil)
	s.Lease(func() (bool, time.Time) { return true, now })
	s.Abandoned(func() []driver.Call { return []driver.Call{{Operation: driver.OpCreateMachine}} })
	live(t, s, m, failing)
	drains(s)
	queue(s)
	vectors(t, s)
	return s
}

// live lets one machine join, end and go, and one fail.
func live(t *testing.T, s *shown, m, failing *v1alpha1.Machine) {
	t.Helper()
	api := s.client.MachineV1alpha1().Machines("ns")
	write := func(m *v1alpha1.Machine, version string, edit func(*v1alpha1.Machine)) *v1alpha1.Machine {
		m = m.DeepCopy()
		m.ResourceVersion, m.Spec.ProviderID = version, "cloud:///1"
		edit(m)
		_, err := api.Update(t.Context(), m, metav1.UpdateOptions{})
		require.NoError(t, err)
		return m
	}
	write(m, "2", func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineRunning })
	failed := write(failing, "2", func(m *v1alpha1.Machine) { m.Status.CurrentStatus.Phase = v1alpha1.MachineFailed })
	deleted := metav1.NewTime(now.Add(-time.Minute))
	m = write(failed, "3", func(m *v1alpha1.Machine) { m.DeletionTimestamp = &deleted })
	s.eventually("mcm_machine_num_failed_join{", true)
	s.eventually("mcm_machine_join_duration_seconds{", true)
	simulated := drivertest.NewCloud(drivertest.CloudOptions{NeedsInitialization: true})
	cloud, class, secret := s.Driver(simulated), simulated.MachineClass("ns", "small"), simulated.Secret("ns", "small")
	answer, err := cloud.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: failing, MachineClass: class, Secret: secret})
	require.NoError(t, err)
	m = m.DeepCopy()
	m.Spec.ProviderID = answer.ProviderID
	_, err = cloud.InitializeMachine(t.Context(), &driver.InitializeMachineRequest{Machine: m, MachineClass: class, Secret: secret})
	require.NoError(t, err)
	s.eventually(`machinist_machines{machine_deployment="pool",namespace="ns",phase="Running"} 1`, true)
	require.Eventually(t, func() bool { // the cache shows the deletion
		_, err = cloud.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: m, MachineClass: class, Secret: secret})
		return err == nil && strings.Contains(s.scrape(), "\nmcm_machine_delete_duration_seconds{")
	}, 10*time.Second, 5*time.Millisecond)
}

// drains tells of one drain with all that can happen.
func drains(s *shown) {
	at := drain.Progress{Node: "node-1", Started: epoch, Time: epoch.Add(time.Minute), Subject: "pod/ns/a", Reason: drain.ReasonBudget}
	for _, kind := range []drain.ProgressType{
		drain.ProgressStarted, drain.ProgressCordoned, drain.ProgressRequested, drain.ProgressGone, drain.ProgressWaiting, drain.ProgressLeft, drain.ProgressEscalated, drain.ProgressEnded,
	} {
		at.Type, at.Outcome = kind, drain.Drained
		s.Drains().Observe(at)
	}
}

// queue makes the metrics of one work queue.
func queue(s *shown) {
	q := s.Queues()
	q.NewDepthMetric("machine").Inc()
	q.NewAddsMetric("machine").Inc()
	q.NewLatencyMetric("machine").Observe(1)
	q.NewWorkDurationMetric("machine").Observe(1)
	q.NewUnfinishedWorkSecondsMetric("machine").Set(1)
	q.NewLongestRunningProcessorSecondsMetric("machine").Set(1)
	q.NewRetriesMetric("machine").Inc()
}

// vectors counts a request of a client, and what drivers count.
func vectors(t *testing.T, s *shown) {
	t.Helper()
	answer, err := s.Transport("machines")(roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
	})).RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/", nil))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	metrics.APIRequestCount.WithLabelValues("cloud", "compute").Inc()
	metrics.APIFailedRequestCount.WithLabelValues("cloud", "compute").Inc()
	metrics.APIRequestDuration.WithLabelValues("cloud", "compute").Observe(1)
	metrics.DriverAPIRequestDuration.WithLabelValues("cloud", "CreateMachine").Observe(1)
	metrics.DriverFailedAPIRequests.WithLabelValues("cloud", "CreateMachine", "Internal").Inc()
	t.Cleanup(func() {
		metrics.APIRequestCount.Reset()
		metrics.APIFailedRequestCount.Reset()
		metrics.APIRequestDuration.Reset()
		metrics.DriverAPIRequestDuration.Reset()
		metrics.DriverFailedAPIRequests.Reset()
	})
}

// ofProcess are the metrics that the Prometheus client has itself.
var ofProcess = regexp.MustCompile(`^(go|process|promhttp)_`)

// families returns the type and the labels of each metric of a scrape, as docs/parity.md writes
// them.
func families(text string) map[string]string {
	all, kinds := map[string]string{}, map[string]string{}
	label := regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
	for line := range strings.Lines(text) {
		if kind, is := strings.CutPrefix(line, "# TYPE "); is {
			name, kind, _ := strings.Cut(strings.TrimSpace(kind), " ")
			kinds[name] = kind
			continue
		}
		name, rest, _ := strings.Cut(line, "{")
		name, _, _ = strings.Cut(name, " ")
		if base := strings.TrimSuffix(name, "_count"); kinds[base] == "histogram" {
			name = base // the other series have the label le
		}
		if strings.HasPrefix(line, "#") || kinds[name] == "" || ofProcess.MatchString(name) {
			continue
		}
		var labels []string
		for _, m := range label.FindAllStringSubmatch(rest, -1) {
			labels = append(labels, "`"+m[1]+"`")
		}
		slices.Sort(labels)
		all[name] = strings.TrimSpace(kinds[name] + " " + strings.Join(labels, " "))
	}
	return all
}

// TestMetrics_EachMetric_HasItsRow compares a scrape with the table of docs/parity.md, in both
// directions, with types and labels.
func TestMetrics_EachMetric_HasItsRow(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/parity.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Metrics\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	row := regexp.MustCompile("(?m)^\\| `([a-z_*]+)` \\| ([^|]*) \\| \\*(done|better|new|not here)\\*: [^|]+ \\|$")
	documented := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(section, -1) {
		require.NotContains(t, documented, m[1], "two rows")
		if m[3] != "not here" {
			documented[m[1]] = m[2]
		}
	}
	require.Len(t, row.FindAllString(section, -1), strings.Count(section, "\n| ")-1, "a row has another form")
	require.Equal(t, families(everyMetric(t).scrape()), documented)
}
