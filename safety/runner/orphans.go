// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
	"github.com/machinist-dev/machinist/safety"
)

// orphans is the state of the passes over VMs without a machine.
type orphans struct {
	pass  sync.Mutex   // one pass at a time
	state safety.State // of all classes; without it deletions only take longer

	mu      sync.Mutex
	rounds  safety.Rounds
	listing map[types.NamespacedName]bool           // listings that have not ended
	ended   map[types.NamespacedName]safety.Listing // since the last decision
	crash   *objects.Panic                          // of a listing, not yet passed on
	running sync.WaitGroup                          // of the listings
}

// listingTime is how long a pass waits for the listings of all classes. It then decides without those that
// have not ended.
const listingTime = time.Minute

// reconcileOrphans lists the VMs of the classes that are due, and deletes those without a machine.
func (e *Executor) reconcileOrphans(ctx context.Context) (time.Time, error) {
	o := &e.orphans
	o.pass.Lock()
	defer o.pass.Unlock()
	if freeze := e.frozen(); freeze.Frozen {
		h := freeze.Hold(e.now())
		decided(e, Orphans, safety.Decision[machinist.Action]{Reason: h.Reason, Holds: []machinist.Hold{h}, NextCheck: h.Until})
		return h.Until, nil
	}
	classes, err := e.classes(ctx)
	if err != nil {
		return time.Time{}, err
	}
	err = errors.Join(e.list(ctx, classes), e.judge(ctx, classes), e.deleteNodes(ctx))
	o.mu.Lock()
	defer o.mu.Unlock()
	if panicked := o.crash; panicked != nil { // the caller can recover from it here
		o.crash = nil
		panic(panicked)
	}
	next := o.rounds.Next()
	if len(o.listing) > 0 || len(o.ended) > 0 {
		later := e.now().Add(listingTime)
		if next = machinist.Earliest(next, later); !next.After(e.now()) { // what is due is being listed
			next = later
		}
	}
	return next, err
}

