// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// VM is what a hollow Node needs to know of the VM that it is.
type VM struct {
	// ProviderID and NodeName of the VM. A VM without a name has no Node.
	ProviderID, NodeName string
	// UpSince is when the VM began to run; zero means that it does not.
	UpSince time.Time
	// Token is the bootstrap token that the VM was given to join with. Empty means
	// that it needs none.
	Token string
}

// Nodes plays the kubelets of VMs, and the attachers of their volumes. What a
// kubelet does is described at the package.
//
// Step and Run are two ways to drive the same rules; use one of them at a time.
// The other methods are safe for several goroutines, at any time: what they order
// holds when they return, and a request that is under way is waited for (so that
// they must not be called from within one). The fields are not to be changed once
// one of the methods was called.
type Nodes struct {
	// Client of the cluster that the Nodes join. Every Node makes a request each
	// LeaseInterval, so that the client of many needs a generous limit.
	Client kubernetes.Interface
	// Clock of the Nodes; nil is the real one.
	Clock clock.WithTicker
	// VMs returns the VMs that exist; nil means none. A VM that it leaves out has
	// no kubelet any more. It is called at every Step, and by Run each VMInterval.
	VMs func() []VM
	// JoinAfter is how long a VM takes from running to joining.
	JoinAfter time.Duration
	// LeaseInterval is how often a kubelet renews its Lease, which holds four
	// times as long; zero or less is 10 s.
	LeaseInterval time.Duration
	// StatusInterval is how often a kubelet reports a status that has not
	// changed; zero or less is 5 min.
	StatusInterval time.Duration
	// PodStartTime is how long a pod takes to start; zero or less means that it
	// runs as soon as it is seen.
	PodStartTime time.Duration
	// PodStopTime is how long a pod takes to stop, at most its grace period; zero
	// or less means the whole of it.
	PodStopTime time.Duration
	// Attachers names the CSI drivers whose attacher is played, for VMs of these
	// Nodes; none means that another program attaches
	// volumes.
	Attachers []string
	// AttachTime and DetachTime are how long these take to attach a volume and to
	// detach it.
	AttachTime, DetachTime time.Duration
	// UpdateTime is how long the agent on a Node takes for an update in place; zero
	// or less means that there is no agent.
	UpdateTime time.Duration
	// VMInterval is how often Run asks for the VMs; zero or less is 1 s.
	VMInterval time.Duration
	// Workers is how many Nodes Run looks at together; less than one is 4.
	Workers int
	// Observe receives the errors of steps, which Run repeats. Nil means that they are dropped.
	// It may be called from several goroutines.
	Observe func(error)

	mu       sync.Mutex
	kubelets map[string]*kubelet
	orders   map[string]orders
	stranded int           // how many of the Nodes that come next are silent
	wake     func(subject) // how Run is told of orders; nil if it does not run
}

// orders are what a Node was told to do.
type orders struct {
	silent, frozen bool
	// conditions by type. One without status is not reported any more.
	conditions map[corev1.NodeConditionType]corev1.NodeCondition
	// updateFails says why an update in place fails; empty means that it succeeds.
	updateFails string
}

// Silence says whether nothing leaves a Node: neither its Lease nor its status,
// and its pods neither start nor end for the cluster. The word is kept for a
// Node that is not there yet: it does not join before it may speak.
func (n *Nodes) Silence(node string, silent bool) {
	n.tell(node, func(o *orders) { o.silent = silent })
}

// SilenceNext silences the Nodes of the next count VMs, so that they do not join. It
// is for VMs whose names are not known yet. Of VMs that appear together, the first by
// name are silenced. A VM that no step has observed counts as new.
func (n *Nodes) SilenceNext(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stranded = max(0, count)
}

// Silent returns the names of the silent Nodes, in order.
func (n *Nodes) Silent() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(n.orders)) {
		if n.orders[name].silent {
			names = append(names, name)
		}
	}
	return names
}

// Freeze says whether the containers of a Node neither start nor stop, while its
// kubelet goes on renewing its Lease and reporting its status. The word is kept
// for a Node that is not there yet.
func (n *Nodes) Freeze(node string, frozen bool) {
	n.tell(node, func(o *orders) { o.frozen = frozen })
}

