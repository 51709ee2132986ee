// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/driver"
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
	Reader Reader
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
	Report func(m *v1alpha1.Machine, e machinist.Event)
	// Drains receives the progress of drains. Nil means none.
	Drains DrainObserver
	// SeveralVMs is called with the class of a machine for which the provider has found several VMs, of
	// which one is an orphan. Nil means none.
	SeveralVMs func(class types.NamespacedName)

	memory  runners.Memory[memory]
	nodes   runners.Memory[runners.Written[*corev1.Node]] // another machine may get the name of a deleted Node
	ledger  runners.Lazy[permits.Ledger]
	outages runners.Target
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
	machine runners.Written[*v1alpha1.Machine]
	tokens  map[types.UID]bool // deleted, and still in the cache
	token   *corev1.Secret     // created, and not in the cache yet

	first time.Time // the time of the first observation
	vm    machine.VMView
	drain machine.DrainView
	asked time.Time // the time of the first deletion of attachments
	// confirmed is when the API server last confirmed in this pass that the machine of the
	// observation is the newest version: with the response to a write, which has to name the newest
	// version, or to a read.
	confirmed time.Time
	reported  drain.Decision // the last reported decision of the drain
	permit    string         // the key of the last permit that was taken
}

// maxSteps is the maximum number of actions in one pass. A machine that needs more is retried with
// back-off.
const maxSteps = 50

// errNotSettled is the error of a pass that has reached maxSteps.
var errNotSettled = errors.New("machine did not settle")

// permitTime is how long a machine with a permit to fail counts as failed before the cache shows that.
const permitTime = 10 * time.Minute

// pass is one pass over a machine.
type pass struct {
	*Executor
	key  types.NamespacedName
	in   machine.Observation
	kept memory
}

// Reconcile makes one pass over a machine: it observes, decides and acts until a decision has no action.
// It returns when to make the next pass, if no change makes it necessary before. Zero means never. After
// an error, repeat the pass with back-off.
func (e *Executor) Reconcile(ctx context.Context, key types.NamespacedName) (time.Time, error) {
	err := runners.Required("machine/runner: Executor", map[string]any{"Reader": e.Reader, "Requests": e.Requests, "Driver": e.Driver})
	if err != nil {
		return time.Time{}, err
	}
	cached, err := e.Reader.Machine(ctx, key)
	if err != nil {
		return time.Time{}, err
	}
	if cached == nil {
		e.forget(ctx, key)
		return time.Time{}, nil
	}
	if _, over := machine.FreesReplacement(nil, cached); over { // the Reader shows that it has failed
		e.permits().Release(runners.GroupOf(ctx, e.Reader, cached).String(), string(cached.UID), e.now())
	}
	m, exists := e.Latest(cached)
	switch {
	case !exists:
		return time.Time{}, nil
	case m.Labels[v1alpha1.ShardLabelKey] != e.Shard: // its failure counts for the guard
		e.settle(ctx, m, false)
		return time.Time{}, nil
	}
	p := &pass{Executor: e, key: key}
	// After a panic the memory is lost, because it may be its cause.
	e.memory.Change(m, func(kept memory) memory {
		p.kept = kept
		return memory{machine: kept.machine}
	})
	p.observe(ctx, m)
	next, err := p.advance(ctx)
	p.remember(ctx, m)
	e.settle(ctx, m, p.in.VM.Vanished(m))
	return next, err
}

// Latest returns the newest version of a machine: the given one, or that of a later write of this
// Executor. It returns false for a machine that this Executor has deleted.
func (e *Executor) Latest(m *v1alpha1.Machine) (*v1alpha1.Machine, bool) {
	return e.memory.Get(m).machine.Newest(m)
}

// forget drops the memory of a machine that no longer exists, and of Nodes that the Reader no longer shows.
func (e *Executor) forget(ctx context.Context, key types.NamespacedName) {
	e.nodes.Keep(func(node types.NamespacedName) bool {
		shown, err := e.Reader.Node(ctx, node.Name)
		return err != nil || shown != nil
	})
	kept, uid := e.memory.Forget(key)
	e.permits().Release(kept.permit, string(uid), e.now())
	e.forgetDrain(kept)
	if e.Decided != nil {
		e.Decided(key, nil, machine.Decision{}, nil)
	}
}

func (e *Executor) now() time.Time { return runners.Now(e.Clock) }

func (e *Executor) settle(ctx context.Context, m *v1alpha1.Machine, vmGone bool) {
	if e.Guard != nil {
		e.Guard.Settle(ctx, m, vmGone)
	}
}

