// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type scalingEventOut struct {
	IsScalingEvent, IsSaturated bool
	ActiveOrLatest              *string
	Error                       *string
}

func scalingEvent(in world, out scalingEventOut) ([]string, error) {
	d, newSet := in.MachineDeployment.object(), in.NewMS.object()
	found, others := rollout.FindSets(d, append(slices.Clip(setsOf(in.OldMSs)), newSet))
	s := rollout.ScalingOf(d, found, others)
	got := scalingEventOut{IsScalingEvent: s.Due, IsSaturated: s.Saturated, Error: out.Error}
	if s.Alone != nil {
		got.ActiveOrLatest = &s.Alone.Name
	}
	if err := same("new set", nameOf(newSet), nameOf(found)); err != nil {
		return nil, err
	}
	return nil, same("scaling", out, got)
}

func nameOf(s *v1alpha1.MachineSet) string {
	if s == nil {
		return ""
	}
	return s.Name
}

type scaledSet struct {
	Name                                             string
	Replicas                                         int32
	DesiredReplicasAnnotation, MaxReplicasAnnotation *string
}

type scaleOut struct {
	Events, Writes []string
	MachineSets    []scaledSet
	Error          *string
}

// sized is what a change of the replicas comes to.
type sized struct {
	Replicas map[string]int32
	Events   []string
}

func scale(in world, out scaleOut) ([]string, error) {
	d, newSet, old := in.MachineDeployment.object(), in.NewMS.object(), setsOf(in.OldMSs)
	t := scaleModel(in, nil)
	if err := same("the model does not reproduce the vector", out, t.out()); err != nil {
		return nil, err
	}
	ours := sized{Replicas: map[string]int32{}}
	for _, s := range t.sets {
		ours.Replicas[s.name] = s.was
	}
	targets := rollout.ScalingOf(d, newSet, old).Targets
	for _, x := range targets {
		ours.Replicas[x.Set.Name] = x.To
		if e := scaledEvent(x.Set.Name, x.Set.Spec.Replicas, x.To); e != "" {
			ours.Events = append(ours.Events, e)
		}
	}
	if err := scalePlan(in, ours.Replicas, targets); err != nil {
		return nil, err
	}
	return explain([]string{"DS-12", "DS-13", "DS-14"}, func(m mended) sized { return scaleModel(in, m).sized() }, t.sized(), ours)
}

// scaledEvent returns the Event of a set that is scaled, or "" if its size does not change.
func scaledEvent(name string, from, to int32) string {
	switch {
	case to > from:
		return fmt.Sprintf("Normal ScalingMachineSet Scaled up machine set %s to %d", name, to)
	case to < from:
		return fmt.Sprintf("Normal ScalingMachineSet Scaled down machine set %s to %d", name, to)
	default:
		return ""
	}
}

