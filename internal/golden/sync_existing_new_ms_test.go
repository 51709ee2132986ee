// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type syncIn struct {
	MachineDeployment machineDeployment
	NewMS             *machineSet
	OldRevisions      []string
}

type syncedSet struct {
	Annotations                                   map[string]string
	ClassKind                                     string
	DrainTimeoutSeconds                           *int
	NodeTemplateLabels                            map[string]string
	MinReadySeconds, AutoPreserveFailedMachineMax int32
}

type syncOut struct {
	Conditions                          []condition
	MachineDeploymentRevisionAnnotation string
	MachineSet                          syncedSet
	Writes                              []string
	Error                               *string
}

func syncExistingNewSet(in syncIn, out syncOut) ([]string, error) {
	d, newSet := in.MachineDeployment.object(), in.NewMS.object()
	seen := deployment.Observation{Deployment: d, Sets: []*v1alpha1.MachineSet{newSet}, Complete: true, Proven: true}
	for i, r := range in.OldRevisions {
		seen.Sets = append(seen.Sets, (&machineSet{
			Name: "old" + strconv.Itoa(i), Annotations: map[string]string{v1alpha1.RevisionAnnotation: r},
			Template: &template{Labels: map[string]string{"app": "w"}, ClassKind: "MachineClass", ClassName: "before"},
		}).object())
	}
	for _, s := range seen.Sets {
		seen.Machines = slices.Concat(seen.Machines, machinesFor(s))
	}
	plan := deployment.Decide(seen, deployment.Policy{}, now)
	got := syncOut{Error: out.Error}
	after := newSet
	got.MachineDeploymentRevisionAnnotation = d.Annotations[v1alpha1.RevisionAnnotation]
	for _, a := range plan.Actions {
		u, _ := a.(machinist.Update)
		switch o := u.Object.(type) {
		case *v1alpha1.MachineSet:
			if o.UID == newSet.UID {
				after = o
				got.Writes = append(got.Writes, setWrite)
			}
		case *v1alpha1.MachineDeployment:
			got.MachineDeploymentRevisionAnnotation = o.Annotations[v1alpha1.RevisionAnnotation]
			got.Writes = append(got.Writes, deploymentWrite)
		}
	}
	out.Writes = in.effective(out)
	t := after.Spec.Template.Spec
	got.MachineSet = syncedSet{
		after.Annotations, t.Class.Kind, nil, t.NodeTemplateSpec.Labels, after.Spec.MinReadySeconds, after.Spec.AutoPreserveFailedMachineMax,
	}
	if c := t.MachineConfiguration; c != nil && c.MachineDrainTimeout != nil {
		got.MachineSet.DrainTimeoutSeconds = new(int(c.MachineDrainTimeout.Seconds()))
	}
	got.Conditions = progressingOnly(plain(plan.Status.Conditions))
	out.Conditions = progressingOnly(out.Conditions)
	found := len(got.Conditions) > len(progressingOnly(in.MachineDeployment.Status.Conditions))
	if plan.WriteStatus && (found || slices.Contains(got.Writes, deploymentWrite)) {
		got.Writes = append(got.Writes, statusWrite)
	}
	return explain([]string{"DS-19", "class kind"}, func(m mended) syncOut { return syncModel(in, m) }, out, got)
}

// What is written, as the vectors say it. That a roll-out writes the status for its
// counters is no part of these vectors.
const (
	setWrite        = "update machinesets new"
	deploymentWrite = "update machinedeployments md"
	statusWrite     = "update machinedeployments/status md"
)

// effective returns the writes of a vector without an update of the deployment that
// changes nothing: MCM writes one before each new condition. The
// second write of the deployment is that of its status.
func (in syncIn) effective(out syncOut) (writes []string) {
	updates := 0
	for _, w := range out.Writes {
		switch {
		case !strings.HasPrefix(w, "update machinedeployments"):
			writes = append(writes, w)
		case updates > 0 || strings.Contains(w, "status"):
			writes = append(writes, statusWrite)
		case in.MachineDeployment.Annotations[v1alpha1.RevisionAnnotation] != out.MachineDeploymentRevisionAnnotation:
			writes = append(writes, deploymentWrite)
			updates++
		default:
			updates++
		}
	}
	return writes
}

