// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// UnmanagedObservation is the input of [StepUnmanaged]. With the zero value nothing is done.
type UnmanagedObservation struct {
	// Nodes are all Nodes of the target cluster. Nil is skipped.
	Nodes []*corev1.Node
	// Machines are all machines of the Nodes. Nil is skipped.
	Machines []*v1alpha1.Machine
	// Complete reports that no object is missing. If false, nothing is done.
	Complete bool
	// Frozen reports that an API server does not answer and the caches may be old. Then marks
	// are only removed.
	Frozen bool
}

// UnmanagedPolicy defines when a Node is marked. The zero policy marks none.
type UnmanagedPolicy struct {
	// Timeout is the age at which a Node without a machine is marked. A longer creation
	// timeout of a machine that has not joined extends it. Zero or less means never.
	Timeout time.Duration
}

const (
	// notManaged is the value of the annotation.
	notManaged = "1"
	// objection is the time between the mark and the removal of the finalizer. In it a manager
	// of other machines can remove the mark.
	objection = 5 * time.Minute
	// incompleteWait is the time until incomplete lists are read again.
	incompleteWait = time.Minute
)

// UnmanagedState is the memory of [StepUnmanaged]: when it first saw each mark. It need not be
// stored. After a loss a finalizer stays longer.
type UnmanagedState struct {
	marked map[types.UID]time.Time
}

// StepUnmanaged marks Nodes without a machine, and removes the mark when a machine appears.
// [nodeops.Index] finds the machine of a Node by its label "node" or by its provider ID. A
// machine that is being deleted counts.
//
//   - A Node without a machine is marked at the age of [UnmanagedPolicy.Timeout].
//   - 5m after the mark, the machine finalizer is removed, so that the Node can be deleted. It
//     stays while no machine exists at all.
//   - The mark of a Node with exactly one machine is removed, once the Node has a record of the
//     machine. What a user writes into a Machine does not change the Node.
//   - A Node that matches several machines, or whose label names another machine, does not
//     change.
//   - A mark that another client removed is not set again. The Node may belong to a manager of
//     another namespace.
//
// The actions are updates of Nodes, sorted by name and independent of each other. Each changes one
// annotation or one finalizer. Write it as a patch, so that it does not conflict with other writes.
//
// The time is proportional to the number of Nodes and machines.
func StepUnmanaged(state UnmanagedState, in UnmanagedObservation, p UnmanagedPolicy, now time.Time) (UnmanagedState, Decision[machinist.Update]) {
	u := unmanaged{in: in, now: now, before: state, next: map[types.UID]time.Time{}}
	if !in.Complete {
		u.d.NextCheck = now.Add(incompleteWait)
		u.d.Holds = []machinist.Hold{{Subject: "nodes", Reason: machinesUnusable, Message: "the lists may be incomplete", Until: u.d.NextCheck}}
		return state, u.d
	}
	u.prepare(p)
	nodes := slices.DeleteFunc(slices.Clone(in.Nodes), func(n *corev1.Node) bool { return n == nil })
	slices.SortStableFunc(nodes, func(a, b *corev1.Node) int { return compareNames(a, b) })
	for _, node := range nodes {
		u.judge(node)
	}
	return UnmanagedState{marked: u.next}, u.d
}

// unmanaged holds the intermediate results of one [StepUnmanaged].
type unmanaged struct {
	in      UnmanagedObservation
	now     time.Time
	timeout time.Duration
	before  UnmanagedState
	next    map[types.UID]time.Time
	index   *nodeops.Index
	names   map[string]*v1alpha1.Machine
	d       Decision[machinist.Update]
}

// prepare builds the index of machines and the timeout.
func (u *unmanaged) prepare(p UnmanagedPolicy) {
	u.timeout, u.index, u.names = p.Timeout, indexOf(u.in.Machines), make(map[string]*v1alpha1.Machine, len(u.in.Machines))
	for _, m := range u.in.Machines {
		if m == nil {
			continue
		}
		u.names[m.Name] = m
		own := m.Spec.MachineConfiguration
		if own != nil && own.MachineCreationTimeout != nil && p.Timeout > 0 && m.Labels[v1alpha1.NodeLabelKey] == "" {
			u.timeout = max(u.timeout, own.MachineCreationTimeout.Duration)
		}
	}
}

