// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type hashNamesIn struct {
	CollisionCount *int32
	Template       *template
}

type hashNamesOut struct{ HashLabel, NameSuffix string }

// hashNames does not compare the hash, which depends on the memory layout of MCM: sets are found by
// their template. The suffix follows from the hash by the same rule.
func hashNames(in hashNamesIn, out hashNamesOut) ([]string, error) {
	if err := same("suffix by the rule", out.NameSuffix, suffixModel(out.HashLabel)); err != nil {
		return nil, err
	}
	s, err := newSetOf(in.Template.object())
	if err != nil {
		return nil, err
	}
	return nil, same("name", "md-"+suffixModel(s.Labels[v1alpha1.DefaultMachineDeploymentUniqueLabelKey]), s.Name)
}

// suffixModel spells the first five digits of a hash without vowels.
func suffixModel(hash string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	out := ""
	for _, r := range hash[:min(5, len(hash))] {
		out += string(letters[int(r)%len(letters)])
	}
	return out
}

type templateEqualityIn struct{ A, B *template }

type templateEqualityOut struct{ EqualIgnoringHash bool }

// sidedLabels is the fault of MCM that has no number: it walks
// the labels of the template that has more of them, or of the second, and takes a
// label that the other one lacks for an empty one. So the order of the arguments
// matters.
const sidedLabels = "labels of one side"

func templateEquality(in templateEqualityIn, out templateEqualityOut) ([]string, error) {
	a, b := in.A.object(), in.B.object()
	got := rollout.EqualIgnoreHash(a, b)
	if got != rollout.EqualIgnoreHash(b, a) {
		return nil, errors.New("the order matters")
	}
	setA, errA := newSetOf(a)
	setB, errB := newSetOf(b)
	if errA != nil || errB != nil || got && setA.Name != setB.Name {
		return nil, errors.Join(errors.New("equal templates with different hashes"), errA, errB)
	}
	model := func(m mended) templateEqualityOut {
		x, y := a, b
		labels := walkedEqual(in.A.Labels, in.B.Labels)
		if m[sidedLabels] {
			labels = walkedEqual(in.A.Labels, in.B.Labels) && walkedEqual(in.B.Labels, in.A.Labels) && lackNone(in.A.Labels, in.B.Labels) && lackNone(in.B.Labels, in.A.Labels)
		}
		x.Labels, y.Labels = nil, nil
		return templateEqualityOut{labels && rollout.EqualIgnoreHash(x, y)}
	}
	return explain([]string{sidedLabels}, model, out, templateEqualityOut{got})
}

func walkedEqual(a, b map[string]string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for k, v := range b {
		if a[k] != v && k != v1alpha1.DefaultMachineDeploymentUniqueLabelKey {
			return false
		}
	}
	return true
}

// lackNone reports whether b has all labels of a, the hash apart.
func lackNone(a, b map[string]string) bool {
	want := maps.Clone(a)
	delete(want, v1alpha1.DefaultMachineDeploymentUniqueLabelKey)
	for k := range want {
		if _, ok := b[k]; !ok {
			return false
		}
	}
	return true
}

type setNewAnnotationsIn struct {
	bounded
	Exists        bool
	MDAnnotations map[string]string `json:"mdAnnotations"`
	MSAnnotations map[string]string `json:"msAnnotations"`
	NewRevision   string
}

type setNewAnnotationsOut struct {
	Changed       bool
	MSAnnotations map[string]string `json:"msAnnotations"`
}

func setNewAnnotations(in setNewAnnotationsIn, out setNewAnnotationsOut) ([]string, error) {
	d := in.deployment()
	s := &v1alpha1.MachineSet{}
	s.Annotations = maps.Clone(in.MSAnnotations)
	var got setNewAnnotationsOut
	got.MSAnnotations, got.Changed = rollout.NewSetAnnotations(d, s, in.NewRevision, in.Exists)
	if err := same("the set was changed", in.MSAnnotations, s.Annotations); err != nil {
		return nil, err
	}
	model := func(m mended) setNewAnnotationsOut { return newAnnotationsModel(in, m) }
	return explain([]string{"DS-19"}, model, out, got)
}

