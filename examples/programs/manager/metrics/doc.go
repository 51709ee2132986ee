// SPDX-License-Identifier: Apache-2.0

// Package metrics serves Prometheus metrics of a machine manager. A metric with the meaning of one
// of MCM has its name.
//
//	m := metrics.New(metrics.Options{})
//	config := controllers.Config{Observe: m.Decided, Started: m.Watch, Driver: m.Driver(driver), …}
//	http.Handle("/metrics", m.Handler())
//
// Each scrape reads the objects from the caches, so that the series of a deleted object end. There
// is one series for each deployment and phase. [Options.PerMachine] adds series for each machine.
// A label whose values users choose (instance types, zones) has at most 50 values. Further values
// count as "other".
//
// A driver counts its requests to the cloud with the exported vectors, such as [APIRequestCount].
// They are global, and each [Metrics] serves them.
package metrics
