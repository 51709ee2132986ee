// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/examples/controllers/observe"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(d time.Duration, e drain.Progress) drain.Progress {
	e.Time, e.Node, e.Started = now.Add(d), "worker-1", now
	return e
}

// scenario returns the progress of a drain with a refused request, an escalation, and an abandoned
// pod.
func scenario() []drain.Progress {
	evict, protected := &drain.Row{Action: drain.Evict}, &drain.Row{Action: drain.Block}
	gone := &drain.Row{Action: drain.Wait}
	return []drain.Progress{
		after(0, drain.Progress{Type: drain.ProgressStarted, Subject: "node/worker-1"}),
		after(0, drain.Progress{Type: drain.ProgressCordoned, Subject: "node/worker-1"}),
		after(0, drain.Progress{Type: drain.ProgressRequested, Subject: "pod/shop/a", Reason: drain.ReasonEvict, Row: evict}),
		after(time.Second, drain.Progress{Type: drain.ProgressRequested, Subject: "pod/shop/b", Reason: drain.ReasonBudget, Message: "web allows none", Row: evict, Err: errors.New("429")}),
		after(time.Second, drain.Progress{Type: drain.ProgressWaiting, Subject: "pod/shop/c", Reason: drain.ReasonUnmanaged, Message: "no controller recreates it", Row: protected}),
		after(time.Second, drain.Progress{Type: drain.ProgressWaiting, Subject: "volumeattachment/v", Reason: "Detaching"}),
		after(20*time.Second, drain.Progress{Type: drain.ProgressGone, Subject: "pod/shop/a", Reason: "Gone", Row: gone}),
		after(21*time.Second, drain.Progress{Type: drain.ProgressGone, Subject: "volumeattachment/v"}),
		after(time.Hour, drain.Progress{Type: drain.ProgressEscalated, Subject: "node/worker-1", Reason: "IgnoreBudgets", Message: "after 1h0m0s IgnoreBudgets"}),
		after(time.Hour, drain.Progress{Type: drain.ProgressRequested, Subject: "pod/shop/b", Reason: "IgnoreBudgets", Row: &drain.Row{Action: drain.Delete}}),
		after(61*time.Minute, drain.Progress{Type: drain.ProgressLeft, Subject: "pod/shop/c", Reason: drain.ReasonAbandoned, Row: protected}),
		after(61*time.Minute, drain.Progress{Type: drain.ProgressEnded, Subject: "node/worker-1", Outcome: drain.Proceeded}),
	}
}

func send(o runner.Observer, events ...drain.Progress) {
	for _, e := range events {
		o.Observe(e)
	}
}

func TestEvents_Drain_EventsOfImportantProgress(t *testing.T) {
	recorder := record.NewFakeRecorder(100)
	send(observe.Events(recorder, nil), scenario()...)
	send(observe.Events(recorder, nil), after(0, drain.Progress{Type: drain.ProgressCordoned, Subject: "node/worker-1", Err: errors.New("no")}))
	require.Equal(t, []string{
		"Normal DrainStarted Started node/worker-1",
		"Normal DrainCordoned Cordoned node/worker-1",
		"Warning DrainRefused Requested pod/shop/b to evict (DisruptionBudget): web allows none",
		"Warning DrainWaiting Waiting pod/shop/c (Unmanaged): no controller recreates it",
		"Normal DrainWaiting Waiting volumeattachment/v (Detaching)",
		"Warning DrainEscalated Escalated node/worker-1 (IgnoreBudgets): after 1h0m0s IgnoreBudgets",
		"Warning DrainLeft Left pod/shop/c (Abandoned)",
		"Warning DrainEnded Ended node/worker-1 (Proceeded)",
		"Warning DrainNotCordoned Cordoned node/worker-1: no",
	}, received(recorder))
	send(observe.Events(nil, nil), scenario()...)
}

func received(r *record.FakeRecorder) []string {
	var all []string
	for len(r.Events) > 0 {
		all = append(all, <-r.Events)
	}
	return all
}

// regarding records the objects and texts of Events.
type regarding struct {
	record.FakeRecorder
	objects  []kube.Object
	messages []string
}

func (r *regarding) Event(on kube.Object, _, _, message string) {
	r.objects, r.messages = append(r.objects, on), append(r.messages, message)
}

func TestEvents_Object_NodeIsTheDefault(t *testing.T) {
	r := &regarding{}
	machine := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	send(observe.Events(r, nil), scenario()[0])
	send(observe.Events(r, machine), scenario()[0])
	require.Equal(t, []kube.Object{&corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "worker-1", UID: "worker-1"}, machine}, r.objects)
}

func TestEvents_LongMessage_IsShortened(t *testing.T) {
	r := &regarding{}
	for i := range 4 {
		send(observe.Events(r, nil), after(0, drain.Progress{Type: drain.ProgressEnded, Message: strings.Repeat("x", i) + strings.Repeat("ü", 1000)}))
	}
	for _, m := range r.messages {
		require.LessOrEqual(t, len(m), 1024)
		require.Greater(t, len(m), 1016)
		require.True(t, strings.HasSuffix(m, "ü…"), m)
	}
}

