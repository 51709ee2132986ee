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
	"github.com/machinist-dev/machinist/internal/line"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// UnmanagedObservation is what [StepUnmanaged] is told. The zero observation proves nothing.
type UnmanagedObservation struct {
	// Nodes of the cluster that the machines join. Nil Nodes are skipped.
	Nodes []*corev1.Node
	// Machines of all Nodes. Nil machines are skipped.
	Machines []*v1alpha1.Machine
	// Complete says that these are all there are. Without that nothing is decided.
	Complete bool
	// Frozen says that an API server was away and the caches may be old. Marks are taken
	// back then, and nothing else is done.
	Frozen bool
}

// UnmanagedPolicy says which Nodes are marked. The zero policy marks none.
type UnmanagedPolicy struct {
	// Timeout is the age at which a Node without a machine is marked. Machines that have
	// not joined, and may take longer, prolong it. Zero or less means never.
	Timeout time.Duration
}

// NodeEdit is what a [NodeWrite] does.
type NodeEdit string

// Edits of a Node.
const (
	// Mark adds the annotation [v1alpha1.NotManagedByMCM].
	Mark NodeEdit = "Mark"
	// Unmark removes it.
	Unmark NodeEdit = "Unmark"
	// RemoveFinalizer removes the machine finalizer, so that the Node can be deleted.
	RemoveFinalizer NodeEdit = "RemoveFinalizer"
)

// A NodeWrite is one edit of a Node. It is safe to lose and to repeat.
type NodeWrite struct {
	// Edit is what is done.
	Edit NodeEdit
	// Node as it was observed. It is read only.
	Node *corev1.Node
	// Message says why, for people.
	Message string
}

// Patch returns the patch of the edit. It changes nothing else of the Node, and fails for
// another Node of the same name.
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
	name := ""
	if w.Node != nil {
		name = w.Node.Name
	}
	return fmt.Sprintf("%s node %s: %s", w.Edit, name, w.Message)
}

const (
	// notManaged is the value of the annotation.
	notManaged = "1"
	// objection is how long a mark stands before the finalizer is removed, so that another
	// manager, whose machines are not seen here, can take it back.
	objection = 5 * time.Minute
)

// Reasons why nothing is done about a Node without exactly one machine.
const (
	// NodeTooYoung means that the machine of the Node may still appear.
	NodeTooYoung machinist.Reason = "NodeTooYoung"
	// NodeAmbiguous means that several machines may be that of the Node.
	NodeAmbiguous machinist.Reason = "NodeAmbiguous"
	// MarkTakenBack means that another client removed the mark.
	MarkTakenBack machinist.Reason = "MarkTakenBack"
	// NodeMarked means that the Node is marked and keeps its finalizer for now.
	NodeMarked machinist.Reason = "NodeMarked"
)

// UnmanagedState is since when [StepUnmanaged] has known the marks of Nodes. It need not be
// stored: a loss makes a finalizer stay longer. It is not changed by calls.
type UnmanagedState struct {
	marked map[types.UID]time.Time
}

// UnmanagedDecision is which Nodes are written.
type UnmanagedDecision struct {
	// Actions by the names of the Nodes. A write that fails is no reason to leave the others.
	Actions []NodeWrite
	// Holds are the Nodes that are neither a machine's nor marked yet, by their names.
	Holds []machinist.Hold
	// NextCheck is when to look again. Zero means when a Node or a machine changes.
	NextCheck time.Time
}

// String returns the decision in one line, for logs and golden tests.
func (d UnmanagedDecision) String() string { return line.Decision(d.Actions, "", "", d.Holds) }

// Unmanaged marks Nodes that no machine stands for, and takes the mark back when a machine
// appears. The machine of a Node is found as [nodeops.Index] says: by its label "node", or by
// its provider ID. A machine that is being deleted counts.
//
//   - A Node without a machine is marked once it is as old as the timeout.
//   - 5m after its mark was first seen, a Node without a machine also loses our finalizer, so
//     that it can be deleted. It keeps the finalizer while there is no machine at all.
//   - The mark of a Node with exactly one machine is taken back.
//   - A Node for which several machines are in question, or whose label names a machine that
//     exists, is left as it is.
//   - A mark that another client removed is not set again: the Node may belong to a manager
//     of another namespace.
//
// It takes time in proportion to the Nodes and the machines.
func StepUnmanaged(state UnmanagedState, in UnmanagedObservation, p UnmanagedPolicy, now time.Time) (UnmanagedState, UnmanagedDecision) {
	u := unmanaged{in: in, now: now, before: state, next: map[types.UID]time.Time{}}
	if !in.Complete {
		u.d.Holds = []machinist.Hold{{Subject: "nodes", Reason: MachinesUnusable, Message: "the lists may not be whole"}}
		return state, u.d
	}
	u.look(p)
	nodes := slices.DeleteFunc(slices.Clone(in.Nodes), func(n *corev1.Node) bool { return n == nil })
	slices.SortStableFunc(nodes, func(a, b *corev1.Node) int { return compareNames(a, b) })
	for _, node := range nodes {
		u.judge(node)
	}
	return UnmanagedState{marked: u.next}, u.d
}

