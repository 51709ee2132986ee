// SPDX-License-Identifier: Apache-2.0

// Package observe tells people and monitoring of the progress of drains: as Kubernetes
// Events, as lines of a log, as Prometheus metrics.
//
// Each is a [drain.Observer], for the executor of a drain, and [All] makes one of several:
//
//	metrics, err := observe.NewMetrics(prometheus.DefaultRegisterer)
//	… // err: somebody else has registered these names
//	executor := drain.Executor{Client: client, Observer: observe.All(
//		observe.Slog(slog.Default()),
//		observe.Events(recorder, nil), // on the Node
//		metrics,
//	)}
//	plan, err := executor.Run(ctx, "worker-1", policy)
//
// Who makes the rounds by hand hands over the events by hand as well:
//
//	for _, event := range drain.Progress(last, plan, results, now) {
//		observer.Observe(event)
//	}
//
// Nothing in it decides: it shows what [drain.Progress] says.
package observe