// classes returns the classes of the shard, in the order of their names.
func (e *Executor) classes(ctx context.Context) ([]*v1alpha1.MachineClass, error) {
	all, err := objects.In[*v1alpha1.MachineClass](ctx, e.Reader, e.Namespace)
	mine := slices.DeleteFunc(all, func(class *v1alpha1.MachineClass) bool { return !e.mine(class) })
	slices.SortFunc(mine, func(a, b *v1alpha1.MachineClass) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return mine, err
}

// keysOf returns the keys of classes.
func keysOf(classes []*v1alpha1.MachineClass) []types.NamespacedName {
	keys := make([]types.NamespacedName, len(classes))
	for i, class := range classes {
		keys[i] = objects.KeyOf(class)
	}
	return keys
}

// list lists the VMs of the classes that are due, and waits for the listings. One that does not end in time
// goes on, and is judged by a later pass. A class without its Secret is tried again by the next pass.
func (e *Executor) list(ctx context.Context, classes []*v1alpha1.MachineClass) (failed error) {
	o := &e.orphans
	o.mu.Lock()
	if o.listing == nil {
		o.listing, o.ended = map[types.NamespacedName]bool{}, map[types.NamespacedName]safety.Listing{}
	}
	due := o.rounds.Due(keysOf(classes), e.now())
	due = slices.DeleteFunc(due, func(class types.NamespacedName) bool { return o.listing[class] })
	o.mu.Unlock()
	ended := make(chan struct{}, len(due))
	waits := 0
	for _, class := range classes {
		key := objects.KeyOf(class)
		if !slices.Contains(due, key) {
			continue
		}
		secret, err := runners.MergedSecret(ctx, e.Reader, class)
		o.mu.Lock()
		if err != nil {
			o.rounds.Miss(key)
			o.mu.Unlock()
			failed = errors.Join(failed, err)
			continue
		}
		o.rounds.Begin(key, e.now())
		o.listing[key] = true
		o.mu.Unlock()
		waits++
		o.running.Go(func() {
			var l safety.Listing
			panicked := objects.Recover(func() { l = e.listing(ctx, class, secret) })
			o.mu.Lock()
			if delete(o.listing, key); panicked == nil {
				o.ended[key] = l
			} else {
				o.rounds.Miss(key)
				o.crash = panicked
			}
			o.mu.Unlock()
			ended <- struct{}{}
		})
	}
	if waits == 0 {
		return failed
	}
	timer := cmp.Or[clock.Clock](e.Clock, clock.RealClock{}).NewTimer(listingTime)
	defer timer.Stop()
	for range waits {
		select {
		case <-ended:
		case <-timer.C():
			return failed
		case <-ctx.Done():
			return errors.Join(failed, ctx.Err())
		}
	}
	return failed
}

// Wait waits for the listings that no pass has waited for. Call it after the last pass, when its context has
// ended.
func (e *Executor) Wait() { e.orphans.running.Wait() }

// listing calls the driver. A driver that lists no side resources returns Unimplemented.
func (e *Executor) listing(ctx context.Context, class *v1alpha1.MachineClass, secret *corev1.Secret) safety.Listing {
	var vms map[string]string
	response, err := driver.Answer(e.Driver.ListMachines(ctx, &driver.ListMachinesRequest{MachineClass: class, Secret: secret}))
	if response != nil {
		vms = response.MachineList
	}
	l := safety.NewListing(objects.KeyOf(class), vms, err, e.now())
	lister, ok := driver.As[driver.SideResourceLister](e.Driver)
	if !ok || err != nil {
		return l
	}
	_, l.DeletesSideResources = driver.As[driver.SideResourceDeleter](e.Driver)
	sides, err := driver.Answer(lister.ListSideResources(ctx, &driver.ListSideResourcesRequest{MachineClass: class, Secret: secret}))
	if err == nil {
		l.SideResources.Items = sides.Resources
	}
	if codes.Of(err) != codes.Unimplemented {
		l.SideResources.AsOf, l.SideResources.Complete = e.now(), err == nil
	}
	return l
}

// judge decides about the listings that have ended, and carries the decision out. The machines are read
// after the VMs: from the caches, and from the API server if then anything is without a machine, or is to be
// said or done.
func (e *Executor) judge(ctx context.Context, classes []*v1alpha1.MachineClass) error {
	o := &e.orphans
	o.mu.Lock()
	listings := slices.Collect(maps.Values(o.ended))
	o.mu.Unlock()
	if len(listings) == 0 {
		return nil
	}
	in := safety.Observation{Namespace: cmp.Or(e.Namespace, safety.AllNamespaces), Listings: listings}
	if nodes, err := objects.In[*corev1.Node](ctx, e.Reader, ""); err == nil { // Nodes without a machine are only reported
		in.Classes, in.Nodes = keysOf(classes), drain.List[*corev1.Node]{AsOf: e.now(), Items: slices.DeleteFunc(nodes, e.foreign), Complete: true}
	}
	var next safety.State
	var d safety.Decision[machinist.Action]
	step := func(machines []*v1alpha1.Machine, asked time.Time) {
		in.Machines = drain.List[*v1alpha1.Machine]{AsOf: asked, Items: machines, Complete: true}
		next, d = safety.Step(o.state, in, e.Policy, e.now())
	}
	asked := e.now()
	machines, err := objects.In[*v1alpha1.Machine](ctx, e.Reader, e.Namespace)
	if err == nil {
		step(machines, asked)
	}
	if err != nil || len(d.Actions)+len(d.Events) > 0 { // nothing is deleted or reported because of an old cache
		asked = e.now()
		if machines, err = runners.List[*v1alpha1.Machine](ctx, e.Requests, e.Namespace, nil); err != nil {
			return err
		}
		step(machines, asked)
	}
	o.state = next
	o.mu.Lock()
	for _, l := range listings {
		if o.ended[l.Class].VMs.AsOf.Equal(l.VMs.AsOf) {
			delete(o.ended, l.Class)
		}
	}
	o.rounds.End(listings, d, e.now())
	o.mu.Unlock()
	decided(e, Orphans, d)
	for _, event := range d.Events {
		name, _ := cache.ParseObjectName(strings.TrimPrefix(event.Subject, "machineclass/"))
		for _, class := range classes {
			if objects.KeyOf(class) == types.NamespacedName(name) {
				e.report(class, event)
			}
		}
	}
	var failed []error
	for _, a := range d.Actions {
		if err := e.delete(ctx, a); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", a, err)) // the next decision repeats it
		}
	}
	return errors.Join(failed...)
}

// foreign reports whether a Node belongs to another shard.
func (e *Executor) foreign(node *corev1.Node) bool {
	shard, ok := node.Labels[v1alpha1.ShardLabelKey]
	return ok && shard != e.Shard
}

