// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Observation is what is known of a Node and its pods. On the zero Observation
// nothing is ever done.
type Observation struct {
	// Node is the object as last read. Nil means that it does not exist, if it
	// was looked for.
	Node *corev1.Node
	// Looked says that the Node was looked for.
	Looked bool
	// Pods are the pods on the Node, in any order. Nil ones and second copies do no
	// harm, nor do pods of other Nodes.
	Pods []*corev1.Pod
	// PodsComplete says that Pods is the whole list; without it nothing is done
	// and the drain never ends. A cache may lag behind: before it believes a
	// [Plan] that is done, a caller with a cache decides once more on a list that
	// was read from the API server after the cordon was seen, for a pod may have
	// been bound just before it.
	PodsComplete bool
	// Answers are what the API server said to earlier requests.
	Answers Answers
}

// Plan is what a drain does now, and what it waits for.
type Plan struct {
	// Cordon is the name of the Node to make unschedulable before anything else,
	// or empty.
	Cordon string
	// CordonUID is the UID of the Node to cordon; a successor of its name is not
	// meant. Empty means whichever has the name.
	CordonUID types.UID
	// Rows are the pods, by namespace, name and UID.
	Rows []Row
	// Done says that no pod is left to wait for, and none can come: the Node is
	// known to be cordoned, or gone, or the time of force has come.
	Done bool
	// NextCheck is when to decide again at the latest. Zero means when the Node or
	// a pod changes.
	NextCheck time.Time
	// Reason says why nothing can be planned; it is empty if something can.
	Reason Reason
}

// Row is what happens to one pod.
type Row struct {
	// Namespace, Name and UID of the pod. A later pod of the same name is another.
	Namespace, Name string
	UID             types.UID
	// Verdict is what is done.
	Verdict Verdict
	// Reason is why, as a stable word.
	Reason Reason
	// Message is why, in words for people; it may change.
	Message string
	// Until is when to look again, or zero for when the pod changes.
	Until time.Time
}

// String returns the row in one line.
func (r Row) String() string {
	s := fmt.Sprintf("%s %s/%s (%s)", r.Verdict, r.Namespace, r.Name, r.Reason)
	if r.Message != "" {
		s += ": " + r.Message
	}
	return s
}

// Holds returns the rows that the drain waits for, also those about which
// something is done now.
func (p Plan) Holds() []Row {
	return slices.DeleteFunc(slices.Clone(p.Rows), func(r Row) bool { return r.Verdict == Ignore })
}

// String returns the plan as text, a line for each thing.
func (p Plan) String() string {
	var b strings.Builder
	if p.Reason != "" {
		fmt.Fprintf(&b, "nothing (%s)\n", p.Reason)
	}
	if p.Cordon != "" {
		fmt.Fprintf(&b, "cordon node %s\n", p.Cordon)
	}
	for _, r := range p.Rows {
		fmt.Fprintln(&b, r)
	}
	switch {
	case p.Done:
		b.WriteString("done\n")
	case p.NextCheck.IsZero():
		b.WriteString("until something changes\n")
	default:
		fmt.Fprintf(&b, "until something changes, or %s\n", formatTime(p.NextCheck))
	}
	return b.String()
}

// compareRows orders what could be done with one pod, the more cautious first.
func compareRows(a, b Row) int {
	return cmp.Or(
		cmp.Compare(a.Verdict.strength(), b.Verdict.strength()), cmp.Compare(a.Verdict, b.Verdict),
		cmp.Compare(a.Reason, b.Reason), a.Until.Compare(b.Until), cmp.Compare(a.Message, b.Message),
	)
}

func samePod(a, b Row) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name && a.UID == b.UID
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