// unmanaged is one decision in the making.
type unmanaged struct {
	in      UnmanagedObservation
	now     time.Time
	timeout time.Duration
	before  UnmanagedState
	next    map[types.UID]time.Time
	index   *nodeops.Index
	names   map[string]bool // of machines
	d       UnmanagedDecision
}

func (u *unmanaged) look(p UnmanagedPolicy) {
	u.timeout, u.index, u.names = p.Timeout, indexOf(u.in.Machines), make(map[string]bool, len(u.in.Machines))
	for _, m := range u.in.Machines {
		if m == nil {
			continue
		}
		u.names[m.Name] = true
		own := m.Spec.MachineConfiguration
		if own != nil && own.MachineCreationTimeout != nil && p.Timeout > 0 && m.Labels[v1alpha1.NodeLabelKey] == "" {
			u.timeout = max(u.timeout, own.MachineCreationTimeout.Duration)
		}
	}
}

// indexOf returns what finds the machine of a Node.
func indexOf(machines []*v1alpha1.Machine) *nodeops.Index {
	candidates := make([]nodeops.Candidate, 0, len(machines))
	for _, m := range machines {
		if m != nil {
			candidates = append(candidates, nodeops.Candidate{Name: m.Name, NodeName: m.Labels[v1alpha1.NodeLabelKey], ProviderID: m.Spec.ProviderID})
		}
	}
	return nodeops.NewIndex(candidates)
}

// judge decides about a Node.
func (u *unmanaged) judge(node *corev1.Node) {
	_, marked := node.Annotations[v1alpha1.NotManagedByMCM]
	match := u.index.Match(node)
	switch {
	case match.Found():
		if marked {
			u.write(Unmark, node, "machine "+match.Names[0]+" is its machine")
		}
	case match.Reason != nodeops.NoMatch:
		u.keep(node, marked)
		u.hold(node, NodeAmbiguous, fmt.Sprintf("%d machines may be its machine (%s)", len(match.Names), strings.Join(match.Names, ", ")), time.Time{})
	case u.names[node.Labels[v1alpha1.MachineNameLabelKey]]:
		u.keep(node, marked)
		u.hold(node, NodeAmbiguous, "its label names machine "+node.Labels[v1alpha1.MachineNameLabelKey]+", which names no Node or another one", time.Time{})
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
		u.hold(node, MarkTakenBack, "it has no machine, and another client removed the annotation "+v1alpha1.NotManagedByMCM, time.Time{})
	case u.now.Before(due):
		u.hold(node, NodeTooYoung, fmt.Sprintf("it has no machine, and is marked once it is %s old", u.timeout), due)
	case u.in.Frozen:
	default:
		u.write(Mark, node, fmt.Sprintf("it has no machine for %s", u.timeout))
	}
}

// release removes our finalizer from a Node that has been marked for long enough.
func (u *unmanaged) release(node *corev1.Node) {
	due := u.keep(node, true).Add(objection)
	switch {
	case !slices.Contains(node.Finalizers, v1alpha1.NodeFinalizerName) || u.in.Frozen:
	case u.now.Before(due):
		u.hold(node, NodeMarked, fmt.Sprintf("it keeps its finalizer until the mark has been seen for %s", objection), due)
	case len(u.names) == 0:
		u.hold(node, NodeMarked, "it keeps its finalizer: there is no machine at all, and the list may be empty by mistake", time.Time{})
	default:
		u.write(RemoveFinalizer, node, "it has no machine")
	}
}

// keep remembers a mark, and returns since when it is known.
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
	u.d.Actions = append(u.d.Actions, NodeWrite{Edit: edit, Node: node, Message: message})
}

func (u *unmanaged) hold(node *corev1.Node, reason machinist.Reason, message string, until time.Time) {
	u.d.Holds = append(u.d.Holds, machinist.Hold{Subject: "node " + node.Name, Reason: reason, Message: message, Until: until})
	u.d.NextCheck = machinist.Earliest(u.d.NextCheck, until)
}
