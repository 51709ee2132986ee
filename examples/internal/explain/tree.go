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

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// Tree returns the tree of an object, written as for [View.Explain], or of all machines if subject is empty:
// deployments, their sets, machines, Nodes, and the pods that a drain waits for.
func (v *View) Tree(ctx context.Context, subject string) (Report, error) {
	roots := v.roots(ctx)
	if subject != "" {
		o, err := v.find(ctx, subject)
		if err != nil {
			return Report{}, err
		}
		roots = []metav1.Object{o}
	}
	r := v.report()
	for _, o := range roots {
		r.Objects = append(r.Objects, v.branch(ctx, o))
	}
	r.tree = true
	return r, nil
}

// table returns the text of a tree. Each object has what it waits for and since when: its first hold, or its
// next action.
func (r Report) table() string {
	rows := [][]string{{"NAME", "STATE", "AGE", "TEMPLATE", "WAITS FOR"}}
	for _, o := range r.Objects {
		rows = append(rows, r.rows(o, "", "")...)
	}
	if len(r.Objects) == 0 {
		return Table(rows) + "no machines\n"
	}
	return Table(rows)
}

// roots returns the deployments, and the sets and machines whose controller cannot be read or does not exist.
func (v *View) roots(ctx context.Context) (roots []metav1.Object) {
	shown := map[types.UID]bool{}
	for _, kind := range []Kind{Deployments, Sets, Machines} {
		for _, o := range v.all(ctx, kind, v.Namespace) {
			if owner := metav1.GetControllerOfNoCopy(o); owner == nil || !shown[owner.UID] {
				roots = append(roots, o)
			}
			shown[o.GetUID()] = true
		}
	}
	return roots
}

// rows returns the rows of an object and its children. first begins its row, and rest those below.
func (r Report) rows(o Object, first, rest string) [][]string {
	name := o.id()
	if r.namespace != "" && o.Kind != "Pod" {
		name = strings.Replace(name, "/"+r.namespace+"/", "/", 1)
	}
	state := cmp.Or(o.Phase, o.Status)
	switch {
	case o.Replicas != nil:
		state = fmt.Sprintf("%d of %d available", o.Replicas.Available, o.Replicas.Desired)
	case o.Pods > 0:
		state += fmt.Sprintf(", pods: %d", o.Pods)
	}
	rows := [][]string{{first + name, state, age(o.Created, r.At), o.Class, o.waits(r.At)}}
	shown := slices.DeleteFunc(slices.Clone(o.Children), func(c Object) bool {
		return o.Kind == "MachineDeployment" && c.Replicas.Desired == 0 && len(c.Children) == 0 && c.waits(r.At) == ""
	})
	empty := len(o.Children) - len(shown)
	for i, below := range shown {
		if i == len(shown)-1 && empty == 0 {
			rows = append(rows, r.rows(below, rest+"└─ ", rest+"   ")...)
		} else {
			rows = append(rows, r.rows(below, rest+"├─ ", rest+"│  ")...)
		}
	}
	if empty > 0 {
		rows = append(rows, []string{fmt.Sprintf("%s└─ (%d old sets without machines)", rest, empty), "", "", "", ""})
	}
	return rows
}

// branch returns an object with its children.
func (v *View) branch(ctx context.Context, o metav1.Object) Object {
	d, err := v.decide(ctx, o)
	if err != nil {
		d.Error = err.Error()
	}
	plan := d.Drain
	d = d.identified(o)
	d.Drain = nil // its pods are below
	switch o := o.(type) {
	case *v1alpha1.MachineDeployment:
		owned, _ := objects.List[*v1alpha1.MachineSet](ctx, v.reader, runners.ByController, runners.ControllerKey(o.Namespace, o.UID))
		for _, s := range sorted(owned) {
			d.Children = append(d.Children, v.branch(ctx, s))
		}
	case *v1alpha1.MachineSet:
		owned, _ := objects.List[*v1alpha1.Machine](ctx, v.reader, runners.ByController, runners.ControllerKey(o.Namespace, o.UID))
		for _, m := range sorted(owned) {
			d.Children = append(d.Children, v.branch(ctx, m))
		}
	case *v1alpha1.Machine:
		if d.node != nil {
			d.Children = []Object{v.node(ctx, d.node, plan)}
		}
	case *corev1.Node:
		d = v.node(ctx, o, plan)
	}
	return d
}

// node returns a Node, with the pods that its drain waits for.
func (v *View) node(ctx context.Context, n *corev1.Node, plan *drain.Decision) Object {
	d := Object{Phase: nodeStatus(n)}.identified(n)
	on, err := objects.List[*corev1.Pod](ctx, v.reader, podsOfNode, n.Name)
	if err != nil {
		d.Error = "its pods were not read"
		return d
	}
	pods := map[types.UID]*corev1.Pod{}
	for _, p := range on {
		pods[p.UID] = p
	}
	if plan == nil {
		plan = &drain.Decision{}
	}
	for _, r := range plan.Rows {
		if p := pods[r.UID]; r.Action != drain.Ignore && p != nil {
			waits := machinist.Hold{Subject: "pod/" + r.Namespace + "/" + r.Name, Reason: r.Reason, Message: r.Message, Since: r.Since, Until: r.Until}
			d.Children = append(d.Children, Object{Phase: string(p.Status.Phase), WaitsFor: []Wait{{Hold: waits}}}.identified(p))
		}
	}
	d.Pods = len(on) - len(d.Children)
	return d
}

// nodeStatus returns the status of a Node in the words of kubectl.
func nodeStatus(n *corev1.Node) string {
	status := "NotReady"
	if ready := nodeops.GetCondition(n, corev1.NodeReady); ready != nil {
		status = map[corev1.ConditionStatus]string{corev1.ConditionTrue: "Ready", corev1.ConditionFalse: "NotReady", corev1.ConditionUnknown: "Unknown"}[ready.Status]
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

// waits returns the first hold and since when, or the next action.
func (d Object) waits(now time.Time) string {
	text := ""
	switch {
	case d.Error != "":
		text = "not known: " + d.Error
	case d.Kind == "Pod":
		text = strings.TrimPrefix(d.WaitsFor[0].String(), d.id()+": ")
	case len(d.WaitsFor) > 0:
		text = d.WaitsFor[0].String()
		if s := d.WaitsFor[0].Since; !s.IsZero() {
			text += " (" + age(s, now) + ")"
		}
		if more := len(d.WaitsFor) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	case d.Acts:
		text = "now: " + d.Decides
	}
	return strings.Join(strings.Fields(text), " ")
}

// age returns how long ago a time is, or "".
func age(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(t))
}

// sorted returns objects in the order of their creation and names.
func sorted[T metav1.Object](all []T) []T {
	return slices.SortedFunc(slices.Values(all), func(a, b T) int {
		return cmp.Or(a.GetCreationTimestamp().Time.Compare(b.GetCreationTimestamp().Time), strings.Compare(a.GetName(), b.GetName()))
	})
}

// Table returns rows of equally many cells as aligned columns. The last cell of a row may have several lines.
func Table(rows [][]string) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		text := strings.Join(row, "\t")
		_, _ = fmt.Fprintln(t, strings.ReplaceAll(text, "\n", "\n"+strings.Repeat("\t", len(row)-1)))
	}
	_ = t.Flush() // a Builder returns no error
	return trailing.ReplaceAllString(b.String(), "\n")
}

// trailing are the spaces of empty cells at the end of a line.
var trailing = regexp.MustCompile(` +\n`)