func TestSlog_Drain_LogsEveryEventWithItsTime(t *testing.T) {
	var b bytes.Buffer
	send(observe.Slog(slog.New(slog.NewTextHandler(&b, nil))), scenario()...)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, len(scenario()))
	require.Equal(t, `time=2026-03-01T12:00:00.000Z level=INFO msg="drain: started" node=worker-1`, lines[0])
	require.Equal(t, `time=2026-03-01T12:00:01.000Z level=WARN msg="drain: requested" node=worker-1 subject=pod/shop/b action=evict `+
		`reason=DisruptionBudget message="web allows none" error=429`, lines[3])
	require.Equal(t, `time=2026-03-01T13:01:00.000Z level=WARN msg="drain: ended" node=worker-1 outcome=Proceeded`, lines[11])

	b.Reset()
	send(observe.Slog(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelWarn}))), scenario()...)
	require.Equal(t, 5, strings.Count(b.String(), "\n"))
}

func TestSlog_Nil_UsesTheDefault(t *testing.T) {
	var b bytes.Buffer
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	send(observe.Slog(nil), scenario()[0])
	require.Contains(t, b.String(), "drain: started")
}

func TestLogr_Warning_HasVerbosityZero(t *testing.T) {
	for verbosity, want := range map[int]int{0: 5, 1: len(scenario())} {
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: verbosity})
		send(observe.Logr(log), scenario()...)
		require.Len(t, lines, want)
		require.True(t, slices.ContainsFunc(lines, func(l string) bool {
			return strings.Contains(l, `"drain: requested" "node"="worker-1" "subject"="pod/shop/b" "action"="evict" "reason"="DisruptionBudget"`)
		}), lines)
	}
	send(observe.Logr(logr.Logger{}), scenario()...)
}

// figures returns the metrics as text, without the buckets of histograms.
func figures(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	var all []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if h := m.GetHistogram(); h != nil {
				all = append(all, fmt.Sprintf("%s%v %d %g", strings.TrimPrefix(f.GetName(), "machinist_drain_"), labels, h.GetSampleCount(), h.GetSampleSum()))
			} else if value != 0 {
				all = append(all, fmt.Sprintf("%s%v %g", strings.TrimPrefix(f.GetName(), "machinist_drain_"), labels, value))
			}
		}
	}
	return all
}

func TestMetrics_Drain_IsCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := observe.NewMetrics(registry)
	require.NoError(t, err)
	send(metrics, scenario()[:6]...)
	require.Equal(t, []string{
		"active[] 1", "cordons_total[cordoned] 1", "pod_seconds[] 0 0",
		"requests_total[evict DisruptionBudget] 1", "requests_total[evict Terminating] 1",
		"waiting[Detaching] 1", "waiting[DisruptionBudget] 1", "waiting[Terminating] 1", "waiting[Unmanaged] 1",
	}, figures(t, registry))
	send(metrics, scenario()[6:]...)
	require.Equal(t, []string{
		"cordons_total[cordoned] 1", "duration_seconds[Proceeded] 1 3660", "ended_total[Proceeded] 1", "escalations_total[IgnoreBudgets] 1",
		"left_total[Abandoned] 1", "pod_seconds[] 1 20",
		"requests_total[delete Terminating] 1", "requests_total[evict DisruptionBudget] 1", "requests_total[evict Terminating] 1",
	}, figures(t, registry))
}

func TestMetrics_Forget_DrainIsNotActive(t *testing.T) {
	for name, stop := range map[string]func(*observe.Metrics){
		"by its program": func(m *observe.Metrics) { m.Forget("worker-1"); m.Forget("worker-1") },
		"by an abort":    func(m *observe.Metrics) { send(m, after(0, drain.Progress{Type: drain.ProgressUncordoned})) },
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			metrics, err := observe.NewMetrics(registry)
			require.NoError(t, err)
			send(metrics, scenario()[:6]...)
			stop(metrics)
			for _, f := range figures(t, registry) {
				require.NotContains(t, f, "active")
				require.NotContains(t, f, "waiting")
			}
		})
	}
}

func TestMetrics_RegisteredTwice_ReturnsError(t *testing.T) {
	registry := prometheus.NewRegistry()
	_, err := observe.NewMetrics(registry)
	require.NoError(t, err)
	again, err := observe.NewMetrics(registry)
	require.ErrorAs(t, err, &prometheus.AlreadyRegisteredError{})
	send(again, scenario()...)
	nowhere, err := observe.NewMetrics(nil)
	require.NoError(t, err)
	send(nowhere, scenario()...)
}

func TestAll_SeveralObservers_CalledInOrder(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	send(observe.All(nil, observe.Events(recorder, nil), observe.Events(recorder, nil)), scenario()[0])
	require.Len(t, received(recorder), 2)
	send(observe.All(), scenario()...)
}

// TestEvents_BudgetRefuses_EventIsRecorded has a PodDisruptionBudget that allows no disruption, so
// that the drain makes no request.
func TestEvents_BudgetRefuses_EventIsRecorded(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	observed := drain.Observation{Looked: true, Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}, Spec: corev1.NodeSpec{Unschedulable: true}}}
	labels := map[string]string{"app": "web"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "a", Labels: labels}, Spec: corev1.PodSpec{NodeName: "worker-1"}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	observed.Pods, observed.Budgets = drain.All(pod), drain.All(budget)
	plan := drain.Decide(observed, drain.Policy{EvictUnmanaged: true}, now)
	send(observe.Events(recorder, nil), drain.Compare(drain.Decision{}, plan, nil, now)...)
	close(recorder.Events)
	var news []string
	for e := range recorder.Events {
		news = append(news, e)
	}
	require.Contains(t, strings.Join(news, "\n"), "Warning DrainWaiting Waiting pod/shop/a (DisruptionBudget)")
}