func progressingOnly(list []condition) []condition {
	return slices.DeleteFunc(slices.Clone(list), func(c condition) bool { return c.Type != "Progressing" })
}

// syncModel is what an existing new set takes over. Mended (DS-19), the history
// grows only when the revision does. Mended (class kind), a template that no
// machine can be made from is refused.
func syncModel(in syncIn, m mended) syncOut {
	md, ms := in.MachineDeployment, in.NewMS
	if kind := md.Template.parts().kind; m["class kind"] && kind != v1alpha1.MachineClassKind {
		return in.refused(kind)
	}
	revision := 0
	for _, r := range in.OldRevisions {
		if n, err := strconv.Atoi(r); err == nil {
			revision = max(revision, n)
		}
	}
	was, want := ms.Template.parts(), md.Template.parts()
	annotations, changed := annotationsModel(md.object(), ms.Annotations, strconv.Itoa(revision+1), m)
	anything := changed != nil && *changed
	for _, differs := range []bool{!equal(was.labels, want.labels), !equal(was.drain, want.drain)} {
		if differs && changed != nil {
			anything = true
			if !m["DS-19"] {
				again(annotations)
			}
		}
	}
	o := syncOut{MachineDeploymentRevisionAnnotation: md.Annotations["deployment.kubernetes.io/revision"]}
	for _, c := range md.Status.Conditions {
		o.Conditions = append(o.Conditions, condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message})
	}
	o.Conditions = progressingOnly(o.Conditions)
	anything = anything || was.kind != want.kind || md.MinReadySeconds != 0 || md.AutoPreserveFailedMachineMax != ms.AutoPreserveFailedMachineMax
	if anything {
		o.Writes = []string{setWrite}
		o.MachineSet = syncedSet{annotations, want.kind, want.drain, want.labels, md.MinReadySeconds, md.AutoPreserveFailedMachineMax}
		return o
	}
	o.MachineSet = syncedSet{maps.Clone(ms.Annotations), was.kind, was.drain, was.labels, 0, ms.AutoPreserveFailedMachineMax}
	if r, ok := ms.Annotations["deployment.kubernetes.io/revision"]; ok && r != o.MachineDeploymentRevisionAnnotation {
		o.MachineDeploymentRevisionAnnotation = r
		o.Writes = []string{deploymentWrite, statusWrite}
	}
	if len(o.Conditions) == 0 {
		o.Writes = append(slices.DeleteFunc(o.Writes, func(w string) bool { return w == statusWrite }), statusWrite)
		o.Conditions = []condition{{Type: "Progressing", Status: "True", Reason: "FoundNewMachineSet", Message: `Found new machine set "` + ms.Name + `"`}}
	}
	return o
}

// refused returns the result for a template with a class of another kind.
func (in syncIn) refused(kind string) syncOut {
	was := in.NewMS.Template.parts()
	o := syncOut{
		MachineDeploymentRevisionAnnotation: in.MachineDeployment.Annotations["deployment.kubernetes.io/revision"],
		MachineSet:                          syncedSet{maps.Clone(in.NewMS.Annotations), was.kind, was.drain, was.labels, 0, in.NewMS.AutoPreserveFailedMachineMax},
		Conditions: []condition{{
			Type: "Progressing", Status: "False", Reason: "InvalidSpec",
			Message: `spec.template.spec.class.kind: Unsupported value: "` + kind + `": supported values: "MachineClass"`,
		}},
	}
	if !slices.ContainsFunc(in.MachineDeployment.Status.Conditions, func(c condition) bool { return c.Type == "Progressing" }) {
		o.Writes = []string{statusWrite}
	}
	return o
}

// again is the history that grows with a further change.
func again(annotations map[string]string) {
	if r, ok := annotations["deployment.kubernetes.io/revision"]; ok {
		remember(annotations, r)
	}
}

type templateParts struct {
	kind   string
	labels map[string]string
	drain  *int
}

func (g *template) parts() templateParts {
	if g == nil {
		return templateParts{kind: "MachineClass"}
	}
	return templateParts{g.ClassKind, g.NodeTemplateLabels, g.DrainTimeoutSeconds}
}
