// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requests counts requests to API servers.
type requests struct {
	total   *prometheus.CounterVec
	latency *prometheus.HistogramVec
}

func newRequests() *requests {
	return &requests{
		total:   counter("rest_client_requests_total", "Requests to API servers, by client, method and status; the status of a request without an answer is <error>.", "client", "method", "code"),
		latency: histogram("rest_client_request_duration_seconds", "Duration of requests to API servers until the answer begins.", "client", "method"),
	}
}

// Describe implements [prometheus.Collector].
func (r *requests) Describe(to chan<- *prometheus.Desc) {
	r.total.Describe(to)
	r.latency.Describe(to)
}

// Collect implements [prometheus.Collector].
func (r *requests) Collect(to chan<- prometheus.Metric) {
	r.total.Collect(to)
	r.latency.Collect(to)
}

// Transport returns a wrapper that counts the requests of a named client, for rest.Config.Wrap.
func (m *Metrics) Transport(client string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &counting{next, m.requests, client} }
}

// counting is a transport that counts requests.
type counting struct {
	next     http.RoundTripper
	requests *requests
	client   string
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (c *counting) WrappedRoundTripper() http.RoundTripper { return c.next }

// RoundTrip implements [http.RoundTripper].
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	response, err := c.next.RoundTrip(r)
	code := "<error>"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	c.requests.total.WithLabelValues(c.client, r.Method, code).Inc()
	c.requests.latency.WithLabelValues(c.client, r.Method).Observe(time.Since(began).Seconds())
	return response, err
}