// Report lets a Node report a condition (its type, status, reason and message)
// until it is told otherwise; the times are the kubelet's own. It overrides what
// the kubelet says by itself, Ready included. A condition without status ends the
// report: the kubelet speaks for itself again, and a condition that is not its
// own is removed. The word is kept for a Node that is not there yet.
func (n *Nodes) Report(node string, condition corev1.NodeCondition) {
	n.tell(node, func(o *orders) {
		o.conditions = maps.Clone(o.conditions)
		if o.conditions == nil {
			o.conditions = map[corev1.NodeConditionType]corev1.NodeCondition{}
		}
		o.conditions[condition.Type] = condition
	})
}

// FailUpdates lets updates in place of a Node fail, for the reason that its agent
// then gives; an empty one lets them succeed again, the one that has failed
// included. The word is kept for a Node that is not there yet. Without UpdateTime
// it means nothing.
func (n *Nodes) FailUpdates(node, reason string) {
	n.tell(node, func(o *orders) { o.updateFails = reason })
}

// tell changes the orders of a Node, waits until what it was doing is done, and
// lets Run look at it.
func (n *Nodes) tell(node string, change func(*orders)) {
	n.mu.Lock()
	if n.orders == nil {
		n.orders = map[string]orders{}
	}
	o := n.orders[node]
	change(&o)
	n.orders[node] = o
	wake, k := n.wake, n.kubelets[node]
	n.mu.Unlock()
	if k != nil {
		k.mu.Lock()
		k.mu.Unlock() //nolint:staticcheck // nothing to do but wait
	}
	if wake != nil {
		wake(subject{node: node})
	}
}

// look asks for the VMs, and returns the names of the Nodes for which that
// changes something, in order. A kubelet ends with its VM, and one that starts
// again remembers nothing but how to prove who it is.
func (n *Nodes) look() []string {
	vms := map[string]VM{}
	if n.VMs != nil {
		for _, vm := range n.VMs() {
			if other, twice := vms[vm.NodeName]; vm.NodeName != "" && (!twice || other.UpSince.IsZero()) {
				vms[vm.NodeName] = vm
			}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kubelets == nil {
		n.kubelets = map[string]*kubelet{}
	}
	var changed []string
	for name, k := range n.kubelets {
		vm, exists := vms[name]
		switch {
		case exists && vm == k.vm:
			continue
		case exists && vm.ProviderID == k.vm.ProviderID && !vm.UpSince.IsZero() && !k.vm.UpSince.IsZero():
			k.vm = vm // only its time was corrected
		case exists:
			next := &kubelet{vm: vm}
			next.known.Store(vm.ProviderID == k.vm.ProviderID && k.known.Load())
			n.kubelets[name] = next
		default:
			delete(n.kubelets, name)
		}
		changed = append(changed, name)
	}
	for _, name := range slices.Sorted(maps.Keys(vms)) {
		if n.kubelets[name] == nil {
			n.kubelets[name] = &kubelet{vm: vms[name]}
			n.strand(name)
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return changed
}

// strand silences a Node that has just come, if there is an order to.
func (n *Nodes) strand(node string) {
	if n.stranded == 0 {
		return
	}
	n.stranded--
	if n.orders == nil {
		n.orders = map[string]orders{}
	}
	o := n.orders[node]
	o.silent = true
	n.orders[node] = o
}

// kubeletOf returns the kubelet of a Node with its VM and its orders; nil if it
// has none.
func (n *Nodes) kubeletOf(node string) (*kubelet, VM, orders) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.kubelets[node]
	if k == nil {
		return nil, VM{}, orders{}
	}
	return k, k.vm, n.orders[node]
}

// isUp says whether a Node has a VM that runs.
func (n *Nodes) isUp(node string) bool {
	_, vm, _ := n.kubeletOf(node)
	return !vm.UpSince.IsZero()
}

// names returns the names of the Nodes that have a VM, in order.
func (n *Nodes) names() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.kubelets))
}

// clock returns the clock of the Nodes.
func (n *Nodes) clock() clock.WithTicker { return clockOr(n.Clock) }

func clockOr(c clock.WithTicker) clock.WithTicker {
	if c == nil {
		return clock.RealClock{}
	}
	return c
}

// pace returns the times that the rules go by.
func (n *Nodes) pace() pace {
	return pace{
		join: n.JoinAfter, lease: orElse(n.LeaseInterval, 10*time.Second), status: orElse(n.StatusInterval, 5*time.Minute),
		start: n.PodStartTime, stop: n.PodStopTime, attach: n.AttachTime, detach: n.DetachTime, update: n.UpdateTime,
	}
}

// orElse returns d, or def if d is not positive.
func orElse[T cmp.Ordered](d, def T) T {
	var zero T
	if d <= zero {
		return def
	}
	return d
}
