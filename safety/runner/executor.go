// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety"
)

// Concern is what one pass decides about.
type Concern string

const (
	// Orphans are the VMs and side resources without a machine: see [safety.Step].
	Orphans Concern = "orphan"
	// Overshoot are the sets that have too many machines: see [safety.StepOvershoot].
	Overshoot Concern = "overshoot"
	// Unmanaged are the Nodes without a machine: see [safety.StepUnmanaged].
	Unmanaged Concern = "unmanaged"
)

// Executor reconciles the concerns of package safety, each about all objects. It remembers what it has
// seen, so use one Executor for all passes of a process. Passes of different concerns may run at the same
// time, and those of one follow each other. The fields must not be changed.
type Executor struct {
	// Reader reads the observations. Required.
	Reader machinist.Reader
	// Requests are sent to the API servers of the machine objects and of the Nodes. Required.
	Requests machinist.Requests
	// Driver is the driver of the provider. Required for [Orphans].
	Driver driver.Driver
	// Namespace is the namespace of the machines. Empty means all namespaces.
	Namespace string
	// Shard is the value of the label machinist.dev/shard of the classes, sets and deployments that are
	// reconciled. Others are skipped.
	Shard string
	// Policy is that of [Orphans]. The zero Policy deletes nothing.
	Policy safety.Policy
	// Overshoot is the policy of [Overshoot].
	Overshoot safety.OvershootPolicy
	// Unmanaged is the policy of [Unmanaged]. The zero policy marks no Node.
	Unmanaged safety.UnmanagedPolicy
	// Freeze returns whether the API servers answer. Nil means that they do.
	Freeze func() machine.Freeze
	// Clock is the clock of the decisions. Nil means the real clock.
	Clock clock.Clock
	// Decided receives each decision before its actions. Nil means none.
	Decided func(concern Concern, d safety.Decision[machinist.Action])
	// Report receives the Events to report about a class, a set or a deployment. Nil means none.
	Report func(o runtime.Object, e machinist.Event)
	// Collected is called after each deletion of an orphan. The kind is "VM" or that of a side resource.
	// The error is that of the driver. Nil means none.
	Collected func(kind string, err error)

	orphans orphans
	sets    passes[safety.OvershootState]
	nodes   passes[safety.UnmanagedState]
}

// passes has the state of a concern. Its passes follow each other.
type passes[S any] struct {
	mu    sync.Mutex
	state S
}

var (
	// errIncomplete is the error of an Executor without a required field.
	errIncomplete = errors.New("safety/runner: the Executor has no Reader, no Requests, or no Driver for orphans")
	// errConcern is the error of an unknown concern.
	errConcern = errors.New("safety/runner: unknown concern")
)

// Reconcile makes one pass: it observes all objects of a concern, decides, and carries the decision out. It
// returns when to make the next pass, if no change makes it necessary before: see [Executor.Changed]. Zero
// means never. After an error, repeat the pass with back-off. What has failed is decided again.
func (e *Executor) Reconcile(ctx context.Context, concern Concern) (time.Time, error) {
	if e.Reader == nil || e.Requests == nil || concern == Orphans && e.Driver == nil {
		return time.Time{}, errIncomplete
	}
	switch concern {
	case Orphans:
		return e.reconcileOrphans(ctx)
	case Overshoot:
		return e.reconcileOvershoot(ctx)
	case Unmanaged:
		return e.reconcileUnmanaged(ctx)
	default:
		return time.Time{}, fmt.Errorf("%w: %q", errConcern, concern)
	}
}

func (e *Executor) now() time.Time { return runners.Now(e.Clock) }

func (e *Executor) frozen() machine.Freeze {
	if e.Freeze == nil {
		return machine.Freeze{}
	}
	return e.Freeze()
}

func (e *Executor) report(o runtime.Object, event machinist.Event) {
	if e.Report != nil {
		e.Report(o, event)
	}
}

// mine reports whether an object has the shard.
func (e *Executor) mine(o metav1.Object) bool {
	return o.GetLabels()[v1alpha1.ShardLabelKey] == e.Shard
}

// decided passes a decision on.
func decided[A machinist.Action](e *Executor, concern Concern, d safety.Decision[A]) {
	if e.Decided == nil {
		return
	}
	all := safety.Decision[machinist.Action]{Reason: d.Reason, Message: d.Message, Holds: d.Holds, Events: d.Events, NextCheck: d.NextCheck}
	for _, a := range d.Actions {
		all.Actions = append(all.Actions, a)
	}
	e.Decided(concern, all)
}

// reconcileUnmanaged marks Nodes without a machine. One failed write does not hold up the others.
func (e *Executor) reconcileUnmanaged(ctx context.Context) (time.Time, error) {
	e.nodes.mu.Lock()
	defer e.nodes.mu.Unlock()
	nodes, nodesErr := objects.In[*corev1.Node](ctx, e.Reader, "")
	if errors.Is(nodesErr, machine.ErrNoTarget) {
		return time.Time{}, nil
	}
	machines, err := objects.In[*v1alpha1.Machine](ctx, e.Reader, e.Namespace)
	if err != nil {
		return time.Time{}, err
	}
	in := safety.UnmanagedObservation{Nodes: nodes, Machines: machines, Complete: nodesErr == nil, Frozen: e.frozen().Frozen}
	state, d := safety.StepUnmanaged(e.nodes.state, in, e.Unmanaged, e.now())
	e.nodes.state = state
	decided(e, Unmanaged, d)
	for _, write := range d.Actions {
		if _, failed := runners.Update(ctx, e.Requests, write); objects.IgnoreNotFound(failed) != nil { // a deleted Node needs no write
			err = errors.Join(err, fmt.Errorf("%s: %w", write, failed))
		}
	}
	return d.NextCheck, err
}

// Wake makes [Orphans] of a class due before the next round, such as after a machine was found to have several
// VMs. It returns when to reconcile them: at least a minute after the last listing of the class. It is safe
// for concurrent use.
func (e *Executor) Wake(class types.NamespacedName) time.Duration {
	now := e.now()
	e.orphans.mu.Lock()
	defer e.orphans.mu.Unlock()
	return e.orphans.rounds.Wake(class, now).Sub(now)
}