// scalePlan holds the whole plan against the targets: it takes no set further
// than its target, and writes down what each set was sized for. A set with unavailable
// machines gives those for others, and all sets together go no further.
func scalePlan(in world, targets map[string]int32, list []rollout.SetSize) error {
	seen := in.observation()
	plan := decide(seen)
	d := seen.Deployment
	newSet, old := rollout.FindSets(d, seen.Sets)
	if !d.Spec.Paused && !rollout.ScalingOf(d, newSet, old).Due || d.Spec.Strategy.Type != v1alpha1.RollingUpdateMachineDeploymentStrategyType {
		return nil // there is a roll-out instead, or as well (DS-3)
	}
	written := map[string]*v1alpha1.MachineSet{}
	for _, a := range plan.Actions {
		u, _ := a.(machinist.Update)
		if s, ok := u.Object.(*v1alpha1.MachineSet); ok {
			written[s.Name] = s
			report := ""
			if u.Report != nil {
				report = u.Report.String()
			}
			if err := same("event of set "+s.Name, scaledEvent(s.Name, u.Before.(*v1alpha1.MachineSet).Spec.Replicas, s.Spec.Replicas), report); err != nil {
				return err
			}
		}
	}
	var sum, least int32
	for _, s := range seen.Sets {
		to, err := plan.Target(s.UID)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		was, target := s.Spec.Replicas, targets[s.Name]
		lowest := min(was, target, d.Spec.Replicas)
		sum, least = sum+to.To, least+lowest
		own := slices.DeleteFunc(slices.Clone(seen.Machines), func(m *v1alpha1.Machine) bool { return !metav1.IsControlledBy(m, s) })
		c := members.Count(s, own, nil, now)
		lowest -= int32(c.Machines - c.Available)
		if to.To < lowest || to.To > max(was, target) {
			return fmt.Errorf("%s goes from %d to %d, and not towards %d", s.Name, was, to.To, target)
		}
		if w := written[s.Name]; w != nil {
			s = w
		}
		sized := func(t rollout.SetSize) bool { return t.Set.Name == s.Name }
		want := strconv.Itoa(int(d.Spec.Replicas))
		if slices.ContainsFunc(list, sized) && s.Annotations[v1alpha1.DesiredReplicasAnnotation] != want {
			return fmt.Errorf("%s is not said to be sized for %s", s.Name, want)
		}
	}
	if sum < least {
		return fmt.Errorf("the sets go to %d machines, and not towards %d", sum, least)
	}
	return nil
}

// scaleModel sizes sets for a number of replicas.
//
//	DS-12  a cut lets no set grow, does not divide by zero, and arrives
//	DS-13  growth goes to the new set even if it has no replicas, or else to the youngest
//	DS-14  a negative surge is none
func scaleModel(in world, m mended) *scaling {
	md := in.MachineDeployment
	surge := surgeOf(md.object())
	if m["DS-14"] {
		surge = max(0, surge)
	}
	t := &scaling{desired: md.Replicas, surge: surge, written: surgeOf(md.object())}
	var newSet *scalingSet
	for _, s := range in.OldMSs {
		t.sets = append(t.sets, newScalingSet(s))
	}
	slices.SortStableFunc(t.sets, func(a, b *scalingSet) int { return -a.compareAge(b) }) // youngest first
	old := slices.Clone(t.sets)
	if in.NewMS != nil {
		newSet = newScalingSet(in.NewMS)
		t.sets = append(t.sets, newSet)
	}
	active := slices.DeleteFunc(slices.Clone(t.sets), func(s *scalingSet) bool { return s.replicas == 0 })
	var one *scalingSet
	switch {
	case len(active) == 1:
		one = active[0]
	case len(active) == 0 && newSet != nil:
		one = newSet
	case len(active) == 0 && len(old) > 0:
		one = old[0]
	}
	switch {
	case one != nil:
		t.size(one, t.desired, cmp.Compare(t.desired, one.replicas))
	case len(active) == 0:
	case newSet != nil && newSet.saturated(t.desired):
		for _, s := range active {
			if s != newSet {
				t.size(s, 0, -1)
			}
		}
	case md.Strategy == "RollingUpdate":
		t.share(active, newSet, old, md.Status.Replicas, m)
	}
	return t
}

type scalingSet struct {
	name          string
	created       int
	was, replicas int32
	available     int32
	desired, most *string
}

func newScalingSet(s *machineSet) *scalingSet {
	r := &scalingSet{name: s.Name, created: s.CreatedOffset, was: s.Replicas, replicas: s.Replicas, available: s.Status.AvailableReplicas}
	if v, ok := s.Annotations["deployment.kubernetes.io/desired-replicas"]; ok {
		r.desired = &v
	}
	if v, ok := s.Annotations["deployment.kubernetes.io/max-replicas"]; ok {
		r.most = &v
	}
	return r
}

func (s *scalingSet) compareAge(o *scalingSet) int {
	return cmp.Or(cmp.Compare(s.created, o.created), strings.Compare(s.name, o.name))
}

func (s *scalingSet) saturated(want int32) bool {
	if s.desired == nil {
		return false
	}
	n, err := strconv.ParseInt(*s.desired, 10, 32)
	return err == nil && int32(n) == want && s.replicas == want && s.available == want
}

