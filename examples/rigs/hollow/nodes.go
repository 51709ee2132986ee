// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// VM is what a hollow Node reads of its VM.
type VM struct {
	// ProviderID and NodeName are those of the VM. A VM without NodeName has no Node.
	ProviderID, NodeName string
	// UpSince is when the VM began to run. Zero means that it does not run.
	UpSince time.Time
	// Token is the bootstrap token of the VM. Empty means that the VM needs none to
	// join.
	Token string
}

// Nodes simulates the kubelets of VMs. The package comment describes what a kubelet does.
//
// Step and Run have the same rules. Use one of them at a time. The other methods are safe for
// several goroutines at any time. They wait for requests in progress and take effect before they
// return, so that a request must not call them. Fields must not be changed after the first call of
// a method.
type Nodes struct {
	// Client is the client for the cluster that the Nodes join. Every Node makes a
	// request per LeaseInterval, so that many Nodes need a high rate limit.
	Client kubernetes.Interface
	// Clock is the clock of the Nodes. Nil means the real clock.
	Clock clock.WithTicker
	// VMs returns the existing VMs. Nil means none. The kubelet of a VM ends when VMs no
	// longer returns it. Step calls it each time, Run every VMInterval.
	VMs func() []VM
	// JoinAfter is how long a VM takes from running to joining.
	JoinAfter time.Duration
	// LeaseInterval is the interval of Lease renewals. The Lease duration is four times
	// as long. Zero or less means 10s.
	LeaseInterval time.Duration
	// StatusInterval is the interval of reports of an unchanged status. Zero or less
	// means 5m.
	StatusInterval time.Duration
	// PodStartTime is how long a pod takes to start. Zero or less means that it starts at
	// once.
	PodStartTime time.Duration
	// PodStopTime is how long a pod takes to stop, at most its grace period. Zero or less
	// means the grace period.
	PodStopTime time.Duration
	// UpdateTime is how long the agent of a Node takes for an update in place. Zero or
	// less means that there is no agent.
	UpdateTime time.Duration
	// VMInterval is the interval at which Run calls VMs. Zero or less means 1s.
	VMInterval time.Duration
	// Workers is the number of Nodes that Run handles concurrently. Less than one means 4.
	Workers int
	// Observe receives the errors of steps, which Run repeats. Nil means that they are dropped.
	// It may be called from several goroutines.
	Observe func(error)

	mu       sync.Mutex
	kubelets map[string]*kubelet
	silent   map[string]bool
	stranded int               // the number of next Nodes to silence
	wake     func(node string) // tells Run of changed orders; nil if it does not run
}

// Silence stops or resumes all requests of a Node: its Lease, its status, and the status of its
// pods. A silent Node that has not joined does not join.
func (n *Nodes) Silence(node string, silent bool) {
	n.mu.Lock()
	n.order(node, silent)
	wake, k := n.wake, n.kubelets[node]
	n.mu.Unlock()
	if k != nil {
		k.mu.Lock()
		k.mu.Unlock() //nolint:staticcheck // only waits for the pass in progress
	}
	if wake != nil {
		wake(node)
	}
}

// order records whether a Node is silent. The lock is held.
func (n *Nodes) order(node string, silent bool) {
	if n.silent == nil {
		n.silent = map[string]bool{}
	}
	n.silent[node] = silent
}

// SilenceNext silences the Nodes of the next count VMs, so that they do not join. It
// is for VMs whose names are not known yet. Of VMs that appear together, the first by
// name are silenced. A VM that no step has observed counts as new.
func (n *Nodes) SilenceNext(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stranded = max(0, count)
}

// Silent returns the names of the silent Nodes, sorted.
func (n *Nodes) Silent() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(n.silent)) {
		if n.silent[name] {
			names = append(names, name)
		}
	}
	return names
}

// look reads the VMs, and returns the sorted names of the Nodes with a change. The kubelet of a
// restarted VM keeps only its certificate.
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
			k.vm = vm // only UpSince has changed
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

// strand silences a new Node if SilenceNext has ordered that.
func (n *Nodes) strand(node string) {
	if n.stranded > 0 {
		n.stranded--
		n.order(node, true)
	}
}

// kubeletOf returns the kubelet of a Node, its VM, and whether it is silent. The kubelet is nil if
// there is none.
func (n *Nodes) kubeletOf(node string) (*kubelet, VM, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.kubelets[node]
	if k == nil {
		return nil, VM{}, false
	}
	return k, k.vm, n.silent[node]
}

// names returns the sorted names of the Nodes that have a VM.
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

// pace returns the durations of the simulation.
func (n *Nodes) pace() pace {
	return pace{
		join: n.JoinAfter, lease: orElse(n.LeaseInterval, 10*time.Second), status: orElse(n.StatusInterval, 5*time.Minute),
		start: n.PodStartTime, stop: n.PodStopTime, update: n.UpdateTime,
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
