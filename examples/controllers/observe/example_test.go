// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/record"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/controllers/observe"
)

// The API server refuses an eviction.
func ExampleAll() {
	recorder := record.NewFakeRecorder(10)
	registry := prometheus.NewRegistry()
	metrics, err := observe.NewMetrics(registry)
	if err != nil {
		fmt.Println(err)
		return
	}
	observer := observe.All(
		observe.Slog(slog.New(slog.NewTextHandler(os.Stdout, nil))),
		observe.Events(recorder, nil),
		metrics,
	)
	observer.Observe(drain.Progress{
		Type: drain.ProgressRequested, Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Node: "worker-1", Subject: "pod/shop/web-1",
		Reason: drain.ReasonBudget, Message: "budget web allows 0 disruptions", Row: &drain.Row{Action: drain.Evict}, Err: fmt.Errorf("429"),
	})
	fmt.Println(<-recorder.Events)
	families, _ := registry.Gather()
	for _, f := range families {
		fmt.Println(f.GetName())
	}
	// Output:
	// time=2026-03-01T12:00:00.000Z level=WARN msg="drain: requested" node=worker-1 subject=pod/shop/web-1 action=evict reason=DisruptionBudget message="budget web allows 0 disruptions" error=429
	// Warning DrainRefused Requested pod/shop/web-1 to evict (DisruptionBudget): budget web allows 0 disruptions
	// machinist_drain_active
	// machinist_drain_pod_seconds
	// machinist_drain_requests_total
	// machinist_drain_waiting
}
