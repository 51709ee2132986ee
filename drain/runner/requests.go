// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/drain"
)

// ErrUnusable is the error of a call that lacks what it needs: a client, the name of a Node,
// an owner of the cordon, or a list that the informers do not watch. The error that wraps it
// says what is missing.
var ErrUnusable = errors.New("drain: unusable")

// missing returns an [ErrUnusable] that says what is missing.
func missing(what string) error { return fmt.Errorf("%w: no %s", ErrUnusable, what) }

// Executor carries out decisions. It keeps nothing between two calls, and can be used by
// several goroutines if its observer can.
type Executor struct {
	// Client of the cluster that the Node belongs to. Requests to pods use the REST client of
	// a client that has one, since the methods of a typed client repeat by themselves what was
	// refused with a time to come back.
	Client kubernetes.Interface
	// Parallel is how many requests are made at a time. Zero or less means 16. One
	// means one after the other in the order of [drain.RequestOrder].
	Parallel int
	// CallTimeout bounds every single request, by the real clock. Zero or less means
	// 30 seconds.
	CallTimeout time.Duration
	// Clock gives the time; nil is the real one.
	Clock clock.Clock
	// Observer is told of the progress of an [Executor.Run], and of the requests of an
	// [Executor.Pass]. Nil means none.
	Observer Observer
}

const (
	// defaultParallel keeps the requests for a full Node of 110 pods within a tenth of
	// the second that its fastest pods need to stop, at 10 ms for a request.
	defaultParallel    = 16
	defaultCallTimeout = 30 * time.Second
)

// usable returns why nothing can be asked, or nil.
func (e Executor) usable(nodeName string) error {
	switch {
	case e.Client == nil:
		return missing("client")
	case nodeName == "":
		return missing("name of a node")
	default:
		return nil
	}
}

// Apply carries out the actions of one decision: it cordons the Node, then evicts and deletes
// pods, each by its UID, in the order of [drain.RequestOrder]. It makes one request for each
// pod, several at a time, waits for nothing but the answers, and starts nothing that outlives
// it.
//
// An error of the cordon is returned. Then no pod was evicted, since it might come back.
// Deletions were made nevertheless, since the time for caution is over. A Node that is gone
// needs no cordon. If the context ends, nothing more is asked, and its error is returned. The
// results are returned beside any error, in the order of the rows. What the API server said
// about a pod is in its result alone.
func (e Executor) Apply(ctx context.Context, d drain.Decision) ([]drain.Result, error) {
	if e.Client == nil {
		return nil, missing("client")
	}
	results, _, err := e.apply(ctx, d)
	return results, err
}

// apply is [Executor.Apply]. It also returns the Node that was cordoned, or nil.
func (e Executor) apply(ctx context.Context, d drain.Decision) ([]drain.Result, *corev1.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("drain: %w", err)
	}
	cordoned, err := e.cordon(ctx, d.Cordon)
	rows := toAsk(d, err == nil)
	results := e.askAll(ctx, rows)
	if len(results) < len(rows) {
		return results, cordoned, errors.Join(err, fmt.Errorf("drain: %w", ctx.Err()))
	}
	return results, cordoned, err
}

// toAsk returns the rows that ask for something.
func toAsk(d drain.Decision, cordoned bool) []drain.Row {
	var rows []drain.Row
	for _, row := range d.Rows {
		if row.Action.IsRequest() && (cordoned || row.Action != drain.Evict) {
			rows = append(rows, row)
		}
	}
	return rows
}

// askAll makes the requests, some at a time, until there are no more or the context
// ends, and returns what they came to.
func (e Executor) askAll(ctx context.Context, rows []drain.Row) []drain.Result {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return drain.RequestOrder(rows[a], rows[b]) })
	results := make([]drain.Result, len(rows))
	var taken atomic.Int64
	work := func() {
		for ctx.Err() == nil {
			i := int(taken.Add(1)) - 1
			if i >= len(order) {
				return
			}
			row := rows[order[i]]
			err := e.ask(ctx, row)
			results[order[i]] = drain.Result{Row: row, Err: err, At: e.clock().Now()}
		}
	}
	parallel := e.Parallel
	if parallel <= 0 {
		parallel = defaultParallel
	}
	var others sync.WaitGroup
	for range min(parallel, len(rows)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return slices.DeleteFunc(results, func(r drain.Result) bool { return r.Row.Action == "" })
}

func (e Executor) clock() clock.Clock {
	if e.Clock == nil {
		return clock.RealClock{}
	}
	return e.Clock
}

// call bounds one request.
func (e Executor) call(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := e.CallTimeout
	if timeout <= 0 {
		timeout = defaultCallTimeout
	}
	return context.WithTimeout(ctx, timeout)
}

// ask makes the one request of a row.
func (e Executor) ask(ctx context.Context, row drain.Row) error {
	ctx, cancel := e.call(ctx)
	defer cancel()
	options := metav1.DeleteOptions{GracePeriodSeconds: row.Grace, Preconditions: metav1.NewUIDPreconditions(string(row.UID))}
	eviction := &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: row.Namespace, Name: row.Name}, DeleteOptions: &options,
	}
	pods := e.Client.CoreV1().Pods(row.Namespace)
	direct, _ := e.Client.CoreV1().RESTClient().(*rest.RESTClient) // nil for the fakes of client-go
	switch {
	case row.Action == drain.Evict && direct == nil:
		return pods.EvictV1(ctx, eviction)
	case direct == nil:
		return pods.Delete(ctx, row.Name, options)
	case row.Action == drain.Evict:
		return once(direct.Post(), row).SubResource("eviction").Body(eviction).Do(ctx).Error()
	default:
		return once(direct.Delete(), row).Body(&options).Do(ctx).Error()
	}
}

// once is a request to the pod of a row that is not repeated: a refusal is an answer, and
// the next decision says when to come back.
func once(r *rest.Request, row drain.Row) *rest.Request {
	return r.MaxRetries(0).Namespace(row.Namespace).Resource("pods").Name(row.Name)
}
