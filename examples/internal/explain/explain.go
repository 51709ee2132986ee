// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// kinds are the kinds that can be explained, by each of their names.
var kinds = map[string]string{
	"machinedeployment": deployments, deployments: deployments, "mcd": deployments,
	"machineset": sets, sets: sets, "mcs": sets,
	"machine": machines, machines: machines, "mc": machines,
	"machineclass": classes, classes: classes, "mcc": classes,
	"node": nodes, nodes: nodes, "no": nodes,
}

// Explain returns what the controller decides now about an object: KIND/NAME, or KIND/NAMESPACE/NAME. The
// kinds are machinedeployment, machineset, machine, machineclass and node.
func (v *View) Explain(ctx context.Context, subject string) (string, error) {
	o, err := v.find(ctx, subject)
	if err != nil {
		return "", err
	}
	d, err := v.decide(ctx, o)
	if err != nil {
		return "", fmt.Errorf("%s: %w", nameOf(o), err)
	}
	separator := "\n"
	if len(v.notes) > 0 { // the first one is the time of the dump
		separator = ", "
	}
	return nameOf(o) + separator + v.header() + d.text(v.Now()), nil
}

// decide returns the decision about an object.
func (v *View) decide(ctx context.Context, o metav1.Object) (verdict, error) {
	switch o := o.(type) {
	case *v1alpha1.MachineDeployment:
		return v.decideDeployment(ctx, o)
	case *v1alpha1.MachineSet:
		return v.decideSet(ctx, o)
	case *v1alpha1.Machine:
		return v.decideMachine(ctx, o)
	case *v1alpha1.MachineClass:
		return v.decideClass(ctx, o)
	case *corev1.Node:
		return v.decideNode(ctx, o)
	default:
		return verdict{}, fmt.Errorf("%T cannot be explained", o)
	}
}

// find returns the object that a text names.
func (v *View) find(ctx context.Context, subject string) (metav1.Object, error) {
	kind, name, _ := strings.Cut(subject, "/")
	resource := kinds[strings.ToLower(strings.TrimSpace(kind))]
	if resource == "" || name == "" || strings.Count(name, "/") > 1 {
		return nil, fmt.Errorf("%q: want KIND/NAME, with the kind machinedeployment, machineset, machine, machineclass or node", subject)
	}
	if err := v.reader.missing[resource]; err != nil {
		return nil, fmt.Errorf("%s: %w", subject, err)
	}
	namespace := v.Namespace
	if in, rest, found := strings.Cut(name, "/"); found {
		namespace, name = in, rest
	}
	var found []metav1.Object
	for _, o := range v.all(ctx, resource, namespace) {
		if o.GetName() == name {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%s does not exist", subject)
	case 1:
		return found[0], nil
	default:
		return nil, fmt.Errorf("%s: %s and %s have this name: write KIND/NAMESPACE/NAME", subject, nameOf(found[0]), nameOf(found[1]))
	}
}

// all returns the objects of a resource in a namespace, sorted. Those of a resource that cannot be read count
// as none: the header says it.
func (v *View) all(ctx context.Context, resource, namespace string) []metav1.Object {
	in := metav1.ObjectMeta{Namespace: namespace}
	found, err := v.reader.List(ctx, map[string]machinist.Object{
		deployments: &v1alpha1.MachineDeployment{ObjectMeta: in}, sets: &v1alpha1.MachineSet{ObjectMeta: in}, machines: &v1alpha1.Machine{ObjectMeta: in},
		classes: &v1alpha1.MachineClass{ObjectMeta: in}, nodes: &corev1.Node{},
	}[resource], "", "")
	all, _ := objects.All[metav1.Object](found, err)
	slices.SortFunc(all, func(a, b metav1.Object) int { return strings.Compare(keyOf(a).String(), keyOf(b).String()) })
	return all
}

// nameOf returns KIND/NAMESPACE/NAME.
func nameOf(o metav1.Object) string {
	kind := strings.ToLower(fmt.Sprintf("%T", o))
	return kind[strings.LastIndex(kind, ".")+1:] + "/" + strings.TrimPrefix(keyOf(o).String(), "/")
}

// text returns the decision as lines.
func (d verdict) text(now time.Time) string {
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "%-12s%s\n", label, strings.Join(strings.Fields(text), " ")) }
	if d.status != "" {
		line("status", d.status)
	}
	line("decides", d.decides)
	for _, h := range d.holds {
		until := ""
		if !h.Until.IsZero() {
			until = ", until " + stamp(h.Until)
		}
		line("waits for", h.String()+since(h.Since, now)+until)
	}
	if !d.next.IsZero() {
		line("next check", fmt.Sprintf("%s (in %s) at the latest", stamp(d.next), duration.HumanDuration(d.next.Sub(now))))
	}
	for _, s := range d.details {
		line("", s)
	}
	for _, s := range d.notes {
		line("note", s)
	}
	if d.plan == nil {
		return b.String()
	}
	fmt.Fprintf(&b, "drain of node/%s\n", d.plan.Node)
	var rows []fmt.Stringer
	for _, r := range d.plan.Rows {
		rows = append(rows, r)
	}
	for _, r := range d.plan.Volumes {
		rows = append(rows, r)
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "  %s\n", strings.Replace(r.String(), "; since "+stamp(now), "", 1)) // it is the first look
	}
	return b.String()
}

// since returns a text with a time and how long ago it is, or "".
func since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf(", since %s (%s)", stamp(t), duration.HumanDuration(now.Sub(t)))
}
