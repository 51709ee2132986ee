// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/machine"
	listers "github.com/machinist-dev/machinist/machine/client/listers/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/permits"
)

// machineReconciler reconciles Machine objects.
type machineReconciler struct {
	*loop
	cfg      *Config
	lister   listers.MachineLister
	classes  listers.MachineClassLister
	groups   *groups
	nodeOfID func(providerID string) *corev1.Node
	ofID     func(providerID string) []*v1alpha1.Machine
	ofName   func(machine string) []*v1alpha1.Machine

	machinesOfNode func(n *corev1.Node) []*v1alpha1.Machine

	secret secretReader
	node   func(name string) (*corev1.Node, error)
	drains *runner.Informers // nil without a target cluster
	tokens func(machine types.UID) []*corev1.Secret

	nodesSynced, tokensSynced func() bool

	written      *written[*v1alpha1.Machine]
	writtenNode  *written[*corev1.Node]
	writtenToken *written[*corev1.Secret]
	permits      *permits.Ledger
	failures     *failureGuard
	outage       targetOutage
	shows        func(types.UID) bool         // reports whether the cache contains a machine
	secondVM     func(class cache.ObjectName) // is called if the driver found several VMs of one machine

	mu     sync.Mutex
	memory map[types.UID]memory
}

// memory is what is kept of a machine between two passes. If it is lost, work is repeated, and the
// decisions stay safe.
type memory struct {
	first time.Time // the time of the first observation
	vm    machine.VMView
	drain machine.DrainView
	asked time.Time      // the time of the first deletion of attachments
	token *corev1.Secret // created, and not in the cache yet
	// confirmed is when the API server last confirmed in this pass that the machine of the
	// observation is the newest version: with the response to a write, which has to name the newest
	// version, or to a read.
	confirmed time.Time

	reported drain.Decision // the last reported decision of the drain
}

// maxSteps is the maximum number of actions in one pass. A machine that needs more is retried with
// back-off.
const maxSteps = 50

// errNotSettled is the error of a pass that has reached maxSteps.
var errNotSettled = errors.New("machine did not settle")

// permitTime is how long a machine with a permit to fail counts as failed before the cache shows
// that.
const permitTime = 10 * time.Minute

func newMachines(cfg *Config, c *caches) *machineReconciler {
	api := c.machines.Machine().V1alpha1()
	r := &machineReconciler{
		cfg: cfg, secret: c.secret(), memory: map[types.UID]memory{}, permits: permits.NewLedger(0, permitTime),
		shows:  shows[*v1alpha1.Machine](api.Machines().Informer()),
		lister: api.Machines().Lister(), classes: api.MachineClasses().Lister(), secondVM: func(cache.ObjectName) {},
	}
	r.loop, r.written = newLoop(cfg, "machine", r.pass), newWritten[*v1alpha1.Machine](r.shows)
	r.groups = newGroups(c)
	r.failures = newFailureGuard(cfg, c, r.groups, r.written)
	r.nodeOfID, r.ofID, r.ofName, r.machinesOfNode = c.nodeOfID, c.ofID, c.ofName, c.machinesOfNode
	r.watch(c)
	r.wakeWithFreeze(api.Machines().Informer(), wakeSpread)
	if c.target != nil {
		r.watchTarget(c)
	}
	return r
}

// pass observes a machine, and decides and acts until a decision has no action.
func (r *machineReconciler) pass(ctx context.Context, key cache.ObjectName) (time.Time, error) {
	m, err := r.lister.Machines(key.Namespace).Get(key.Name)
	if err != nil {
		r.cfg.holds.forget(r.kind, key)
		return time.Time{}, ignoreNotFound(err)
	}
	m, exists := r.written.newest(m)
	if !exists {
		return time.Time{}, nil
	}
	if !r.cfg.mine(m) { // its failure counts for the guard
		r.failures.settle(m, false, r.cfg.Clock.Now())
		return time.Time{}, nil
	}
	in, kept := r.observe(ctx, m)
	again, err := r.advance(ctx, key, &in, &kept)
	r.remember(in, kept) // not after a panic: observe has removed the memory
	r.failures.settle(m, in.VM.Vanished(m), r.cfg.Clock.Now())
	return again, err
}

// advance decides and acts until a decision has no action. It returns the time of the next check.
func (r *machineReconciler) advance(ctx context.Context, key cache.ObjectName, in *machine.Observation, kept *memory) (time.Time, error) {
	var d machine.Decision
	for range maxSteps {
		in.Freeze = r.cfg.freeze.now() // a freeze may begin during a call
		d = machine.Decide(*in, r.cfg.Policy, r.cfg.Clock.Now())
		r.cfg.note(Note{Kind: r.kind, Key: key.String(), Text: d.String(), Reason: d.Reason, Holds: d.Holds, Acts: d.Action != nil, Waits: len(d.Holds) > 0})
		if d.Action == nil {
			return machinist.Earliest(d.NextCheck, r.cfg.reportStuck(r.kind, in.Machine, key, d.Holds, nil)), nil
		}
		if err := r.apply(ctx, in, kept, d.Action); err != nil {
			return time.Time{}, fmt.Errorf("%s: %w", d.Action, err)
		}
		if in.Machine == nil { // deleted
			r.cfg.holds.forget(r.kind, key)
			return time.Time{}, nil
		}
	}
	return time.Time{}, fmt.Errorf("%w in %d steps; the last action was: %s", errNotSettled, maxSteps, d.Action)
}

