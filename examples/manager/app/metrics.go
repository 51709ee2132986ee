// SPDX-License-Identifier: Apache-2.0

package app

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/safety"
)

// metrics are what a manager tells Prometheus of its guards. They are safe for several
// goroutines.
type metrics struct {
	registry *prometheus.Registry
	frozen   prometheus.Gauge
	orphans  *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		frozen: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "mcm_machine_controller_frozen", Help: "1 while an API server does not answer and nothing is created, failed or replaced, else 0.",
		}),
		orphans: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machinist_orphan_deletions_total", Help: "Deletions of VMs and side resources that belong to no machine, by kind and code of the driver.",
		}, []string{"kind", "code"}),
	}
	m.registry.MustRegister(m.frozen, m.orphans) // their names differ
	return m
}

// probed is told what follows from a probe of the API servers.
func (m *metrics) probed(d safety.FreezeDecision) {
	m.frozen.Set(0)
	if d.Freeze.Frozen {
		m.frozen.Set(1)
	}
}

// collected is told of the deletion of something without a machine.
func (m *metrics) collected(kind string, err error) {
	m.orphans.WithLabelValues(kind, codes.Of(err).String()).Inc()
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