// permits returns the ledger of the machines that may fail at a time.
func (e *Executor) permits() *permits.Ledger {
	return e.ledger.Get(func() *permits.Ledger { return permits.NewLedger(0, permitTime) })
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
		d = machine.Decide(p.in, p.Policy, p.now())
		if p.decided(d, nil); d.Action == nil {
			return d.NextCheck, nil
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
		Machine: m, FirstSeen: p.kept.first, Class: observeClass(ctx, p.Reader, m), Node: p.observeNode(ctx, m), VM: p.kept.vm, Drain: p.kept.drain.Again(),
		Tokens: p.observeTokens(ctx, m), ProviderID: observeProviderID(ctx, p.Reader, m),
	}
	if machine.NeedsSiblings(m) {
		p.in.Siblings = siblings(ctx, p.Reader, m)
	}
	attachments, err := p.Reader.AttachmentsOf(ctx, p.in.Node.Name, nil)
	p.in.Attachments = machine.AttachmentsView{Looked: err == nil, Attachments: attachments, AskedAt: p.kept.asked}
}

// observeTokens returns the bootstrap tokens of the machine: those of the Reader, and the token that was
// just created.
func (p *pass) observeTokens(ctx context.Context, m *v1alpha1.Machine) machine.TokensView {
	tokens, err := p.Reader.TokensOf(ctx, m.UID)
	if errors.Is(err, machine.ErrNoTarget) {
		return machine.TokensView{}
	}
	view, still := machine.TokensView{Looked: err == nil}, map[types.UID]bool{}
	for _, s := range tokens {
		if p.kept.token != nil && p.kept.token.UID == s.UID {
			p.kept.token = nil
		}
		if p.kept.tokens[s.UID] {
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

// observeNode returns the Node that the machine or its VM names, or else the Node with its provider ID.
// For a machine that is being deleted, it reads a Node that the Reader lacks from the API server, because
// the Node may have just joined.
func (p *pass) observeNode(ctx context.Context, m *v1alpha1.Machine) machine.NodeView {
	vm := p.in.VM
	if p.in.Machine == nil {
		vm = p.kept.vm
	}
	name, sameID := machine.NodeNameOf(m, vm), nodeWithID(ctx, p.Reader, cmp.Or(vm.Named.ProviderID, m.Spec.ProviderID))
	if name == "" && sameID != nil {
		name = sameID.Name
	}
	view := runners.View(ctx, p.Reader, name)
	if view.NoTarget || name == "" {
		return view
	}
	if view.Looked && view.Node == nil && !m.DeletionTimestamp.IsZero() && p.Requests != nil {
		live, err := runners.Get[*corev1.Node](ctx, p.Requests, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		view.Looked, view.Node = err == nil, live
	}
	if !view.Looked {
		return machine.NodeView{Name: name}
	}
	view.Node = p.newest(view.Node)
	if !m.DeletionTimestamp.IsZero() {
		view.Node = machine.NodeToDelete(m, vm, view.Node, p.newest(sameID), p.now())
	}
	return view
}

// newest returns the newest known version of a Node, or nil if it was deleted.
func (p *pass) newest(node *corev1.Node) *corev1.Node {
	if node == nil {
		return nil
	}
	newest, exists := p.nodes.Get(node).Newest(node)
	switch {
	case !exists:
		return nil
	case newest == node: // the Reader shows the last write
		p.nodes.Forget(runners.KeyOf(node))
	}
	return newest
}

// wroteNode records a Node that a request returned, until the Reader shows it.
func (p *pass) wroteNode(node *corev1.Node) {
	p.nodes.Change(node, func(runners.Written[*corev1.Node]) runners.Written[*corev1.Node] { return runners.Put(node) })
	p.in.Node.Node = node
}

// nodeGone records that the Node was deleted, until the Reader shows that.
func (p *pass) nodeGone() {
	gone := p.in.Node.Node
	p.nodes.Change(gone, func(runners.Written[*corev1.Node]) runners.Written[*corev1.Node] {
		return runners.Gone[*corev1.Node](gone.UID)
	})
	p.in.Node.Node = nil
}

// remember keeps what the next pass over a machine needs.
func (p *pass) remember(ctx context.Context, m *v1alpha1.Machine) {
	cached, err := p.Reader.Machine(ctx, p.key)
	if p.in.Machine == nil || err == nil && cached == nil { // nothing would remove the memory again
		p.forgetDrain(p.kept)
		p.kept = memory{machine: p.kept.machine, permit: p.kept.permit}
	} else {
		p.kept.vm, p.kept.drain, p.kept.asked = p.in.VM, p.in.Drain, p.in.Attachments.AskedAt
	}
	p.memory.Change(m, func(now memory) memory {
		p.kept.machine = now.machine // written during the pass
		return p.kept
	})
}

// wrote records a written machine, or that it was deleted, until the Reader shows that.
func (p *pass) wrote(w runners.Written[*v1alpha1.Machine], m *v1alpha1.Machine) {
	p.memory.Change(m, func(kept memory) memory {
		kept.machine = w
		return kept
	})
}
