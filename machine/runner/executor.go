// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/permits"
)

// Executor reconciles machines. It remembers what it has written until the Reader shows it, and what the
// provider has returned, so use one Executor for all machines of a process. Different machines may be
// reconciled at the same time, and the fields must not be changed.
type Executor struct {
	// Reader reads the observations. Required.
	Reader machinist.Reader
	// Requests are sent to the API servers of the machine objects and of the target cluster. Required.
	Requests machinist.Requests
	// Target is the client for the drains of Nodes. Nil if the machines join no cluster.
	Target kubernetes.Interface
	// Driver is the driver of the provider. Required.
	Driver driver.Driver
	// Policy is that of the decisions. The zero Policy has no timeouts.
	Policy machine.Policy
	// TokenGroups are the groups of bootstrap tokens, in addition to system:bootstrappers. Each begins
	// with "system:bootstrappers:".
	TokenGroups []string
	// Guard may keep a machine from failing because many fail at once. Nil means that each may fail.
	Guard Guard
	// Freeze returns whether the API servers answer. Nil means that they do.
	Freeze func() machine.Freeze
	// Shard is the value of the label machinist.dev/shard of the machines that are reconciled. Others are
	// skipped.
	Shard string
	// Parallel is the number of concurrent requests of a drain. Zero means 16.
	Parallel int
	// Clock is the clock of the decisions. Nil means the real clock.
	Clock clock.Clock
	// Random returns a number in [0, 1), to spread calls. Nil means math/rand/v2.
	Random func() float64
	// Decided receives each decision before its action. The machine is nil if it does not exist. Err is
	// that of a read that the decisions do without, or nil. Nil means none.
	Decided func(key types.NamespacedName, m *v1alpha1.Machine, d machine.Decision, err error)
	// Report receives the Events to report about a machine. Nil means none.
	Report func(o runtime.Object, e machinist.Event)
	// Drains receives the progress of drains. Nil means none.
	Drains DrainObserver
	// SeveralVMs is called with the class of a machine for which the provider has found several VMs, of
	// which one is an orphan. Nil means none.
	SeveralVMs func(class types.NamespacedName)

	own     runners.Own[*v1alpha1.Machine]
	nodes   runners.Own[*corev1.Node] // of all machines: another one may get the name of a deleted Node
	memory  runners.Memory[memory]
	outages runners.Target

	makeLedger sync.Once
	ledger     *permits.Ledger
}

// Guard decides whether a machine may fail when many do, such as package safety. It is called by
// several goroutines.
type Guard interface {
	// Ask returns why a machine may not fail now. A hold without a reason means that it may, and counts
	// as failed from now on. vmGone means that the provider does not find its VM. machines are those of
	// its namespace on the API server; nil means that they were not read, and the Guard reads a cache.
	Ask(ctx context.Context, m *v1alpha1.Machine, vmGone bool, machines []*v1alpha1.Machine) machinist.Hold
	// Revoke takes back that a machine may fail. It has not failed.
	Revoke(m *v1alpha1.Machine)
	// Settle is called after each pass over a machine, also for machines of other shards.
	Settle(ctx context.Context, m *v1alpha1.Machine, vmGone bool)
}

// DrainObserver receives the progress of drains. It is called by several goroutines.
type DrainObserver interface {
	drainrunner.Observer
	// Forget is called for the Node of a drain that was stopped before its end.
	Forget(node string)
}

// memory is what is kept of a machine between two passes. If it is lost, work is repeated, and the
// decisions stay safe.
type memory struct {
	tokens map[types.UID]bool // deleted, and still in the cache
	token  *corev1.Secret     // created, and not in the cache yet

	first time.Time // the time of the first observation
	vm    machine.VMView
	drain *drainMemory // nil unless there is something to remember, which takes more than all else
	// confirmed is when the API server last confirmed in this pass that the machine of the
	// observation is the newest version: with the response to a write, which has to name the newest
	// version, or to a read.
	confirmed time.Time
	waits     machinist.Waits
	permit    string // the key of the permit that was taken, until the Reader shows that the machine has failed
}