type scaling struct {
	desired, surge, written int32
	sets                    []*scalingSet
	events, writes          []string
}

// size writes a size and what it is for.
func (t *scaling) size(s *scalingSet, to int32, direction int) {
	desired, most := strconv.Itoa(int(t.desired)), strconv.Itoa(int(t.desired+t.written))
	if s.replicas == to && s.desired != nil && *s.desired == desired && s.most != nil && *s.most == most {
		return
	}
	if s.replicas != to {
		word := "up"
		if direction < 0 {
			word = "down"
		}
		t.events = append(t.events, fmt.Sprintf("Normal ScalingMachineSet Scaled %s machine set %s to %d", word, s.name, to))
	}
	s.replicas, s.desired, s.most = to, &desired, &most
	t.writes = append(t.writes, "update machinesets "+s.name)
}

// share spreads a change over several sets.
func (t *scaling) share(active []*scalingSet, newSet *scalingSet, old []*scalingSet, reported int32, m mended) {
	var total, allowed int32
	for _, s := range active {
		total += s.replicas
	}
	if t.desired > 0 {
		allowed = t.desired + t.surge
	}
	toAdd := allowed - total
	if toAdd >= 0 {
		taker := newSet
		if taker == nil && m["DS-13"] {
			taker = old[slices.IndexFunc(old, func(s *scalingSet) bool { return s.replicas > 0 })]
		}
		for _, s := range active {
			to := s.replicas
			if s == taker {
				to += toAdd
			}
			t.size(s, to, 1)
		}
		if m["DS-13"] && newSet != nil && newSet.was == 0 && toAdd > 0 {
			t.size(newSet, toAdd, 1)
		}
		return
	}
	slices.SortStableFunc(active, func(a, b *scalingSet) int {
		return cmp.Or(cmp.Compare(b.replicas, a.replicas), a.compareAge(b))
	})
	sizes := make([]int32, len(active))
	var added int32
	for i, s := range active {
		share := rollout.Share{Size: s.replicas, Desired: t.desired, Surge: t.surge, Max: reported, ToAdd: toAdd, Added: added}
		if s.most != nil {
			if n, err := strconv.ParseInt(*s.most, 10, 32); err == nil {
				share.Max = int32(n)
			}
		}
		k := t.proportion(share, m)
		sizes[i] = s.replicas + k
		added += k
	}
	sizes[0] += toAdd - added
	if m["DS-12"] { // what is more than a set has is for the next
		for i := range sizes[:len(sizes)-1] {
			sizes[i+1] += min(0, sizes[i])
		}
	}
	for i, s := range active {
		if i == 0 || m["DS-12"] {
			sizes[i] = max(0, sizes[i])
		}
		t.size(s, sizes[i], -1)
	}
}

func (t *scaling) proportion(s rollout.Share, m mended) int32 {
	if m["DS-12"] {
		return min(0, proportionModel(s, m))
	}
	if s.Max == 0 && s.Desired != 0 && s.Size != 0 {
		return divisionByZero(s)
	}
	return proportionModel(s, m)
}

// divisionByZero is what MCM gets where it was recorded: infinity
// becomes the smallest number, from which the size is taken once more.
func divisionByZero(s rollout.Share) int32 {
	fraction := int32(math.MinInt32)
	fraction -= s.Size
	return max(fraction, s.ToAdd-s.Added)
}

func (t *scaling) byAge() []*scalingSet {
	sets := slices.Clone(t.sets)
	slices.SortStableFunc(sets, (*scalingSet).compareAge)
	return sets
}

func (t *scaling) out() scaleOut {
	o := scaleOut{Events: t.events, Writes: t.writes}
	for _, s := range t.byAge() {
		o.MachineSets = append(o.MachineSets, scaledSet{s.name, s.replicas, s.desired, s.most})
	}
	return o
}

func (t *scaling) sized() sized {
	o := sized{map[string]int32{}, t.events}
	for _, s := range t.sets {
		o.Replicas[s.name] = s.replicas
	}
	return o
}

