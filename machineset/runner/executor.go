// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// Executor reconciles sets. It remembers what a set has created and deleted until the Reader shows it, so
// use one Executor for all sets of a process. Different sets may be reconciled at the same time, and the
// fields must not be changed. The memory of a set that no longer exists is dropped by the next Reconcile.
type Executor struct {
	// Reader reads the observations. Required.
	Reader machinist.Reader
	// Requests are sent to the API servers of the machine objects and of the Nodes. Required.
	Requests machinist.Requests
	// Policy is that of the decisions. The zero Policy has the defaults.
	Policy machineset.Policy
	// Freeze returns whether the API servers answer. Nil means that they do.
	Freeze func() machine.Freeze
	// Shard is the value of the label machinist.dev/shard of the sets that are reconciled. Others are
	// skipped. Machines that a set creates have the shard of the set.
	Shard string
	// Parallel is the number of concurrent requests for one set. Zero means 16.
	Parallel int
	// Clock is the clock of the decisions. Nil means the real clock.
	Clock clock.PassiveClock
	// Random returns a number in [0, 1), for the names of machines. Nil means math/rand/v2.
	Random func() float64
	// Decided receives each decision before its actions, and once more if Failed machines stay because
	// their Nodes may recover. The set is nil if it does not exist. Nil means none.
	Decided func(key types.NamespacedName, set *v1alpha1.MachineSet, d machineset.Decision)
	// Report receives the Events to report about a set or one of its machines. Nil means none.
	Report func(o runtime.Object, e machinist.Event)

	own    runners.Own[*v1alpha1.MachineSet]
	memory runners.Memory[memory]
	target runners.Target
}

// memory is what is kept of a set between two passes. Without it, work is repeated.
type memory struct {
	expected   machine.Expectations
	unjoined   machineset.NeverJoined
	proven     bool
	recovering members.Recovering
}

// errIncomplete is the error of an Executor without a required field.
var errIncomplete = errors.New("machineset/runner: the Executor has no Reader or no Requests")

// pass is one pass over a set.
type pass struct {
	*Executor
	in       machineset.Observation
	d        machineset.Decision
	selector *metav1.LabelSelector // of the last claims
}

// Reconcile makes one pass over a set: it observes, decides, and carries the decision out. It returns
// when to make the next pass, if no change makes it necessary before. Zero means never. After an error,
// repeat the pass with back-off.
//
// It decides on the newest known version of the set. If anything but its status is to be written, it
// reads the set from the API server, and decides again if that is another version. The status needs no
// such check: the API server refuses that of an old version.
func (e *Executor) Reconcile(ctx context.Context, key types.NamespacedName) (time.Time, error) {
	if e.Reader == nil || e.Requests == nil {
		return time.Time{}, errIncomplete
	}
	p := &pass{Executor: e}
	front := runners.Front[*v1alpha1.MachineSet, *v1alpha1.Machine, v1alpha1.MachineSet]{
		Reader: e.Reader, Requests: e.Requests, Shard: e.Shard, Own: &e.own, Gone: func() { e.forget(key) }, Decide: p.decide,
	}
	if ok, err := front.Begin(ctx, key); err != nil || !ok {
		return time.Time{}, err
	}
	e.decided(key, p.in.Set, p.d)
	failure, stay, err := p.apply(ctx)
	failure.Unfinished = err != nil
	if len(stay) > 0 {
		p.d.Actions, p.d.Holds = nil, append(p.d.Holds, stay...)
		e.decided(key, p.in.Set, p.d)
	}
	for _, h := range stay {
		p.d.NextCheck = machinist.Earliest(p.d.NextCheck, h.Until)
	}
	return p.d.NextCheck, errors.Join(err, p.record(ctx, failure), failure.Create, failure.Delete)
}

// forget drops the memory of a set that does not exist.
func (e *Executor) forget(key types.NamespacedName) {
	e.memory.Forget(key)
	e.decided(key, nil, machineset.Decision{})
}

func (e *Executor) now() time.Time { return runners.Now(e.Clock) }

func (e *Executor) decided(key types.NamespacedName, set *v1alpha1.MachineSet, d machineset.Decision) {
	if e.Decided != nil {
		e.Decided(key, set, d)
	}
}

// decide observes a set and decides. See [runners.Front].
func (p *pass) decide(ctx context.Context, set *v1alpha1.MachineSet) (claims machineset.Claims[*v1alpha1.Machine], acts bool, err error) {
	// Expectations are read before the machines, so that the machines are at least as new.
	kept := p.memory.Change(set, func(m *memory) { m.expected = runners.Shown(ctx, p.Reader, set.Namespace, m.expected) })
	if p.in, claims, err = observe(ctx, p.Reader, set); err != nil {
		return claims, false, err
	}
	p.selector = claims.Selector
	p.memory.Change(set, func(m *memory) { m.recovering = m.recovering.Among(p.in.Machines) })
	p.in.Expectations, p.in.NeverJoined, p.in.Proven = kept.expected, kept.unjoined, kept.proven
	if p.Freeze != nil {
		p.in.Freeze = p.Freeze()
	}
	p.d = machineset.Decide(p.in, p.Policy, p.now())
	return claims, len(p.d.Actions) > 0, nil
}

// superseded reports whether the Reader has a newer version of the set than the decision. The rest of
// that decision is then dropped, because the change to the newer version causes another pass.
func (p *pass) superseded(ctx context.Context) bool {
	cached, err := objects.Get[*v1alpha1.MachineSet](ctx, p.Reader, p.in.Set.Namespace, p.in.Set.Name)
	if err != nil || cached == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, p.in.Set.ResourceVersion)
	return err == nil && order > 0
}

// record writes the status of the set if it has changed, and then reports the events.
func (p *pass) record(ctx context.Context, failure machineset.Failure) error {
	p.in.Expectations = p.memory.Get(p.in.Set).expected
	next, changed := machineset.Status(p.in, failure, p.now())
	gone := p.in.Set.DeletionTimestamp != nil && len(p.in.Set.Finalizers) == 0
	if gone || !changed {
		return nil
	}
	set := p.in.Set.DeepCopy()
	set.Status = next
	written, err := runners.Update(ctx, p.Requests, machinist.Update{Before: p.in.Set, Object: set, Subresource: "status"})
	if err != nil {
		return objects.IgnoreNotFound(err) // the next pass has the same events
	}
	p.wrote(written)
	for _, e := range p.d.Events {
		p.report(e)
	}
	return nil
}

// wrote records a written set until the Reader shows it.
func (p *pass) wrote(o machinist.Object) {
	if set, ok := o.(*v1alpha1.MachineSet); ok {
		p.in.Set = set
		p.own.Put(set)
	}
}

func (p *pass) report(e machinist.Event) {
	if p.Report != nil {
		p.Report(p.in.Set, e)
	}
}
