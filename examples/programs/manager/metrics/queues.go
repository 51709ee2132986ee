// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// queues are the metrics of work queues, by name. They have the names of the metrics of client-go,
// with the prefix of MCM.
type queues struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, work              *prometheus.HistogramVec
}

func newQueues() *queues {
	return &queues{
		depth:      gauge("mcm_workqueue_depth", "Objects in a work queue.", "name"),
		adds:       counter("mcm_workqueue_adds_total", "Objects that were added to a work queue.", "name"),
		latency:    histogram("mcm_workqueue_queue_duration_seconds", "Time that an object waits in a work queue.", "name"),
		work:       histogram("mcm_workqueue_work_duration_seconds", "Time that a pass over an object takes.", "name"),
		unfinished: gauge("mcm_workqueue_unfinished_work_seconds", "Time that passes which have not ended have taken together.", "name"),
		longest:    gauge("mcm_workqueue_longest_running_processor_seconds", "Time that the longest pass which has not ended has taken.", "name"),
		retries:    counter("mcm_workqueue_retries_total", "Passes that were tried again after an error.", "name"),
	}
}

// Queues returns the metrics of work queues, for [controllers.Config].QueueMetrics.
func (m *Metrics) Queues() workqueue.MetricsProvider { return m.queues }

func (q *queues) all() []prometheus.Collector {
	return []prometheus.Collector{q.depth, q.adds, q.latency, q.work, q.unfinished, q.longest, q.retries}
}

// Describe implements [prometheus.Collector].
func (q *queues) Describe(to chan<- *prometheus.Desc) {
	for _, c := range q.all() {
		c.Describe(to)
	}
}

// Collect implements [prometheus.Collector].
func (q *queues) Collect(to chan<- prometheus.Metric) {
	for _, c := range q.all() {
		c.Collect(to)
	}
}

// NewDepthMetric implements [workqueue.MetricsProvider].
func (q *queues) NewDepthMetric(name string) workqueue.GaugeMetric {
	return q.depth.WithLabelValues(name)
}

// NewAddsMetric implements [workqueue.MetricsProvider].
func (q *queues) NewAddsMetric(name string) workqueue.CounterMetric {
	return q.adds.WithLabelValues(name)
}

// NewLatencyMetric implements [workqueue.MetricsProvider].
func (q *queues) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return q.latency.WithLabelValues(name)
}

// NewWorkDurationMetric implements [workqueue.MetricsProvider].
func (q *queues) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return q.work.WithLabelValues(name)
}

// NewUnfinishedWorkSecondsMetric implements [workqueue.MetricsProvider].
func (q *queues) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.unfinished.WithLabelValues(name)
}

// NewLongestRunningProcessorSecondsMetric implements [workqueue.MetricsProvider].
func (q *queues) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.longest.WithLabelValues(name)
}

// NewRetriesMetric implements [workqueue.MetricsProvider].
func (q *queues) NewRetriesMetric(name string) workqueue.CounterMetric {
	return q.retries.WithLabelValues(name)
}
