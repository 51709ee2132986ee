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

	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Kind is a kind of objects that can be explained.
type Kind struct {
	// Names are those that users write. The first is the one of messages.
	Names []string
	// New returns an object with nothing but metadata.
	New func(metav1.ObjectMeta) metav1.Object

	resource string
}

// The kinds of objects that commands are about.
var (
	Deployments = Kind{[]string{"machinedeployment", deployments, "mcd"}, func(m metav1.ObjectMeta) metav1.Object {
		return &v1alpha1.MachineDeployment{ObjectMeta: m}
	}, deployments}
	Sets     = Kind{[]string{"machineset", sets, "mcs"}, func(m metav1.ObjectMeta) metav1.Object { return &v1alpha1.MachineSet{ObjectMeta: m} }, sets}
	Machines = Kind{[]string{"machine", machines, "mc"}, func(m metav1.ObjectMeta) metav1.Object { return &v1alpha1.Machine{ObjectMeta: m} }, machines}
	Classes  = Kind{[]string{"machineclass", classes, "mcc"}, func(m metav1.ObjectMeta) metav1.Object { return &v1alpha1.MachineClass{ObjectMeta: m} }, classes}
	Nodes    = Kind{[]string{"node", nodes, "no"}, func(m metav1.ObjectMeta) metav1.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	}, nodes}
)

// Has reports whether users name the kind so, also with its group.
func (k Kind) Has(name string) bool {
	return slices.Contains(k.Names, strings.TrimSuffix(strings.ToLower(strings.TrimSpace(name)), "."+v1alpha1.GroupName))
}

// Explain returns what the controller decides now about an object: KIND/NAME, or KIND/NAMESPACE/NAME. The
// kinds are machinedeployment, machineset, machine, machineclass and node.
func (v *View) Explain(ctx context.Context, subject string) (Report, error) {
	o, err := v.find(ctx, subject)
	if err != nil {
		return Report{}, err
	}
	d, err := v.decide(ctx, o)
	if err != nil {
		return Report{}, fmt.Errorf("%s: %w", nameOf(o), err)
	}
	return v.report(d.identified(o)), nil
}

// decide returns the decision about an object.
func (v *View) decide(ctx context.Context, o metav1.Object) (Object, error) {
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
		return Object{}, fmt.Errorf("%T cannot be explained", o)
	}
}

// find returns the object that a text names.
func (v *View) find(ctx context.Context, subject string) (metav1.Object, error) {
	kind, name, _ := strings.Cut(subject, "/")
	kinds := []Kind{Deployments, Sets, Machines, Classes, Nodes}
	of := slices.IndexFunc(kinds, func(k Kind) bool { return k.Has(kind) })
	if of < 0 || name == "" || strings.Count(name, "/") > 1 {
		return nil, fmt.Errorf("%q: want KIND/NAME, with the kind machinedeployment, machineset, machine, machineclass or node", subject)
	}
	if err := v.reader.missing[kinds[of].resource]; err != nil {
		return nil, fmt.Errorf("%s: %w", subject, err)
	}
	namespace := v.Namespace
	if in, rest, found := strings.Cut(name, "/"); found {
		namespace, name = in, rest
	}
	var found []metav1.Object
	for _, o := range v.all(ctx, kinds[of], namespace) {
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

// all returns the objects of a kind in a namespace, sorted. Those of a resource that cannot be read count as
// none: the header says it.
func (v *View) all(ctx context.Context, kind Kind, namespace string) []metav1.Object {
	found, err := v.reader.List(ctx, kind.New(metav1.ObjectMeta{Namespace: namespace}), "", "")
	all, _ := objects.All[metav1.Object](found, err)
	slices.SortFunc(all, func(a, b metav1.Object) int { return strings.Compare(keyOf(a).String(), keyOf(b).String()) })
	return all
}

// nameOf returns KIND/NAMESPACE/NAME.
func nameOf(o metav1.Object) string { return Object{}.identified(o).id() }

// text returns what is decided about an object as lines.
func (d Object) text(now time.Time) string {
	var b strings.Builder
	line := func(label, text string) { fmt.Fprintf(&b, "%-12s%s\n", label, strings.Join(strings.Fields(text), " ")) }
	if d.Status != "" {
		line("status", d.Status)
	}
	line("decides", d.Decides)
	for _, h := range d.WaitsFor {
		until := ""
		if !h.Until.IsZero() {
			until = ", until " + stamp(h.Until)
		}
		line("waits for", h.String()+since(h.Since, now)+until)
	}
	if !d.NextCheck.IsZero() {
		line("next check", fmt.Sprintf("%s (in %s) at the latest", stamp(d.NextCheck), duration.HumanDuration(d.NextCheck.Sub(now))))
	}
	for _, s := range d.Details {
		line("", s)
	}
	for _, s := range d.Notes {
		line("note", s)
	}
	if d.Drain == nil {
		return b.String()
	}
	fmt.Fprintf(&b, "drain of node/%s\n", d.Drain.Node)
	var rows []fmt.Stringer
	for _, r := range d.Drain.Rows {
		rows = append(rows, r)
	}
	for _, r := range d.Drain.Volumes {
		rows = append(rows, r)
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "  %s\n", r)
	}
	return b.String()
}

// since returns a text with a time and how long ago it is, or "".
func since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf(", since %s (%s)", stamp(t), age(t, now))
}