const (
	// orphanDeleted means that a VM or side resource without a machine is being deleted.
	orphanDeleted machinist.Reason = "OrphanDeleted"
	// orphanDeletionFailed means that the driver has refused a deletion, which is tried again.
	orphanDeletionFailed machinist.Reason = "OrphanDeletionFailed"
)

// delete deletes a VM or a side resource. Just before, it reads the class, the Secret and the machine again,
// and omits the deletion if it is not valid any more.
func (e *Executor) delete(ctx context.Context, do machinist.Action) error {
	switch a := do.(type) {
	case safety.DeleteVM:
		class, secret, valid, err := e.recheck(ctx, a.Namespace, a.Class, a.MachineName, a.StillValid)
		if err != nil || !valid {
			return err
		}
		_, err = driver.Answer(e.Driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: a.Machine(), MachineClass: class, Secret: secret}))
		err = e.deleted(class, "VM", fmt.Sprintf("%s of machine %s", a.ProviderID, a.MachineName), a.Reason, a.Message, err)
		e.orphans.mu.Lock()
		defer e.orphans.mu.Unlock()
		e.orphans.rounds.Deleted(a, err, e.now())
		return err
	case safety.DeleteSideResource:
		class, secret, valid, err := e.recheck(ctx, a.Namespace, a.Class, a.Resource.MachineName, a.StillValid)
		if err != nil || !valid {
			return err
		}
		deleter, ok := driver.As[driver.SideResourceDeleter](e.Driver)
		if !ok {
			return errors.New("the driver does not implement SideResourceDeleter")
		}
		_, err = driver.Answer(deleter.DeleteSideResource(ctx, &driver.DeleteSideResourceRequest{Resource: a.Resource, MachineClass: class, Secret: secret}))
		return e.deleted(class, a.Resource.Kind, fmt.Sprintf("%s of machine %s", a.Resource.ID, a.Resource.MachineName), a.Reason, a.Message, err)
	default:
		return fmt.Errorf("unknown action %T", do)
	}
}

// recheck reads the class and the Secret, and the machine from the API server. It reports whether the
// deletion is still valid.
func (e *Executor) recheck(
	ctx context.Context, namespace, className, machineName string, stillValid func(*v1alpha1.Machine) bool,
) (*v1alpha1.MachineClass, *corev1.Secret, bool, error) {
	class, err := objects.Get[*v1alpha1.MachineClass](ctx, e.Reader, namespace, className)
	if err != nil || class == nil || !e.mine(class) {
		return nil, nil, false, err
	}
	secret, err := runners.MergedSecret(ctx, e.Reader, class)
	if err != nil {
		return nil, nil, false, err
	}
	live, err := objects.Get[*v1alpha1.Machine](ctx, e.Requests, namespace, machineName)
	return class, secret, err == nil && stillValid(live), err
}

// deleted reports a deletion with the evidence of the decision. It returns the error of the driver, which
// is nil if what was deleted did not exist.
func (e *Executor) deleted(class *v1alpha1.MachineClass, kind, name string, reason machinist.Reason, message string, err error) error {
	if codes.Of(err) == codes.NotFound {
		return nil
	}
	if e.Collected != nil {
		e.Collected(kind, err)
	}
	event := machinist.Event{
		Type: corev1.EventTypeNormal, Reason: orphanDeleted, Message: fmt.Sprintf("%s %s is being deleted (%s): %s", kind, name, reason, message),
	}
	if err != nil {
		event = machinist.Event{
			Type: corev1.EventTypeWarning, Reason: orphanDeletionFailed,
			Message: fmt.Sprintf("%s %s could not be deleted (%s): %v; the deletion is repeated if the next listing contains it", kind, name, reason, err),
		}
	}
	e.report(class, event)
	return err
}

// deleteNodes deletes the Nodes of deleted VMs.
func (e *Executor) deleteNodes(ctx context.Context) (err error) {
	e.orphans.mu.Lock()
	vms := e.orphans.rounds.NodesDue(e.now())
	e.orphans.mu.Unlock()
	for _, vm := range vms {
		nodes, failed := objects.List[*corev1.Node](ctx, e.Reader, runners.ByID, nodeops.NormalizeProviderID(vm.ProviderID))
		if errors.Is(failed, machine.ErrNoTarget) {
			continue
		}
		err = errors.Join(err, failed)
		for _, node := range nodes {
			if vm.OwnsNode(node) {
				_, failed := runners.DeleteNode(ctx, e.Requests, node)
				err = errors.Join(err, failed)
			}
		}
	}
	return err
}
