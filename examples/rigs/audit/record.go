// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
)

// Recorder records the changes of the machine objects of a namespace; see [Record]. It is safe for
// several goroutines.
type Recorder struct {
	namespace string
	cancel    context.CancelFunc
	running   sync.WaitGroup
	streams   []*stream
	stop      sync.Once
	finish    func() []Gap // waits for pending changes, and returns the gaps after the end

	mu      sync.Mutex
	changes []Change
	gaps    []Gap
	stopped bool
}

// errNoClient is the error of a [Record] call without a client.
var errNoClient = errors.New("a recorder needs a client")

// Record starts to record the changes in a namespace. Empty means all namespaces. It lists the
// objects before it returns, so that later changes are not missed. The error is that of a list. The
// client should be used for nothing else and have no rate limit.
//
// A watch that ends is resumed. If the API server no longer has the version, the recorder lists
// again and records the difference and a [Gap]. It retries during outages of the API server. Its
// three goroutines end with the context or with Stop.
func Record(ctx context.Context, client versioned.Interface, namespace string) (*Recorder, error) {
	if client == nil {
		return nil, errNoClient
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Recorder{namespace: namespace, cancel: cancel}
	r.finish = func() []Gap { return r.catchUp(ctx) }
	api := client.MachineV1alpha1()
	r.streams = []*stream{
		newStream(r, deployments, api.MachineDeployments(namespace).List, api.MachineDeployments(namespace).Watch),
		newStream(r, machineSets, api.MachineSets(namespace).List, api.MachineSets(namespace).Watch),
		newStream(r, machines, api.Machines(namespace).List, api.Machines(namespace).Watch),
	}
	for _, s := range r.streams {
		if err := s.relist(ctx); err != nil {
			cancel()
			return nil, err
		}
	}
	for _, s := range r.streams {
		r.running.Go(func() { s.run(ctx) })
	}
	return r, nil
}

// newStream returns the stream of a kind from the methods of its client.
func newStream[L runtime.Object](
	r *Recorder, resource string,
	list func(context.Context, metav1.ListOptions) (L, error), open func(context.Context, metav1.ListOptions) (watch.Interface, error),
) *stream {
	return &stream{
		recorder: r, resource: resource, watch: open, moved: make(chan struct{}, 1),
		list: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) },
	}
}

// Log returns the recorded changes without waiting for pending ones. Before Stop, the last gaps are
// not CaughtUp. Its objects are shared and must not be changed.
func (r *Recorder) Log() Log {
	if log, ended := r.written(); ended {
		return log
	}
	var ends []Gap
	for _, s := range r.streams {
		ends = append(ends, s.end())
	}
	log, ended := r.written()
	if !ended {
		log.Gaps = append(log.Gaps, ends...)
	}
	return log
}

// written returns the recorded changes, and whether the recording has ended.
func (r *Recorder) written() (Log, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := Log{Namespace: r.namespace, Changes: slices.Clone(r.changes), Gaps: slices.Clone(r.gaps)}
	slices.SortStableFunc(log.Changes, inOrder)
	return log, r.stopped
}

// patience is how long Stop waits for pending changes.
const patience = 15 * time.Second

// Stop ends the recording and returns the log. It waits up to 15s for pending changes, unless the
// context ends. If the wait fails for a kind, the last [Gap] of the kind is not CaughtUp. Another
// Stop returns the same log.
func (r *Recorder) Stop() Log {
	r.stop.Do(func() {
		ends := r.finish()
		r.cancel()
		r.running.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stopped, r.gaps = true, append(r.gaps, ends...)
	})
	return r.Log()
}

// catchUp waits until the streams have the version of the API server, up to patience. It returns
// the gaps after their ends.
func (r *Recorder) catchUp(ctx context.Context) []Gap {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var ends []Gap
	for _, s := range r.streams {
		caughtUp := s.catchUp(ctx)
		end := s.end()
		end.CaughtUp = caughtUp
		ends = append(ends, end)
	}
	return ends
}

// seen returns the latest version of any kind received until a time.
func (r *Recorder) seen(until time.Time) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	version := uint64(0)
	for _, c := range r.changes {
		if !c.Listed && !c.Time.After(until) {
			version = max(version, c.Version)
		}
	}
	return version
}

// write records changes and gaps.
func (r *Recorder) write(changes []Change, gaps ...Gap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes, r.gaps = append(r.changes, changes...), append(r.gaps, gaps...)
}