// indexOf returns the index that finds the machine of a Node.
func indexOf(machines []*v1alpha1.Machine) *nodeops.Index {
	candidates := make([]nodeops.Candidate, 0, len(machines))
	for _, m := range machines {
		if m != nil {
			candidates = append(candidates, nodeops.Candidate{Name: m.Name, NodeName: m.Labels[v1alpha1.NodeLabelKey], ProviderID: m.Spec.ProviderID})
		}
	}
	return nodeops.NewIndex(candidates)
}

// judge decides what is done with a Node.
func (u *unmanaged) judge(node *corev1.Node) {
	_, marked := node.Annotations[v1alpha1.NotManagedByMCM]
	match := u.index.Match(node)
	switch {
	case match.Found():
		if name := match.Names[0]; marked && (node.Labels[v1alpha1.MachineNameLabelKey] == name || facts.Proven(u.names[name], node)) {
			u.write(node, "mark removed", "it belongs to machine "+name, func(n *corev1.Node) { delete(n.Annotations, v1alpha1.NotManagedByMCM) })
		}
	case len(match.Names) > 0:
		u.keep(node, marked)
		u.hold(node, nodeAmbiguous, fmt.Sprintf("%d machines match: %s", len(match.Names), strings.Join(match.Names, ", ")), time.Time{})
	case u.names[node.Labels[v1alpha1.MachineNameLabelKey]] != nil:
		u.keep(node, marked)
		u.hold(node, nodeAmbiguous, "its label names machine "+node.Labels[v1alpha1.MachineNameLabelKey]+", but that machine does not name this Node", time.Time{})
	case u.timeout <= 0:
	case marked:
		u.release(node)
	default:
		u.mark(node)
	}
}

// mark marks a Node without a machine that is old enough.
func (u *unmanaged) mark(node *corev1.Node) {
	due := node.CreationTimestamp.Add(u.timeout)
	_, known := u.before.marked[node.UID]
	switch {
	case known:
		u.keep(node, true)
		u.hold(node, markRemoved, "it has no machine, but another client removed the annotation "+v1alpha1.NotManagedByMCM+"; it is not marked again", time.Time{})
	case u.now.Before(due):
		u.hold(node, nodeTooYoung, fmt.Sprintf("it has no machine and is marked at the age of %s", u.timeout), due)
	case u.in.Frozen:
	default:
		u.write(node, "marked", fmt.Sprintf("it has had no machine for %s", u.timeout), func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.NotManagedByMCM, notManaged)
		})
	}
}

// release removes the machine finalizer from a Node 5m after the mark.
func (u *unmanaged) release(node *corev1.Node) {
	due := u.keep(node, true).Add(objection)
	switch {
	case !slices.Contains(node.Finalizers, v1alpha1.NodeFinalizerName) || u.in.Frozen:
	case u.now.Before(due):
		u.hold(node, nodeMarked, fmt.Sprintf("its finalizer is removed %s after the mark", objection), due)
	case len(u.names) == 0:
		u.hold(node, nodeMarked, "its finalizer stays because no machine exists; the list may be wrong", time.Time{})
	default:
		u.write(node, "finalizer removed", "it has no machine", func(n *corev1.Node) {
			n.Finalizers = slices.DeleteFunc(n.Finalizers, func(f string) bool { return f == v1alpha1.NodeFinalizerName })
		})
	}
}

// keep records a mark and returns the time at which it was first seen.
func (u *unmanaged) keep(node *corev1.Node, marked bool) time.Time {
	since, known := u.before.marked[node.UID]
	if !known {
		if !marked {
			return u.now
		}
		since = u.now
	}
	u.next[node.UID] = since
	return since
}

// write adds the update of a Node.
func (u *unmanaged) write(node *corev1.Node, what, why string, edit func(*corev1.Node)) {
	next := node.DeepCopy()
	edit(next)
	u.d.Actions = append(u.d.Actions, machinist.Update{Before: node, Object: next, Changes: []string{what, why}})
}

func (u *unmanaged) hold(node *corev1.Node, reason machinist.Reason, message string, until time.Time) {
	u.d.Holds = append(u.d.Holds, machinist.Hold{Subject: subject("node", node), Reason: reason, Message: message, Until: until})
	u.d.NextCheck = machinist.Earliest(u.d.NextCheck, until)
}
