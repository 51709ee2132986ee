// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/objects"
)

// missing returns the error about a missing client, reader, or name of a Node.
func missing(what string) error { return fmt.Errorf("drain: unusable: no %s", what) }

// Executor carries out decisions. It keeps no state between calls. It is safe for concurrent use if
// its Observer is.
type Executor struct {
	// Client of the cluster of the Node, such as that of [NewClient]. Required.
	Client Client
	// Parallel is how many requests are made at a time. Zero or less means 16. One means one after
	// the other, in the order of [drain.Decision.Requests].
	Parallel int
	// CallTimeout is the timeout of each request, by the real clock. Zero or less means 30 seconds.
	CallTimeout time.Duration
	// Clock is the clock of decisions. Nil means the real clock.
	Clock clock.Clock
	// Observer receives the progress of an [Executor.Run], and the requests of an [Executor.Pass].
	// Nil means none.
	Observer Observer
	// Decided is called with each decision of an [Executor.Run], after its requests. The drain waits
	// while it runs. Nil means none.
	Decided func(drain.Decision)
	// DryRun sends the requests of [Executor.Apply] with dryRun=All: the API server checks them and
	// changes nothing. It checks each request alone, so a PodDisruptionBudget that allows one eviction
	// allows all of a decision. Do not set it for Run and Pass, which would not end.
	DryRun bool
}

const defaultCallTimeout = 30 * time.Second

// usable returns why no request about a Node can be made, or nil.
func usable(client Client, nodeName string) error {
	if nodeName == "" {
		return missing("name of a node")
	}
	return usableClient(client)
}

// Apply carries out the actions of one decision: it cordons the Node, then evicts and deletes pods,
// each by its UID, in the order of [drain.Decision.Requests]. It makes one request for each pod, several
// at a time, and returns after the last response.
//
// It returns the error of the cordon. Then no pod is evicted, because evicted pods could return to
// the Node, but pods are deleted. A Node that does not exist needs no cordon. If the context ends,
// Apply makes no more requests and returns its error, after at most 5 seconds for the requests that it
// has begun. The results are valid also with an error, in the order of the requests. The error of a pod
// is only in its result.
func (e Executor) Apply(ctx context.Context, d drain.Decision) ([]drain.Result, error) {
	if err := usableClient(e.Client); err != nil {
		return nil, err
	}
	results, _, err := e.apply(ctx, d)
	return results, err
}

// apply is [Executor.Apply]. It also returns the cordoned Node, or nil.
func (e Executor) apply(ctx context.Context, d drain.Decision) ([]drain.Result, *corev1.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("drain: %w", err)
	}
	cordoned, err := e.cordon(ctx, d.Cordon)
	rows := requested(d, err == nil)
	results := e.requestAll(ctx, rows)
	if len(results) < len(rows) {
		return results, cordoned, errors.Join(err, fmt.Errorf("drain: %w", ctx.Err()))
	}
	return results, cordoned, err
}

// requested returns the rows with a request. A Node that is not cordoned has no evictions.
func requested(d drain.Decision, cordoned bool) []drain.Row {
	return slices.DeleteFunc(d.Requests(), func(row drain.Row) bool { return !cordoned && row.Action == drain.Evict })
}

// requestAll makes the requests of the rows, several at a time, until the context ends, and returns
// their results.
func (e Executor) requestAll(ctx context.Context, rows []drain.Row) []drain.Result {
	results := make([]drain.Result, len(rows))
	objects.InParallel(ctx, e.Parallel, len(rows), func(i int) error {
		results[i] = drain.Result{Row: rows[i], Err: e.request(ctx, rows[i]), At: e.clock().Now()}
		return nil
	})
	return slices.DeleteFunc(results, func(r drain.Result) bool { return r.Row.Action == "" })
}

func (e Executor) clock() clock.Clock {
	if e.Clock == nil {
		return clock.RealClock{}
	}
	return e.Clock
}

// call returns the context of one request.
func (e Executor) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.callTimeout())
}

func (e Executor) callTimeout() time.Duration {
	if e.CallTimeout <= 0 {
		return defaultCallTimeout
	}
	return e.CallTimeout
}

// finishTime is how long a request continues after the end of its context. The API server may have counted
// an eviction that is cut off, and then allows others of the PodDisruptionBudget two minutes later.
const finishTime = 5 * time.Second

// finishing returns a context that ends finishTime after ctx.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(finishTime, cancel) })
	return own, func() {
		stop()
		cancel()
	}
}

// request makes the request of a row.
func (e Executor) request(ctx context.Context, row drain.Row) error {
	ctx, end := finishing(ctx)
	defer end()
	ctx, cancel := e.call(ctx)
	defer cancel()
	options := metav1.DeleteOptions{GracePeriodSeconds: row.Grace, DryRun: e.dryRun()}
	if row.UID != "" { // fake API servers give none
		options.Preconditions = metav1.NewUIDPreconditions(string(row.UID))
	}
	if row.Action != drain.Evict {
		return e.Client.DeletePod(ctx, row.Namespace, row.Name, options)
	}
	return e.Client.Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: row.Namespace, Name: row.Name}, DeleteOptions: &options,
	})
}

// dryRun returns the dryRun field of requests.
func (e Executor) dryRun() []string {
	if e.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}