func newAnnotationsModel(in setNewAnnotationsIn, m mended) setNewAnnotationsOut {
	d := in.deployment()
	a, changed := annotationsModel(d, in.MSAnnotations, in.NewRevision, m)
	if changed != nil && !in.Exists {
		sized := map[string]string{
			"deployment.kubernetes.io/desired-replicas": strconv.Itoa(int(in.Replicas)),
			"deployment.kubernetes.io/max-replicas":     strconv.Itoa(int(in.Replicas + surgeOf(d))),
		}
		for k, v := range sized {
			if a[k] != v {
				a[k], *changed = v, true
			}
		}
	}
	return setNewAnnotationsOut{changed != nil && *changed, a}
}

func (in setNewAnnotationsIn) deployment() *v1alpha1.MachineDeployment {
	d := in.object()
	d.Annotations = maps.Clone(in.MDAnnotations)
	return d
}

// annotationsModel copies annotations, raises the revision and keeps the history.
// The second result is whether that is a change, nil if a revision cannot be
// read. Mended (DS-19), the history grows only when the revision does.
func annotationsModel(d *v1alpha1.MachineDeployment, have map[string]string, revision string, m mended) (map[string]string, *bool) {
	out := map[string]string{}
	maps.Copy(out, have)
	changed := false
	for k, v := range d.Annotations {
		if !notCopied[k] && out[k] != v {
			out[k], changed = v, true
		}
	}
	was, had := out["deployment.kubernetes.io/revision"]
	from, err := strconv.ParseInt(was, 10, 64)
	if err != nil && was != "" {
		return out, nil
	}
	to, err := strconv.ParseInt(revision, 10, 64)
	if err != nil {
		return out, nil
	}
	raised := from < to
	if raised {
		out["deployment.kubernetes.io/revision"], changed = revision, true
	}
	if had && changed && (raised || !m["DS-19"]) {
		remember(out, was)
	}
	return out, &changed
}

// remember appends a revision to the history.
func remember(annotations map[string]string, revision string) {
	const key = "deployment.kubernetes.io/revision-history"
	if first, _, _ := strings.Cut(annotations[key], ","); first == "" {
		annotations[key] = revision
		return
	}
	annotations[key] += "," + revision
}

// notCopied are the annotations that belong to one object alone.
var notCopied = map[string]bool{
	"kubectl.kubernetes.io/last-applied-configuration":  true,
	"deployment.kubernetes.io/revision":                 true,
	"deployment.kubernetes.io/revision-history":         true,
	"deployment.kubernetes.io/desired-replicas":         true,
	"deployment.kubernetes.io/max-replicas":             true,
	"deployment.machine.sapcloud.io/prefer-no-schedule": true,
	"safety.machine.sapcloud.io/unfreeze":               true,
	"node.machine.sapcloud.io/trigger-deletion-by-mcm":  true,
}

type revisionsIn struct{ Revisions []*string }

type revisionsOut struct{ Last, Max int64 }

