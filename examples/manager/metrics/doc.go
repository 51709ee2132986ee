// SPDX-License-Identifier: Apache-2.0

// Package metrics shows Prometheus what a machine manager does, under the names of MCM where
// they mean the same.
//
//	m := metrics.New(metrics.Options{})
//	config := controllers.Config{Observe: m.Decided, Started: m.Watch, Driver: m.Driver(driver), …}
//	http.Handle("/metrics", m.Handler())
//
// What an object looks like is read from the caches at each scrape, so that its series end with
// it. There is one series for each deployment and phase, none for each machine, unless
// [Options.PerMachine] asks for them. Labels whose values users write (instance types, zones) have
// at most 50 values; others count as "other".
//
// The package exports the vectors that a driver counts its requests to the cloud with, such as
// [APIRequestCount]. They belong to the process and are part of every [Metrics].
package metrics
