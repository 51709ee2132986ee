// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/examples/controllers/observe"
	"github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/safety"
)

// Options configure [Metrics].
type Options struct {
	// PerMachine adds the series of each machine.
	PerMachine bool
	// Now returns the current time. Nil means the real time.
	Now func() time.Time
}

// Metrics are the metrics of one manager. They are safe for concurrent use.
type Metrics struct {
	options   Options
	registry  *prometheus.Registry
	fleet     *fleet
	durations *durations

	drains    *observe.Metrics
	decisions *prometheus.CounterVec
	failures  *prometheus.CounterVec
	panics    prometheus.Counter
	calls     *prometheus.CounterVec
	callTime  *prometheus.HistogramVec
	frozen    prometheus.Gauge
	orphans   *prometheus.CounterVec
	requests  *requests
	queues    *queues

	mu    sync.Mutex
	lease func() (leads bool, renewed time.Time)
	// unended returns the abandoned calls of the driver.
	unended func() []driver.Call
}

// New returns metrics without series of objects. [Metrics.Watch] adds them.
func New(o Options) *Metrics {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Metrics{
		options: o, registry: prometheus.NewRegistry(), durations: newDurations(o.Now),
		decisions: counter("machinist_decisions_total", "Decisions of the controllers, by their reason.", "kind", "reason"),
		failures:  counter("machinist_reconcile_errors_total", "Passes of the controllers that ended with an error.", "kind"),
		panics:    prometheus.NewCounter(prometheus.CounterOpts{Name: "machinist_panics_total", Help: "Passes and calls of the driver that panicked."}),
		calls:     counter("machinist_driver_calls_total", "Calls of the driver, by operation and code of the answer.", "operation", "code"),
		callTime:  histogram("machinist_driver_call_duration_seconds", "Duration of calls of the driver.", "operation"),
		frozen: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "mcm_machine_controller_frozen", Help: "1 while an API server does not answer and nothing is created, failed or replaced, else 0.",
		}),
		orphans:  counter("machinist_orphan_deletions_total", "Deletions of VMs and side resources that belong to no machine, by kind and code of the driver.", "kind", "code"),
		requests: newRequests(), queues: newQueues(),
	}
	m.fleet = newFleet(o)
	m.drains, _ = observe.NewMetrics(m.registry) // nothing else is registered yet
	m.registry.MustRegister(                     // their names differ
		m.fleet, m.durations, m.decisions, m.failures, m.panics, m.calls, m.callTime, m.frozen, m.orphans, m.requests, m.queues, &leaseCollector{m}, &abandonedCollector{m},
		APIRequestCount, APIFailedRequestCount, APIRequestDuration, DriverAPIRequestDuration, DriverFailedAPIRequests,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler serves scrapes. A duplicate series, such as a condition that an object lists twice, is
// served once and counted in promhttp_metric_handler_errors_total.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, Registry: m.registry, Timeout: 30 * time.Second, MaxRequestsInFlight: 3,
	})
}

// Watch adds the objects in the caches of the controllers. It is a value of
// [controllers.Config].Started.
func (m *Metrics) Watch(v controllers.Views) {
	m.fleet.watch(v)
	m.durations.watch(v)
}

// Decided counts a decision. It is a value of [controllers.Config].Observe.
func (m *Metrics) Decided(n controllers.Note) {
	if n.Err != nil {
		m.failures.WithLabelValues(n.Kind).Inc()
	}
	if errors.As(n.Err, new(*controllers.PanicError)) {
		m.panics.Inc()
	}
	if n.Reason != "" {
		m.decisions.WithLabelValues(n.Kind, string(n.Reason)).Inc()
	}
}

// Drains returns an observer that counts and times drains, for [controllers.Config].Drains.
func (m *Metrics) Drains() runner.DrainObserver { return drains{m.drains, m.durations} }

// drains counts drains, and times them by the deployments of their machines.
type drains struct {
	*observe.Metrics
	durations *durations
}

// Observe implements [runner.DrainObserver].
func (d drains) Observe(p drain.Progress) {
	d.Metrics.Observe(p)
	d.durations.drained(p)
}

// Driver returns d with calls that are counted and timed.
func (m *Metrics) Driver(d driver.Driver) driver.Driver {
	return driver.Observe(d, func(c driver.Call) {
		m.calls.WithLabelValues(c.Operation.String(), c.Code.String()).Inc()
		m.callTime.WithLabelValues(c.Operation.String()).Observe(c.Duration.Seconds())
		m.durations.called(c)
	}, nil)
}

// Probed records a freeze. It is a value of [controllers.Config].Probed.
func (m *Metrics) Probed(d safety.FreezeDecision) {
	m.frozen.Set(0)
	if d.Freeze.Frozen {
		m.frozen.Set(1)
	}
}

// Collected counts the deletion of an orphan. It is a value of [controllers.Config].Collected.
func (m *Metrics) Collected(kind string, err error) {
	m.orphans.WithLabelValues(kind, codes.Of(err).String()).Inc()
}

// Lease adds the metrics of the lease. state returns whether this manager is the leader, and the
// time of the last renewal, which is zero before the first.
func (m *Metrics) Lease(state func() (leads bool, renewed time.Time)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lease = state
}

// Abandoned adds the number of abandoned calls of the driver. calls returns them, as
// [driver.Abandoned] does.
func (m *Metrics) Abandoned(calls func() []driver.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unended = calls
}

// abandonedCollector counts the abandoned calls of the driver.
type abandonedCollector struct{ m *Metrics }

var abandoned = prometheus.NewDesc("machinist_driver_calls_abandoned", "Calls of the driver that have not ended although their time is over, by operation.", []string{"operation"}, nil)

// Describe implements [prometheus.Collector].
func (*abandonedCollector) Describe(to chan<- *prometheus.Desc) { to <- abandoned }

// Collect implements [prometheus.Collector].
func (c *abandonedCollector) Collect(to chan<- prometheus.Metric) {
	c.m.mu.Lock()
	calls := c.m.unended
	c.m.mu.Unlock()
	if calls == nil {
		return
	}
	count := map[driver.Operation]float64{}
	for _, op := range driver.Operations() {
		count[op] = 0
	}
	for _, call := range calls() {
		count[call.Operation]++
	}
	for op, n := range count {
		to <- prometheus.MustNewConstMetric(abandoned, prometheus.GaugeValue, n, op.String())
	}
}

// leaseCollector collects the metrics of the lease.
type leaseCollector struct{ m *Metrics }

var (
	leads   = prometheus.NewDesc("machinist_leader", "1 if this manager holds the lease, else 0.", nil, nil)
	renewal = prometheus.NewDesc("machinist_lease_renewal_age_seconds", "Time since this manager renewed its lease; absent before it did.", nil, nil)
)

// Describe implements [prometheus.Collector].
func (*leaseCollector) Describe(to chan<- *prometheus.Desc) { to <- leads; to <- renewal }

// Collect implements [prometheus.Collector].
func (c *leaseCollector) Collect(to chan<- prometheus.Metric) {
	c.m.mu.Lock()
	state := c.m.lease
	c.m.mu.Unlock()
	if state == nil {
		return
	}
	leading, renewed := state()
	to <- prometheus.MustNewConstMetric(leads, prometheus.GaugeValue, number(leading))
	if !renewed.IsZero() {
		to <- prometheus.MustNewConstMetric(renewal, prometheus.GaugeValue, c.m.options.Now().Sub(renewed).Seconds())
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