func revisions(in revisionsIn, out revisionsOut) ([]string, error) {
	var list []*v1alpha1.MachineSet
	for i, r := range in.Revisions {
		s := &v1alpha1.MachineSet{}
		s.Namespace, s.Name = "ns", fmt.Sprint("s", i)
		if r != nil {
			s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: *r}
		}
		list = append(list, s, nil)
	}
	newSet, err := newSetOf(v1alpha1.MachineTemplateSpec{}, list...)
	if err != nil {
		return nil, err
	}
	next, _ := strconv.ParseInt(newSet.Annotations[v1alpha1.RevisionAnnotation], 10, 64)
	_, last := rollout.TopRevisions(list)
	return nil, same("revisions", out, revisionsOut{Max: next - 1, Last: last})
}

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
	sets := []*v1alpha1.MachineSet{newSet}
	for i, r := range in.OldRevisions {
		sets = append(sets, (&machineSet{
			Name: "old" + strconv.Itoa(i), Annotations: map[string]string{v1alpha1.RevisionAnnotation: r},
			Template: &template{Labels: map[string]string{"app": "w"}, ClassKind: "MachineClass", ClassName: "before"},
		}).object())
	}
	plan := decide(view(d, sets...))
	next, deployed := decided.After(newSet, plan.Actions), decided.After(d, plan.Actions)
	got := syncOut{Error: out.Error, MachineDeploymentRevisionAnnotation: deployed.Annotations[v1alpha1.RevisionAnnotation]}
	if next != newSet {
		got.Writes = append(got.Writes, setWrite)
	}
	if deployed != d {
		got.Writes = append(got.Writes, deploymentWrite)
	}
	out.Writes = in.effective(out)
	t := next.Spec.Template.Spec
	got.MachineSet = syncedSet{
		next.Annotations, t.Class.Kind, nil, t.NodeTemplateSpec.Labels, next.Spec.MinReadySeconds, next.Spec.AutoPreserveFailedMachineMax,
	}
	if c := t.MachineConfiguration; c != nil && c.MachineDrainTimeout != nil {
		got.MachineSet.DrainTimeoutSeconds = ptr.To(int(c.MachineDrainTimeout.Seconds()))
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
	o.Conditions = progressingOnly(plain(md.Status.Conditions))
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

type historyCleanupIn struct {
	OldMSs               []*machineSet
	RevisionHistoryLimit *int32
}

type historyCleanupOut struct {
	Deleted []string
	Error   *string
}

func historyCleanup(in historyCleanupIn, out historyCleanupOut) ([]string, error) {
	d := machineDeployment{Name: "md", Replicas: 1, Strategy: "RollingUpdate", MaxSurge: number(1), MaxUnavailable: number(0), Template: &template{ClassKind: "MachineClass", ClassName: "new", Labels: map[string]string{"app": "w"}}}.object()
	d.Spec.Paused, d.Spec.RevisionHistoryLimit = true, in.RevisionHistoryLimit
	plan := decide(deployment.Observation{Deployment: d, Sets: setsOf(in.OldMSs), Complete: true, Proven: true})
	return nil, same("deleted", out, historyCleanupOut{decided.Deletes(plan.Actions), out.Error})
}

type rollbackIn struct {
	MachineDeployment  machineDeployment
	MachineSets        []*machineSet
	RollbackToRevision int64
}

type rollbackOut struct {
	Annotations, NodeTemplateLabels, TemplateLabels map[string]string
	ClassName                                       string
	Events                                          []string
	RollbackToCleared                               bool
	Error                                           *string
}

func rollback(in rollbackIn, out rollbackOut) ([]string, error) {
	d := in.MachineDeployment.object()
	d.Spec.RollbackTo = &v1alpha1.RollbackConfig{Revision: in.RollbackToRevision}
	plan := decide(view(d, setsOf(in.MachineSets)...))
	next, events := decided.After(d, plan.Actions), reports(plan.Actions)
	for _, e := range plan.Events {
		events = append(events, e.String())
	}
	t := next.Spec.Template
	got := rollbackOut{next.Annotations, t.Spec.NodeTemplateSpec.Labels, t.Labels, t.Spec.Class.Name, events, next.Spec.RollbackTo == nil, out.Error}
	return explain(nil, func(m mended) rollbackOut { return rollbackModel(in, m) }, out, got)
}

// rollbackModel goes back to a set's template and annotations. The set of the
// present template takes part in propagation first.
func rollbackModel(in rollbackIn, _ mended) rollbackOut {
	const key = "deployment.kubernetes.io/revision"
	md := in.MachineDeployment
	sets := slices.Clone(in.MachineSets)
	slices.SortStableFunc(sets, func(a, b *machineSet) int {
		return cmp.Or(cmp.Compare(a.CreatedOffset, b.CreatedOffset), strings.Compare(a.Name, b.Name))
	})
	i := slices.IndexFunc(sets, func(s *machineSet) bool { return s.Template.ClassName == md.Template.ClassName })
	newSet := *sets[i]
	old := slices.Delete(slices.Clone(sets), i, i+1)
	var revisions []string
	for _, s := range old {
		revisions = append(revisions, s.Annotations[key])
	}
	synced := syncModel(syncIn{md, &newSet, revisions}, nil)
	newSet.Annotations = synced.MachineSet.Annotations
	o := rollbackOut{maps.Clone(md.Annotations), md.Template.NodeTemplateLabels, md.Template.Labels, md.Template.ClassName, nil, true, nil}
	if r := synced.MachineDeploymentRevisionAnnotation; r != "" {
		o.Annotations[key] = r
	}
	all := append(slices.Clip(old), &newSet)
	to := in.RollbackToRevision
	if to == 0 {
		if to = lastModel(all); to == 0 {
			o.Events = []string{"Warning DeploymentRollbackRevisionNotFound Unable to find last revision."}
			return o
		}
	}
	for _, s := range all {
		if n, err := revisionModel(s); err != nil || n != to {
			continue
		}
		if s == &newSet {
			o.Events = []string{`Warning DeploymentRollbackTemplateUnchanged The rollback revision contains the same template as current deployment "md"`}
			return o
		}
		o.ClassName, o.NodeTemplateLabels, o.TemplateLabels = s.Template.ClassName, s.Template.NodeTemplateLabels, s.Template.Labels
		maps.DeleteFunc(o.Annotations, func(k, _ string) bool { return !notCopied[k] })
		for k, v := range s.Annotations {
			if !notCopied[k] {
				o.Annotations[k] = v
			}
		}
		o.Events = []string{fmt.Sprintf("Normal DeploymentRollback Rolled back deployment %q to revision %d", md.Name, to)}
		return o
	}
	o.Events = []string{"Warning DeploymentRollbackRevisionNotFound Unable to find the revision to rollback to."}
	return o
}

func revisionModel(s *machineSet) (int64, error) {
	r := s.Annotations["deployment.kubernetes.io/revision"]
	if r == "" {
		return 0, nil
	}
	return strconv.ParseInt(r, 10, 64)
}

// lastModel is the second largest revision.
func lastModel(sets []*machineSet) int64 {
	var all []int64
	for _, s := range sets {
		if n, err := revisionModel(s); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	if len(all) < 2 {
		return 0
	}
	return all[len(all)-2]
}

type validationIn struct {
	MachineDeployment   machineDeployment
	SelectorMatchLabels map[string]string
}

type problem struct{ Type, Field, Detail string }

type validationOut struct{ Errors []problem }

// notNegative is what we say of a bound below 0, which MCM accepts.
const notNegative = "must not be negative"

func validation(in validationIn, out validationOut) ([]string, error) {
	d := in.MachineDeployment.object()
	d.Spec.Selector.MatchLabels = maps.Clone(in.SelectorMatchLabels)
	kinds := map[field.ErrorType]string{field.ErrorTypeRequired: "FieldValueRequired", field.ErrorTypeInvalid: "FieldValueInvalid"}
	var got validationOut
	var refused []string
	for _, e := range deployment.Validate(d) {
		if e.Detail == notNegative {
			refused = append(refused, e.Field)
			continue
		}
		got.Errors = append(got.Errors, problem{kinds[e.Type], e.Field, e.Detail})
	}
	if err := same("errors", out, got); err != nil || len(refused) == 0 {
		return nil, errors.Join(err, same("negative bounds", negative(d.Spec.Strategy), refused))
	}
	return []string{"DS-14"}, same("negative bounds", negative(d.Spec.Strategy), refused)
}

// negative returns the fields of bounds that are below 0.
func negative(s v1alpha1.MachineDeploymentStrategy) (fields []string) {
	u, path := v1alpha1.UpdateConfiguration{}, ""
	switch {
	case s.Type == v1alpha1.RollingUpdateMachineDeploymentStrategyType && s.RollingUpdate != nil:
		u, path = s.RollingUpdate.UpdateConfiguration, "spec.strategy.rollingUpdate"
	case s.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType && s.InPlaceUpdate != nil:
		u, path = s.InPlaceUpdate.UpdateConfiguration, "spec.strategy.inPlaceUpdate"
	}
	below := func(v *intstr.IntOrString) bool {
		if v == nil {
			return false
		}
		number, percent := strings.CutSuffix(v.String(), "%")
		n, err := strconv.ParseInt(number, 10, 32)
		return err == nil && n < 0 && percent == (v.Type == intstr.String)
	}
	if below(u.MaxUnavailable) {
		fields = append(fields, path+".maxUnavailable")
	}
	if below(u.MaxSurge) {
		fields = append(fields, path+".maxSurge")
	}
	return fields
}
