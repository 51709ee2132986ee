// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/machinist-dev/machinist/drain"
)

// Metrics counts drains, requests and waits. No label contains the name of a Node or a pod. It is
// safe for several goroutines.
type Metrics struct {
	active      prometheus.Gauge
	ended       *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	requests    *prometheus.CounterVec
	waiting     *prometheus.GaugeVec
	gone        prometheus.Histogram
	left        *prometheus.CounterVec
	escalations *prometheus.CounterVec
	cordons     *prometheus.CounterVec

	mu     sync.Mutex
	drains map[string]*activeDrain // by Node name
}

// activeDrain is the state of a drain in progress.
type activeDrain struct {
	began time.Time
	// waits are the reasons of holds by subject. asked are the times of the first accepted
	// requests by subject.
	waits map[string]string
	asked map[string]time.Time
}

// NewMetrics returns metrics that are registered with the registerer. Nil registers
// nothing. The error is that of the registerer, such as [prometheus.AlreadyRegisteredError].
//
//	machinist_drain_active                        drains in progress
//	machinist_drain_ended_total{outcome}          drains that have ended
//	machinist_drain_duration_seconds{outcome}     durations of these drains
//	machinist_drain_requests_total{action,reason} requests for pods; accepted ones have the reason Terminating
//	machinist_drain_waiting{reason}               pods, volumes and gates that drains wait for
//	machinist_drain_pod_seconds                   from the first accepted request until the pod is deleted
//	machinist_drain_left_total{reason}            pods and volumes that drains have abandoned
//	machinist_drain_escalations_total{rung}       escalation rungs that drains have reached
//	machinist_drain_cordons_total{result}         cordons and uncordons, including failed ones
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	minutes := []float64{1, 5, 10, 30, 60, 2 * 60, 5 * 60, 10 * 60, 30 * 60, 60 * 60, 2 * 60 * 60}
	m := &Metrics{
		active: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "machinist_drain_active", Help: "Drains in progress.",
		}),
		ended: counters("ended_total", "Drains that have ended, by outcome.", "outcome"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "machinist_drain_duration_seconds", Help: "Durations of drains that have ended, in seconds.", Buckets: minutes,
		}, []string{"outcome"}),
		requests: counters("requests_total", "Requests for pods, by action and result.", "action", "reason"),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "machinist_drain_waiting", Help: "Pods, volumes and gates that drains wait for.",
		}, []string{"reason"}),
		gone: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "machinist_drain_pod_seconds", Help: "Time from the first accepted request until the pod is deleted, in seconds.", Buckets: minutes,
		}),
		left:        counters("left_total", "Pods and volumes that drains have abandoned.", "reason"),
		escalations: counters("escalations_total", "Escalation rungs that drains have reached.", "rung"),
		cordons:     counters("cordons_total", "Cordons and uncordons of Nodes, including failed ones.", "result"),
		drains:      map[string]*activeDrain{},
	}
	if registerer == nil {
		return m, nil
	}
	var failed []error
	for _, c := range []prometheus.Collector{
		m.active, m.ended, m.duration, m.requests, m.waiting, m.gone, m.left, m.escalations, m.cordons,
	} {
		failed = append(failed, registerer.Register(c))
	}
	return m, errors.Join(failed...)
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "machinist_drain_" + name, Help: help}, labels)
}

// Observe implements [runner.Observer].
func (m *Metrics) Observe(e drain.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Type == drain.ProgressUncordoned {
		m.cordoned(e, "uncordoned", "not uncordoned")
		m.forget(e.Node)
		return
	}
	d := m.drain(e)
	switch e.Type {
	case drain.ProgressStarted, drain.ProgressUncordoned: // counted above
	case drain.ProgressCordoned:
		m.cordoned(e, "cordoned", "not cordoned")
	case drain.ProgressRequested:
		m.requested(d, e)
	case drain.ProgressWaiting:
		m.wait(d, e.Subject, string(e.Reason))
	case drain.ProgressGone:
		if asked, was := d.asked[e.Subject]; was {
			m.gone.Observe(e.Time.Sub(asked).Seconds())
		}
		delete(d.asked, e.Subject) // a later pod may have the same name
		m.wait(d, e.Subject, "")
	case drain.ProgressLeft:
		delete(d.asked, e.Subject)
		m.left.WithLabelValues(string(e.Reason)).Inc()
		m.wait(d, e.Subject, "")
	case drain.ProgressEscalated:
		m.escalations.WithLabelValues(string(e.Reason)).Inc()
	case drain.ProgressEnded:
		m.ended.WithLabelValues(string(e.Outcome)).Inc()
		m.duration.WithLabelValues(string(e.Outcome)).Observe(e.Time.Sub(d.began).Seconds())
		m.forget(e.Node)
	}
}

// Forget ends the count of a drain that its program has stopped before its end. Until then the
// drain counts as active.
func (m *Metrics) Forget(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(node)
}

// drain returns the state of the drain of an event, which may be its first.
func (m *Metrics) drain(e drain.Progress) *activeDrain {
	if d, known := m.drains[e.Node]; known {
		return d
	}
	d := &activeDrain{began: e.Started, waits: map[string]string{}, asked: map[string]time.Time{}}
	if d.began.IsZero() {
		d.began = e.Time
	}
	m.drains[e.Node] = d
	m.active.Inc()
	return d
}

func (m *Metrics) forget(node string) {
	d, known := m.drains[node]
	if !known {
		return
	}
	for subject := range d.waits {
		m.wait(d, subject, "")
	}
	delete(m.drains, node)
	m.active.Dec()
}

func (m *Metrics) cordoned(e drain.Progress, done, failed string) {
	if e.Err != nil {
		done = failed
	}
	m.cordons.WithLabelValues(done).Inc()
}

// requested counts a request. The pod then waits for the reason of the request.
func (m *Metrics) requested(d *activeDrain, e drain.Progress) {
	reason := e.Reason
	if e.Err == nil {
		reason = drain.ReasonTerminating
		if _, again := d.asked[e.Subject]; !again {
			d.asked[e.Subject] = e.Time
		}
	}
	action := ""
	if e.Row != nil {
		action = string(e.Row.Action)
	}
	m.requests.WithLabelValues(action, string(reason)).Inc()
	m.wait(d, e.Subject, string(reason))
}

// wait records the reason for which a subject waits. An empty reason ends the wait.
func (m *Metrics) wait(d *activeDrain, subject, reason string) {
	before := d.waits[subject]
	if before == reason {
		return
	}
	if before != "" {
		m.waiting.WithLabelValues(before).Dec()
	}
	if delete(d.waits, subject); reason != "" {
		d.waits[subject] = reason
		m.waiting.WithLabelValues(reason).Inc()
	}
}
