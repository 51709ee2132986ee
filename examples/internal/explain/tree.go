// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// branch is an object of the tree.
type branch struct {
	name, state, template, waits string
	age                          string
	below                        []branch
}

// Tree returns the tree of an object, written as for [View.Explain], or of all machines if subject is empty:
// deployments, their sets, machines, Nodes, and the pods that a drain waits for. Each has what it waits for
// and since when: its first hold, or its next action.
func (v *View) Tree(ctx context.Context, subject string) (string, error) {
	roots := v.roots(ctx)
	if subject != "" {
		o, err := v.find(ctx, subject)
		if err != nil {
			return "", err
		}
		roots = []metav1.Object{o}
	}
	var b strings.Builder
	b.WriteString(v.header())
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tSTATE\tAGE\tTEMPLATE\tWAITS FOR")
	for _, o := range roots {
		v.branch(ctx, o).write(table, "", "")
	}
	if _ = table.Flush(); len(roots) == 0 {
		b.WriteString("no machines\n")
	}
	return spaces.ReplaceAllString(b.String(), "\n"), nil
}

// spaces are those at the end of a line, which a table has for an empty cell.
var spaces = regexp.MustCompile(` +\n`)

// roots returns the deployments, and the sets and machines whose controller cannot be read or does not exist.
func (v *View) roots(ctx context.Context) (roots []metav1.Object) {
	shown := map[types.UID]bool{}
	for _, resource := range []string{deployments, sets, machines} {
		for _, o := range v.all(ctx, resource, v.Namespace) {
			if owner := metav1.GetControllerOfNoCopy(o); owner == nil || !shown[owner.UID] {
				roots = append(roots, o)
			}
			shown[o.GetUID()] = true
		}
	}
	return roots
}

// shortName returns KIND/NAME if all objects are of one namespace.
func (v *View) shortName(o metav1.Object) string {
	if v.Namespace == "" {
		return nameOf(o)
	}
	return strings.Replace(nameOf(o), "/"+v.Namespace+"/", "/", 1)
}

// write writes the lines of a branch. first begins its line, and rest those below.
func (b branch) write(table *tabwriter.Writer, first, rest string) {
	_, _ = fmt.Fprintf(table, "%s%s\t%s\t%s\t%s\t%s\n", first, b.name, b.state, b.age, b.template, b.waits)
	for i, below := range b.below {
		if i == len(b.below)-1 {
			below.write(table, rest+"└─ ", rest+"   ")
		} else {
			below.write(table, rest+"├─ ", rest+"│  ")
		}
	}
}

// branch returns the branch of an object.
func (v *View) branch(ctx context.Context, o metav1.Object) branch {
	d, err := v.decide(ctx, o)
	b := branch{name: v.shortName(o), age: v.age(o), state: d.status, waits: d.waits(v.Now())}
	if err != nil {
		b.waits = "not known: " + err.Error()
	}
	switch o := o.(type) {
	case *v1alpha1.MachineDeployment:
		b.state, b.template = fmt.Sprintf("%d of %d available", o.Status.AvailableReplicas, o.Spec.Replicas), o.Spec.Template.Spec.Class.Name
		owned, _ := objects.List[*v1alpha1.MachineSet](ctx, v.reader, runners.ByController, runners.ControllerKey(o.Namespace, o.UID))
		empty := 0
		for _, s := range sorted(owned) {
			below := v.branch(ctx, s)
			if s.Spec.Replicas == 0 && len(below.below) == 0 && below.waits == "" {
				empty++
				continue
			}
			b.below = append(b.below, below)
		}
		if empty > 0 {
			b.below = append(b.below, branch{name: fmt.Sprintf("(%d old sets without machines)", empty)})
		}
	case *v1alpha1.MachineSet:
		b.state, b.template = fmt.Sprintf("%d of %d available", o.Status.AvailableReplicas, o.Spec.Replicas), o.Spec.Template.Spec.Class.Name
		owned, _ := objects.List[*v1alpha1.Machine](ctx, v.reader, runners.ByController, runners.ControllerKey(o.Namespace, o.UID))
		for _, m := range sorted(owned) {
			b.below = append(b.below, v.branch(ctx, m))
		}
	case *v1alpha1.Machine:
		b.state, b.template = cmp.Or(string(o.Status.CurrentStatus.Phase), "new"), o.Spec.Class.Name
		if d.node != nil {
			b.below = []branch{v.node(ctx, d.node, d.plan)}
		}
	case *corev1.Node:
		b = v.node(ctx, o, d.plan)
	}
	return b
}

// node returns the branch of a Node, with the pods that its drain waits for.
func (v *View) node(ctx context.Context, n *corev1.Node, plan *drain.Decision) branch {
	b := branch{name: nameOf(n), state: nodeStatus(n), age: v.age(n)}
	on, err := objects.List[*corev1.Pod](ctx, v.reader, podsOfNode, n.Name)
	if err != nil {
		b.waits = "its pods were not read"
		return b
	}
	left, phases := len(on), map[types.UID]string{}
	for _, p := range on {
		phases[p.UID] = string(p.Status.Phase)
	}
	if plan == nil {
		plan = &drain.Decision{}
	}
	for _, r := range plan.Rows {
		if r.Action != drain.Ignore {
			left--
			waits := strings.TrimSuffix(string(r.Reason)+": "+r.Message, ": ")
			b.below = append(b.below, branch{name: "pod/" + r.Namespace + "/" + r.Name, state: phases[r.UID], waits: waits})
		}
	}
	if left > 0 {
		b.state += fmt.Sprintf(", pods: %d", left)
	}
	return b
}

// nodeStatus returns the status of a Node in the words of kubectl.
func nodeStatus(n *corev1.Node) string {
	ready := corev1.ConditionFalse
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			ready = c.Status
		}
	}
	status := map[corev1.ConditionStatus]string{corev1.ConditionTrue: "Ready", corev1.ConditionFalse: "NotReady", corev1.ConditionUnknown: "Unknown"}[ready]
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

// waits returns the first hold and since when, or the next action.
func (d verdict) waits(now time.Time) string {
	text := ""
	switch {
	case len(d.holds) > 0:
		text = d.holds[0].String()
		if s := d.holds[0].Since; !s.IsZero() {
			text += " (" + duration.HumanDuration(now.Sub(s)) + ")"
		}
		if more := len(d.holds) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	case d.acts:
		text = "now: " + d.decides
	}
	return strings.Join(strings.Fields(text), " ")
}

func (v *View) age(o metav1.Object) string {
	created := o.GetCreationTimestamp().Time
	if created.IsZero() {
		return ""
	}
	return duration.HumanDuration(v.Now().Sub(created))
}

// sorted returns objects in the order of their creation and names.
func sorted[T metav1.Object](all []T) []T {
	return slices.SortedFunc(slices.Values(all), func(a, b T) int {
		return cmp.Or(a.GetCreationTimestamp().Time.Compare(b.GetCreationTimestamp().Time), strings.Compare(a.GetName(), b.GetName()))
	})
}
