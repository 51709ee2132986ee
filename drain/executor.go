// SPDX-License-Identifier: Apache-2.0

package drain

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/nodeops"
)

// ErrNoClient is returned by the methods of an [Executor] without a client.
var ErrNoClient = errors.New("drain: no client")

// Executor carries out plans. It keeps nothing between two calls, and can be used by
// several goroutines if its observer can.
type Executor struct {
	// Client of the cluster that the Node belongs to. Of a client that talks to an API
	// server the requests to pods are made by its REST client, since its methods would
	// repeat by themselves what was refused with a time to come back.
	Client kubernetes.Interface
	// Parallel is how many requests are made at a time. Zero or less means 16, one
	// means one after the other in the order of [RequestOrder].
	Parallel int
	// CallTimeout bounds every single request, by the real clock. Zero or less means
	// 30 seconds.
	CallTimeout time.Duration
	// Clock gives the time; nil is the real one.
	Clock clock.Clock
	// Observer is told of the progress of a [Executor.Run], and of the requests of a
	// [Executor.Round]. Nil is nobody.
	Observer Observer
}

const (
	// defaultParallel keeps the requests for a full Node of 110 pods within a tenth of
	// the second that its fastest pods need to stop, at 10 ms for a request.
	defaultParallel    = 16
	defaultCallTimeout = 30 * time.Second
)

// FenceError says that a Node could not be fenced.
type FenceError struct {
	// Node is its name.
	Node string
	// Err of the API server.
	Err error
}

// Error returns the name of the Node and what the API server said.
func (e *FenceError) Error() string { return fmt.Sprintf("drain: fence node %s: %v", e.Node, e.Err) }

// Unwrap returns what the API server said.
func (e *FenceError) Unwrap() error { return e.Err }

// Carry carries out one round of a plan: it fences the Node, then evicts and
// deletes pods, each by its UID, in the order of [RequestOrder]. It makes one request
// for each, several at a time, waits for nothing but the answers, and starts nothing
// that outlives it.
//
// The error is a *[FenceError] if the Node could not be fenced: then no pod was
// evicted, since it might come back, but those to be deleted were, since the time
// for caution is over. A Node that is gone needs no fence. If the context ends,
// no more is asked, and its error is returned. What was done is returned beside
// any error, in the order of the rows; what the API server said about a pod is in its
// [Result] alone.
func (e Executor) Carry(ctx context.Context, plan Plan) ([]Result, error) {
	results, _, err := e.carry(ctx, plan)
	return results, err
}

// carry is [Executor.Carry]. It also returns the Node that was fenced, or nil.
func (e Executor) carry(ctx context.Context, plan Plan) ([]Result, *corev1.Node, error) {
	if e.Client == nil {
		return nil, nil, ErrNoClient
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("drain: %w", err)
	}
	fenced, err := e.fence(ctx, plan.Fence)
	rows := toAsk(plan, err == nil)
	results := e.askAll(ctx, rows)
	if len(results) < len(rows) {
		return results, fenced, errors.Join(err, fmt.Errorf("drain: %w", ctx.Err()))
	}
	return results, fenced, err
}

// toAsk returns the rows that ask for something.
func toAsk(plan Plan, fenced bool) []Row {
	var rows []Row
	for _, row := range plan.Rows {
		if row.Verdict.strength() > 0 && (fenced || row.Verdict != Evict) {
			rows = append(rows, row)
		}
	}
	return rows
}

// askAll makes the requests, some at a time, until there are no more or the context
// ends, and returns what they came to.
func (e Executor) askAll(ctx context.Context, rows []Row) []Result {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return RequestOrder(rows[a], rows[b]) })
	results := make([]Result, len(rows))
	var taken atomic.Int64
	work := func() {
		for ctx.Err() == nil {
			i := int(taken.Add(1)) - 1
			if i >= len(order) {
				return
			}
			row := rows[order[i]]
			err := e.ask(ctx, row)
			results[order[i]] = Result{Row: row, Err: err, At: e.clock().Now()}
		}
	}
	var others sync.WaitGroup
	for range min(e.parallel(), len(rows)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return slices.DeleteFunc(results, func(r Result) bool { return r.Row.Verdict == "" })
}

func (e Executor) parallel() int {
	if e.Parallel > 0 {
		return e.Parallel
	}
	return defaultParallel
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

// fence sets a fence and returns the Node with it. A Node that is gone needs none.
func (e Executor) fence(ctx context.Context, f *SetFence) (*corev1.Node, error) {
	if f == nil {
		return nil, nil
	}
	ctx, cancel := e.call(ctx)
	defer cancel()
	node, err := nodeops.FenceNode(ctx, e.Client, f.Node, f.UID, f.Fence, f.At)
	switch {
	case err == nil:
		return node, nil
	case apierrors.IsNotFound(err):
		return nil, nil
	default:
		return nil, &FenceError{Node: f.Node, Err: err}
	}
}

// ask makes the one request of a row.
func (e Executor) ask(ctx context.Context, row Row) error {
	ctx, cancel := e.call(ctx)
	defer cancel()
	options := metav1.DeleteOptions{GracePeriodSeconds: row.Grace, Preconditions: metav1.NewUIDPreconditions(string(row.UID))}
	eviction := &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: row.Namespace, Name: row.Name}, DeleteOptions: &options,
	}
	pods := e.Client.CoreV1().Pods(row.Namespace)
	direct, _ := e.Client.CoreV1().RESTClient().(*rest.RESTClient) // nil for the fakes of client-go
	switch {
	case row.Verdict == Evict && direct == nil:
		return pods.EvictV1(ctx, eviction)
	case direct == nil:
		return pods.Delete(ctx, row.Name, options)
	case row.Verdict == Evict:
		return once(direct.Post(), row).SubResource("eviction").Body(eviction).Do(ctx).Error()
	default:
		return once(direct.Delete(), row).Body(&options).Do(ctx).Error()
	}
}

// once is a request to the pod of a row that is not repeated: a refusal is an answer, and
// when to come back is the plan's to say.
func once(r *rest.Request, row Row) *rest.Request {
	return r.MaxRetries(0).Namespace(row.Namespace).Resource("pods").Name(row.Name)
}