// observe returns the observation of a machine, and removes and returns its memory.
func (r *machineReconciler) observe(ctx context.Context, m *v1alpha1.Machine) (machine.Observation, memory) {
	r.mu.Lock()
	kept := r.memory[m.UID]
	delete(r.memory, m.UID)
	r.mu.Unlock()
	kept.confirmed = time.Time{}
	if kept.first.IsZero() {
		kept.first = r.cfg.Clock.Now()
	}
	in := machine.Observation{
		Machine: m, FirstSeen: kept.first, Class: r.observeClass(m), Node: r.observeNode(ctx, m, kept.vm), VM: kept.vm, Drain: kept.drain.Again(),
		Tokens: r.observeTokens(m, &kept),
	}
	in.ProviderID = r.observeProviderID(m)
	if machine.NeedsSiblings(m) {
		in.Siblings = r.groups.siblings(m)
	}
	attachments, err := r.drains.AttachmentsOf(ctx, in.Node.Name, nil)
	in.Attachments = machine.AttachmentsView{Looked: err == nil, Attachments: attachments, AskedAt: kept.asked}
	return in, kept
}

// observeProviderID finds other machines with the same provider ID or name.
func (r *machineReconciler) observeProviderID(m *v1alpha1.Machine) machine.ProviderIDView {
	others := r.ofName(m.Name)
	for _, id := range providerIDs(m.Spec.ProviderID) {
		others = append(others, r.ofID(id)...)
	}
	return machine.ProviderIDView{Compared: true, Others: others}
}

func (r *machineReconciler) observeClass(m *v1alpha1.Machine) machine.ClassView {
	class, err := r.classes.MachineClasses(m.Namespace).Get(m.Spec.Class.Name)
	if err != nil {
		return machine.ClassView{Looked: ignoreNotFound(err) == nil}
	}
	secret, err := mergedSecret(class, r.secret)
	return machine.ViewClass(class, secret, err)
}

// observeTokens returns the bootstrap tokens of the machine: those in the cache, and the token that
// was just created.
func (r *machineReconciler) observeTokens(m *v1alpha1.Machine, kept *memory) machine.TokensView {
	if r.tokens == nil {
		return machine.TokensView{}
	}
	view := machine.TokensView{Looked: r.tokensSynced()}
	for _, s := range r.tokens(m.UID) {
		if kept.token != nil && kept.token.UID == s.UID {
			kept.token = nil
		}
		if s, exists := r.writtenToken.newest(s); exists {
			view.Secrets = append(view.Secrets, s)
		}
	}
	if kept.token != nil {
		view.Secrets = append(view.Secrets, kept.token)
	}
	return view
}

// observeNode returns the Node that the machine or its VM names, or else the Node with its provider
// ID. For a machine that is being deleted, it reads a Node that the cache lacks from the API
// server, because the Node may have just joined.
func (r *machineReconciler) observeNode(ctx context.Context, m *v1alpha1.Machine, vm machine.VMView) machine.NodeView {
	if r.node == nil {
		return machine.NodeView{NoTarget: true}
	}
	name, sameID := machine.NodeNameOf(m, vm), r.nodeOfID(cmp.Or(vm.Named.ProviderID, m.Spec.ProviderID))
	if name == "" && sameID != nil {
		name = sameID.Name
	}
	if name == "" {
		return machine.NodeView{Looked: r.nodesSynced()}
	}
	node, err := r.node(name)
	if apierrors.IsNotFound(err) && !m.DeletionTimestamp.IsZero() {
		node, err = r.cfg.Target.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	}
	if ignoreNotFound(err) != nil {
		return machine.NodeView{Name: name}
	}
	if err != nil {
		node = nil
	}
	node = r.newestNode(node)
	if !m.DeletionTimestamp.IsZero() {
		node = machine.NodeToDelete(m, vm, node, r.newestNode(sameID), r.cfg.Clock.Now())
	}
	return machine.NodeView{Looked: true, Name: name, Node: node}
}

// newestNode returns the newest known version of a Node, or nil if it was deleted.
func (r *machineReconciler) newestNode(node *corev1.Node) *corev1.Node {
	if node == nil {
		return nil
	}
	if node, exists := r.writtenNode.newest(node); exists {
		return node
	}
	return nil
}

func (r *machineReconciler) remember(in machine.Observation, kept memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in.Machine == nil || !r.shows(in.Machine.UID) { // nothing would remove the memory again
		r.forgetDrain(kept)
		return
	}
	kept.vm, kept.drain, kept.asked = in.VM, in.Drain, in.Attachments.AskedAt
	r.memory[in.Machine.UID] = kept
}

// forget removes the memory of a machine that the cache has lost.
func (r *machineReconciler) forget(uid types.UID) {
	r.written.forget(uid)
	r.mu.Lock()
	kept := r.memory[uid]
	delete(r.memory, uid)
	r.mu.Unlock()
	r.forgetDrain(kept)
}
