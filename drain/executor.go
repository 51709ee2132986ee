// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/nodeops"
)

// ErrNoClient is returned by the methods of an [Executor] without a client.
var ErrNoClient = errors.New("drain: no client")

// Executor carries out plans. It keeps nothing between two calls, and can be used by
// several goroutines if its observer can.
type Executor struct {
	// Client of the cluster that the Node belongs to.
	Client kubernetes.Interface
	// Parallel is how many requests are made at a time. Zero or less means 8.
	Parallel int
	// CallTimeout bounds every single request. Zero or less means 30 seconds.
	CallTimeout time.Duration
	// Clock gives the time; nil is the real one.
	Clock clock.Clock
	// Observer is told of the progress, or nil.
	Observer Observer
}

const (
	defaultParallel    = 8
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
// deletes pods, each by its UID. It makes one request for each, waits for nothing
// but the answers, and starts nothing that outlives it.
//
// The error is a *[FenceError] if the Node could not be fenced: then no pod was
// evicted, since it might come back, but those to be deleted were, since the time
// for caution is over. A Node that is gone needs no fence. If the context ends,
// no more is done, and its error is returned. What was done is returned beside
// any error, in the order of the rows; what the API server said about a pod is in its
// [Result] alone.
func (e Executor) Carry(ctx context.Context, plan Plan) ([]Result, error) {
	if e.Client == nil {
		return nil, ErrNoClient
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("drain: %w", err)
	}
	fenced := e.fence(ctx, plan.Fence)
	var results []Result
	for _, row := range plan.Rows {
		if row.Verdict.strength() == 0 || row.Verdict == Evict && fenced != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return results, errors.Join(fenced, fmt.Errorf("drain: %w", err))
		}
		results = append(results, Result{Row: row, Err: e.ask(ctx, row), At: e.clock().Now()})
	}
	return results, fenced
}

func (e Executor) clock() clock.Clock {
	if e.Clock == nil {
		return clock.RealClock{}
	}
	return e.Clock
}

func (e Executor) fence(ctx context.Context, f *SetFence) error {
	if f == nil {
		return nil
	}
	err := nodeops.FenceNode(ctx, e.Client, f.Node, f.UID, f.Fence, f.At)
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return &FenceError{Node: f.Node, Err: err}
}

// ask makes the one request of a row.
func (e Executor) ask(ctx context.Context, row Row) error {
	options := metav1.DeleteOptions{GracePeriodSeconds: row.Grace, Preconditions: metav1.NewUIDPreconditions(string(row.UID))}
	pods := e.Client.CoreV1().Pods(row.Namespace)
	if row.Verdict != Evict {
		return pods.Delete(ctx, row.Name, options)
	}
	return pods.EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: row.Namespace, Name: row.Name}, DeleteOptions: &options,
	})
}
