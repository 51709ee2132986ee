// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/line"
	"github.com/machinist-dev/machinist/machine"
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

// NodeEdit is the change of a [NodeWrite].
type NodeEdit string

// Edits of a Node.
const (
	// Mark adds the annotation [v1alpha1.NotManagedByMCM].
	Mark NodeEdit = "Mark"
	// Unmark removes that annotation.
	Unmark NodeEdit = "Unmark"
	// RemoveFinalizer removes the machine finalizer, so that the Node can be deleted.
	RemoveFinalizer NodeEdit = "RemoveFinalizer"
)

// NodeWrite is one change of a Node. It is safe to repeat.
type NodeWrite struct {
	// Edit is the change.
	Edit NodeEdit `json:"edit"`
	// Subject names the Node, such as "node/n1".
	Subject string `json:"subject"`
	// Node as it was observed. It is read only.
	Node *corev1.Node `json:"-"`
	// Message is the reason for people. Its text may change.
	Message string `json:"message"`
}

// Patch returns the patch for the Node. It changes nothing else, and the API server refuses
// it for a new Node with the same name.
func (w NodeWrite) Patch() (types.PatchType, []byte, error) {
	if w.Edit == RemoveFinalizer {
		patch, _ := machine.ReleaseNode(w.Node)
		return types.StrategicMergePatchType, patch, nil
	}
	var value any
	if w.Edit == Mark {
		value = notManaged
	}
	metadata := map[string]any{"annotations": map[string]any{v1alpha1.NotManagedByMCM: value}}
	if w.Node != nil && w.Node.UID != "" {
		metadata["uid"] = w.Node.UID
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	return types.MergePatchType, patch, err
}

// String returns the write in one line.
func (w NodeWrite) String() string {
	verb := map[NodeEdit]string{Mark: "mark", Unmark: "unmark", RemoveFinalizer: "remove the finalizer of"}[w.Edit]
	return fmt.Sprintf("%s %s: %s", verb, w.Subject, w.Message)
}

const (
	// notManaged is the value of the annotation.
	notManaged = "1"
	// objection is the time between the mark and the removal of the finalizer. In it a manager
	// of other machines can remove the mark.
	objection = 5 * time.Minute
)

// Reasons to hold a Node without exactly one machine.
const (
	// NodeTooYoung means that [UnmanagedPolicy.Timeout] is not over.
	NodeTooYoung machinist.Reason = "NodeTooYoung"
	// NodeAmbiguous means that the Node matches several machines.
	NodeAmbiguous machinist.Reason = "NodeAmbiguous"
	// MarkRemoved means that another client removed the mark.
	MarkRemoved machinist.Reason = "MarkRemoved"
	// NodeMarked means that the Node is marked and keeps its finalizer.
	NodeMarked machinist.Reason = "NodeMarked"
)

// UnmanagedState is the memory of [StepUnmanaged]: when it first saw each mark. It need not be
// stored. After a loss a finalizer stays longer.
type UnmanagedState struct {
	marked map[types.UID]time.Time
}

// UnmanagedDecision is the result of [StepUnmanaged].
type UnmanagedDecision struct {
	// Actions are independent of each other, and sorted by the name of the Node.
	Actions []NodeWrite `json:"actions,omitempty"`
	// Holds are the Nodes without exactly one machine that do not change, sorted by name.
	Holds []machinist.Hold `json:"holds,omitempty"`
	// NextCheck is when to decide again. Zero means when a Node or a machine changes.
	NextCheck time.Time `json:"nextCheck,omitzero"`
}

// String returns the decision in one line.
func (d UnmanagedDecision) String() string { return line.Decision(d.Actions, "", "", d.Holds) }

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
// The time is proportional to the number of Nodes and machines.
func StepUnmanaged(state UnmanagedState, in UnmanagedObservation, p UnmanagedPolicy, now time.Time) (UnmanagedState, UnmanagedDecision) {
	u := unmanaged{in: in, now: now, before: state, next: map[types.UID]time.Time{}}
	if !in.Complete {
		u.d.Holds = []machinist.Hold{{Subject: "nodes", Reason: MachinesUnusable, Message: "the lists may be incomplete"}}
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
	d       UnmanagedDecision
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
			u.write(Unmark, node, "it belongs to machine "+name)
		}
	case match.Reason != nodeops.NoMatch:
		u.keep(node, marked)
		u.hold(node, NodeAmbiguous, fmt.Sprintf("%d machines match: %s", len(match.Names), strings.Join(match.Names, ", ")), time.Time{})
	case u.names[node.Labels[v1alpha1.MachineNameLabelKey]] != nil:
		u.keep(node, marked)
		u.hold(node, NodeAmbiguous, "its label names machine "+node.Labels[v1alpha1.MachineNameLabelKey]+", but that machine does not name this Node", time.Time{})
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
		u.hold(node, MarkRemoved, "it has no machine, but another client removed the annotation "+v1alpha1.NotManagedByMCM+"; it is not marked again", time.Time{})
	case u.now.Before(due):
		u.hold(node, NodeTooYoung, fmt.Sprintf("it has no machine and is marked at the age of %s", u.timeout), due)
	case u.in.Frozen:
	default:
		u.write(Mark, node, fmt.Sprintf("it has had no machine for %s", u.timeout))
	}
}

// release removes the machine finalizer from a Node 5m after the mark.
func (u *unmanaged) release(node *corev1.Node) {
	due := u.keep(node, true).Add(objection)
	switch {
	case !slices.Contains(node.Finalizers, v1alpha1.NodeFinalizerName) || u.in.Frozen:
	case u.now.Before(due):
		u.hold(node, NodeMarked, fmt.Sprintf("its finalizer is removed %s after the mark", objection), due)
	case len(u.names) == 0:
		u.hold(node, NodeMarked, "its finalizer stays because no machine exists; the list may be wrong", time.Time{})
	default:
		u.write(RemoveFinalizer, node, "it has no machine")
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

func (u *unmanaged) write(edit NodeEdit, node *corev1.Node, message string) {
	u.d.Actions = append(u.d.Actions, NodeWrite{Edit: edit, Subject: subject("node", node), Node: node, Message: message})
}

func (u *unmanaged) hold(node *corev1.Node, reason machinist.Reason, message string, until time.Time) {
	u.d.Holds = append(u.d.Holds, machinist.Hold{Subject: subject("node", node), Reason: reason, Message: message, Until: until})
	u.d.NextCheck = machinist.Earliest(u.d.NextCheck, until)
}