// drainMemory is what is kept of the drain of a machine.
type drainMemory struct {
	view     machine.DrainView
	asked    time.Time      // the time of the first deletion of attachments
	reported drain.Decision // the last reported decision
}

// maxSteps is the maximum number of actions in one pass. A machine that needs more is retried with
// back-off.
const maxSteps = 50

// errIncomplete is the error of an Executor without a required field.
var errIncomplete = errors.New("machine/runner: the Executor has no Driver, no Reader or no Requests")

// errNotSettled is the error of a pass that has reached maxSteps.
var errNotSettled = errors.New("machine did not settle")

// pass is one pass over a machine.
type pass struct {
	*Executor
	key      types.NamespacedName
	in       machine.Observation
	kept     memory
	draining drainMemory
	refused  error // that of the write of a Node
}

// Reconcile makes one pass over a machine: it observes, decides and acts until a decision has no action.
// It returns when to make the next pass, if no change makes it necessary before. Zero means never. After
// an error, repeat the pass with back-off.
func (e *Executor) Reconcile(ctx context.Context, key types.NamespacedName) (time.Time, error) {
	if e.Reader == nil || e.Requests == nil || e.Driver == nil {
		return time.Time{}, errIncomplete
	}
	cached, err := objects.Get[*v1alpha1.Machine](ctx, e.Reader, key.Namespace, key.Name)
	if err != nil {
		return time.Time{}, err
	}
	if cached == nil {
		e.forget(ctx, key)
		return time.Time{}, nil
	}
	over := facts.PermitOver(cached)
	if over { // the Reader shows that it has failed
		e.permits().Release(runners.GroupOf(ctx, e.Reader, cached).String(), string(cached.UID), e.now())
	}
	m, exists := e.Latest(cached)
	switch {
	case !exists:
		return time.Time{}, nil
	case m.Labels[v1alpha1.ShardLabelKey] != e.Shard: // its failure counts for the guard
		e.settle(ctx, m, false)
		e.end(key)
		return time.Time{}, nil
	}
	p := &pass{Executor: e, key: key}
	// After a panic the memory is lost, because it may be its cause.
	kept, uid := e.memory.Forget(key)
	if uid == m.UID {
		p.kept = kept
		if kept.drain != nil {
			p.draining = *kept.drain
		}
	} else { // that of a deleted machine of this name
		e.drop(kept, uid)
	}
	if over {
		p.kept.permit = ""
	}
	p.observe(ctx, m)
	next, err := p.advance(ctx)
	p.remember(ctx, m)
	e.settle(ctx, m, p.in.VM.Vanished(m))
	return next, err
}

// Latest returns the newest version of a machine: the given one, or that of a later write of this
// Executor. It returns false for a machine that this Executor has deleted.
func (e *Executor) Latest(m *v1alpha1.Machine) (*v1alpha1.Machine, bool) {
	if m == nil {
		return nil, false
	}
	return e.own.Newest(m)
}

// forget drops the memory of a machine that no longer exists, and of Nodes that the Reader no longer shows.
func (e *Executor) forget(ctx context.Context, key types.NamespacedName) {
	e.own.Forget(key)
	e.nodes.ForgetAll(func(node types.NamespacedName) bool {
		shown, err := objects.Get[*corev1.Node](ctx, e.Reader, "", node.Name)
		return err == nil && shown == nil
	})
	e.end(key)
}

// end drops the memory of a machine that no longer exists or has another shard, and says so.
func (e *Executor) end(key types.NamespacedName) {
	e.drop(e.memory.Forget(key))
	if e.Decided != nil {
		e.Decided(key, nil, machine.Decision{}, nil)
	}
}

// drop ends what a machine has begun: its permit and its drain.
func (e *Executor) drop(kept memory, uid types.UID) {
	e.permits().Release(kept.permit, string(uid), e.now())
	e.forgetDrain(kept.drain)
}

func (e *Executor) now() time.Time { return runners.Now(e.Clock) }

func (e *Executor) settle(ctx context.Context, m *v1alpha1.Machine, vmGone bool) {
	if e.Guard != nil {
		e.Guard.Settle(ctx, m, vmGone)
	}
}

func (p *pass) decided(d machine.Decision, err error) {
	if p.Decided != nil {
		p.Decided(p.key, p.in.Machine, d, err)
	}
}