type triggerDeletionIn struct {
	Annotations map[string]string
	Machines    []machine
}

type markedMachine struct{ Name, Priority, MarkedForDeletionTime string }

type triggerDeletionOut struct {
	AfterMigration string
	Annotation     *string
	Machines       []markedMachine
	Error          *string
}

const triggerKey = "node.machine.sapcloud.io/trigger-deletion-by-mcm"

// triggerDeletion expects one write where MCM writes an annotation and the next step writes it
// again. The annotation after the migration is left out.
func triggerDeletion(in triggerDeletionIn, out triggerDeletionOut) ([]string, error) {
	n := int32(len(in.Machines))
	w := world{
		MachineDeployment: machineDeployment{Name: "md", Replicas: n, Strategy: "RollingUpdate", MaxSurge: number(1), MaxUnavailable: number(0), Annotations: in.Annotations},
		NewMS:             &machineSet{Name: "new", Replicas: n},
	}
	seen := w.observation()
	for _, m := range in.Machines {
		m.Owner, m.Labels = "new", seen.Sets[0].Spec.Selector.MatchLabels
		seen.Machines = append(seen.Machines, m.object())
	}
	plan := decide(seen)
	got := triggerDeletionOut{AfterMigration: out.AfterMigration}
	if text, found := decided.After(seen.Deployment, plan.Actions).Annotations[triggerKey]; found {
		got.Annotation = &text
	}
	for _, m := range in.Machines {
		a := decided.After(m.object(), plan.Actions).Annotations
		got.Machines = append(got.Machines, markedMachine{m.Name, a[v1alpha1.MachinePriority], a[v1alpha1.MarkedForDeletionTime]})
	}
	return explain(nil, func(m mended) triggerDeletionOut { return triggerModel(in, m) }, out, got)
}

// triggerModel gives names without a time that of the last scaling, drops what is
// no name of a machine that can go, and marks the others. Of two entries for one
// machine the last one counts, as MCM does not see its own mark.
func triggerModel(in triggerDeletionIn, _ mended) triggerDeletionOut {
	text, present := in.Annotations[triggerKey]
	o := triggerDeletionOut{AfterMigration: text}
	machines := map[string]machine{}
	marks := map[string]markedMachine{}
	for _, m := range in.Machines {
		machines[m.Name] = m
		marks[m.Name] = markedMachine{m.Name, m.Annotations["machinepriority.machine.sapcloud.io"], m.Annotations["machine.sapcloud.io/marked-for-deletion-time"]}
	}
	if text != "" {
		o.AfterMigration = migrated(text, in.Annotations["machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"])
	}
	var kept []string
	for entry := range strings.SplitSeq(o.AfterMigration, ",") {
		name, at, _ := strings.Cut(entry, "~")
		_, err := time.Parse(time.RFC3339, at)
		m, known := machines[name]
		if err != nil || !known || m.Deleting || m.Phase == "Failed" {
			continue
		}
		kept = append(kept, entry)
		mark := markedMachine{name, m.Annotations["machinepriority.machine.sapcloud.io"], m.Annotations["machine.sapcloud.io/marked-for-deletion-time"]}
		if mark.Priority == "1" && mark.MarkedForDeletionTime != "" {
			continue
		}
		mark.Priority = "1"
		if mark.MarkedForDeletionTime == "" {
			mark.MarkedForDeletionTime = at
		}
		marks[name] = mark
	}
	if after := strings.Join(kept, ","); after != "" || present && o.AfterMigration == "" {
		o.Annotation = &after
	}
	for _, m := range in.Machines {
		o.Machines = append(o.Machines, marks[m.Name])
	}
	return o
}

func migrated(text, at string) string {
	if at == "" {
		at = now.Format(time.RFC3339)
	}
	var entries []string
	for e := range strings.SplitSeq(text, ",") {
		switch strings.Count(e, "~") {
		case 0:
			entries = append(entries, e+"~"+at)
		case 1:
			entries = append(entries, e)
		}
	}
	return strings.Join(entries, ",")
}
