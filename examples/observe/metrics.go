// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/machinist-dev/machinist/drain"
)

// Metrics counts what happens in drains. No label has the name of a Node or a pod. A
// Metrics can be used by several goroutines.
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
	drains map[string]*underWay // by Node
}

// underWay is what is known of a drain that is not over.
type underWay struct {
	began time.Time
	// waits are the reasons by subject, asked the times of the first requests.
	waits map[string]string
	asked map[string]time.Time
}

// NewMetrics returns metrics that are registered; A nil registerer registers nothing. The
// error is that of the registerer, such as [prometheus.AlreadyRegisteredError].
//
//	machinist_drain_active                        drains that are not over
//	machinist_drain_ended_total{outcome}          drains that are
//	machinist_drain_duration_seconds{outcome}     how long they took
//	machinist_drain_requests_total{action,reason} requests; the reason Terminating is an accepted one
//	machinist_drain_waiting{reason}               pods, volumes and gates that are waited for now
//	machinist_drain_pod_seconds                   from the first request that was accepted until the pod has gone
//	machinist_drain_left_total{reason}            pods and volumes that were not waited for to the end
//	machinist_drain_escalations_total{rung}       rungs of ladders that were reached
//	machinist_drain_cordons_total{result}          Nodes that were cordoned or not, or uncordoned or not
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	minutes := []float64{1, 5, 10, 30, 60, 2 * 60, 5 * 60, 10 * 60, 30 * 60, 60 * 60, 2 * 60 * 60}
	m := &Metrics{
		active: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "machinist_drain_active", Help: "Drains that are not over.",
		}),
		ended: counters("ended_total", "Drains that are over, by how they ended.", "outcome"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "machinist_drain_duration_seconds", Help: "How long drains took.", Buckets: minutes,
		}, []string{"outcome"}),
		requests: counters("requests_total", "Requests to pods, by what was asked and what it came to.", "action", "reason"),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "machinist_drain_waiting", Help: "Pods, volumes and gates that are waited for now.",
		}, []string{"reason"}),
		gone: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "machinist_drain_pod_seconds", Help: "From the first accepted request until the pod has gone.", Buckets: minutes,
		}),
		left:        counters("left_total", "Pods and volumes that were not waited for to the end.", "reason"),
		escalations: counters("escalations_total", "Rungs of ladders that were reached.", "rung"),
		cordons:     counters("cordons_total", "Cordons that were set or taken back, or could not be.", "result"),
		drains:      map[string]*underWay{},
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
	case drain.ProgressStarted, drain.ProgressUncordoned: // known by now, and handled above
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
		delete(d.asked, e.Subject) // a later pod may have its name
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

// Forget says that the drain of a Node goes on no more, although it has not ended: its
// program gave it up. It counts as active until then.
func (m *Metrics) Forget(node string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(node)
}

// drain returns what is known of the drain of an event, which may be the first.
func (m *Metrics) drain(e drain.Progress) *underWay {
	if d, known := m.drains[e.Node]; known {
		return d
	}
	d := &underWay{began: e.Started, waits: map[string]string{}, asked: map[string]time.Time{}}
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

// requested counts a request. What it says of the pod is what the pod waits for.
func (m *Metrics) requested(d *underWay, e drain.Progress) {
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

// wait notes what is waited for; no reason means nothing any more.
func (m *Metrics) wait(d *underWay, subject, reason string) {
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
