// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// The vectors for drivers. The manager serves them and writes nothing into them: it counts the
// calls of a driver under names of its own. They are safe for several goroutines.
var (
	// APIRequestCount counts requests to a service of the cloud, by provider and service.
	APIRequestCount = counter("mcm_cloud_api_requests_total", "Requests of the driver to a service of the cloud.", "provider", "service")
	// APIFailedRequestCount counts failed requests to a service of the cloud, by provider and
	// service.
	APIFailedRequestCount = counter("mcm_cloud_api_requests_failed_total", "Failed requests of the driver to a service of the cloud.", "provider", "service")
	// APIRequestDuration is the duration of requests to a service of the cloud, in seconds.
	APIRequestDuration = histogram("mcm_cloud_api_api_request_duration_seconds", "Duration of requests of the driver to a service of the cloud.", "provider", "service")
	// DriverAPIRequestDuration is the duration of operations of the driver, in seconds.
	DriverAPIRequestDuration = histogram("mcm_cloud_api_driver_request_duration_seconds", "Duration of operations of the driver, as it measures them.", "provider", "operation")
	// DriverFailedAPIRequests counts failed operations of the driver, by the code of the error.
	DriverFailedAPIRequests = counter("mcm_cloud_api_driver_requests_failed_total", "Failed operations of the driver, as it counts them.", "provider", "operation", "error_code")
)

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// seconds are the bounds of the histograms: from a fast call to a slow machine.
var seconds = []float64{0.05, 0.25, 1, 5, 15, 30, 60, 2 * 60, 5 * 60, 10 * 60, 20 * 60, 60 * 60}

func histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds}, labels)
}
