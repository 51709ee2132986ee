// SPDX-License-Identifier: Apache-2.0

// Package observe reports the progress of drains as Kubernetes Events ([Events]), log
// lines ([Slog], [Logr]) and Prometheus metrics ([NewMetrics]).
//
// Each of them is a [runner.Observer] for a [runner.Executor]. [All] combines several:
//
//	metrics, err := observe.NewMetrics(prometheus.DefaultRegisterer)
//	if err != nil {
//		return err
//	}
//	executor := runner.Executor{Client: runner.NewClient(client), Observer: observe.All(
//		observe.Slog(slog.Default()),
//		observe.Events(recorder, nil), // Events on the Node
//		metrics,
//	)}
//	decision, err := executor.Run(ctx, "worker-1", drain.Policy{})
//
// A program that calls drain.Step itself passes on what [drain.Compare] returns:
//
//	for _, progress := range drain.Compare(before, after, results, now) {
//		observer.Observe(progress)
//	}
//
// The package decides nothing.
package observe