// advance decides and acts until a decision has no action. It returns the time of the next check.
func (p *pass) advance(ctx context.Context) (time.Time, error) {
	var d machine.Decision
	for range maxSteps {
		if p.Freeze != nil {
			p.in.Freeze = p.Freeze() // a freeze may begin during a call
		}
		p.in.Node.Refused = p.refused != nil
		d = machine.Decide(p.in, p.Policy, p.now())
		if p.decided(d, nil); d.Action == nil {
			p.kept.waits, _, _ = p.kept.waits.Step(d.Holds, nil, p.now())
			return d.NextCheck, p.refused
		}
		if err := p.apply(ctx, d.Action); err != nil {
			return time.Time{}, fmt.Errorf("%s: %w", d.Action, err)
		}
		if p.in.Machine == nil { // deleted
			if p.Decided != nil {
				p.Decided(p.key, nil, machine.Decision{}, nil)
			}
			return time.Time{}, nil
		}
	}
	return time.Time{}, fmt.Errorf("%w in %d steps; the last action was: %s", errNotSettled, maxSteps, d.Action)
}

// observe observes a machine.
func (p *pass) observe(ctx context.Context, m *v1alpha1.Machine) {
	p.kept.confirmed = time.Time{}
	if p.kept.first.IsZero() {
		p.kept.first = p.now()
	}
	p.in = machine.Observation{
		Machine: m, FirstSeen: p.kept.first, Class: observeClass(ctx, p.Reader, m), Node: p.observeNode(ctx, m), VM: p.kept.vm, Drain: p.draining.view.Again(),
		Tokens: p.observeTokens(ctx, m), ProviderID: observeProviderID(ctx, p.Reader, m), Waits: p.kept.waits.Holds(),
		Permit: machine.PermitView{Held: p.kept.permit != ""}, // of an earlier pass
	}
	if machine.NeedsSiblings(m) {
		p.in.Siblings = p.SiblingsOf(ctx, m)
	}
	attachments, err := objects.Attachments(ctx, p.Reader, p.in.Node.Name)
	p.in.Attachments = machine.AttachmentsView{Looked: err == nil, Attachments: attachments, AskedAt: p.draining.asked}
}

// observeTokens returns the bootstrap tokens of the machine: those of the Reader, and the token that was
// just created.
func (p *pass) observeTokens(ctx context.Context, m *v1alpha1.Machine) machine.TokensView {
	tokens, err := objects.List[*corev1.Secret](ctx, p.Reader, runners.ByOwner, string(m.UID))
	if errors.Is(err, machine.ErrNoTarget) {
		return machine.TokensView{}
	}
	view := machine.TokensView{Looked: err == nil}
	var still map[types.UID]bool // nil for most machines
	for _, s := range tokens {
		if p.kept.token != nil && p.kept.token.UID == s.UID {
			p.kept.token = nil
		}
		if p.kept.tokens[s.UID] {
			if still == nil {
				still = map[types.UID]bool{}
			}
			still[s.UID] = true
			continue
		}
		view.Secrets = append(view.Secrets, s)
	}
	if err == nil {
		p.kept.tokens = still
	}
	if p.kept.token != nil {
		view.Secrets = append(view.Secrets, p.kept.token)
	}
	return view
}

// remember keeps what the next pass over a machine needs.
func (p *pass) remember(ctx context.Context, m *v1alpha1.Machine) {
	cached, err := objects.Get[*v1alpha1.Machine](ctx, p.Reader, p.key.Namespace, p.key.Name)
	if p.in.Machine == nil || err == nil && cached == nil { // nothing would remove the memory again
		p.forgetDrain(&p.draining)
		p.kept = memory{permit: p.kept.permit}
	} else {
		p.kept.vm, p.kept.drain = p.in.VM, nil
		p.draining.view, p.draining.asked = p.in.Drain, p.in.Attachments.AskedAt
		if !reflect.ValueOf(p.draining).IsZero() {
			d := p.draining // a copy: it does not keep the pass
			p.kept.drain = &d
		}
	}
	p.memory.Change(m, func(kept *memory) { *kept = p.kept })
}
