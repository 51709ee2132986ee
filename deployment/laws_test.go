// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/internal/members"
	rules "github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// betterFirst notes that a set lets an available machine go while it has one that is
// not.
func (l *laws) betterFirst(s *v1alpha1.MachineSet, was *v1alpha1.Machine) {
	if !l.r.kind.badOrder || !l.available(s, was) {
		return
	}
	for _, m := range l.r.w.MachinesOf(s) {
		if m.UID != was.UID && !members.Leaving(m) && !l.available(s, m) {
			l.r.happened["an available machine went before another"]++
			return
		}
	}
}

// laws are what holds in every world at every write and for every decision. The
// truth is judged, not what a controller sees.
type laws struct {
	r        *randomWorld
	floors   map[types.UID]int64 // available machines that the deletions of a set have to leave
	demanded map[string]bool     // machines that an autoscaler named
	chosen   map[types.UID]bool  // whether a machine was seen to be unavailable when it was chosen
	taken    map[types.UID]bool  // available machines that users deleted, until the rollout has taken them into account
	total    int64               // before the write
	passes   int
	every    int // of so many decisions one is made again
}

// ours reports whether a machine belongs to a set of the deployment.
func (l *laws) ours(m *v1alpha1.Machine) bool { return l.setOf(m) != nil }

func (l *laws) setOf(m *v1alpha1.Machine) *v1alpha1.MachineSet {
	owner := metav1.GetControllerOfNoCopy(m)
	for _, s := range l.sets() {
		if owner != nil && owner.UID == s.UID {
			return s
		}
	}
	return nil
}

func (l *laws) sets() []*v1alpha1.MachineSet { return ownSets(l.r.w) }

// ownSets are those of the deployment.
func ownSets(w *deploymenttest.World) []*v1alpha1.MachineSet {
	return slices.DeleteFunc(w.Sets(), func(s *v1alpha1.MachineSet) bool {
		owner := metav1.GetControllerOfNoCopy(s)
		return owner == nil || w.Deployment() == nil || owner.UID != w.Deployment().UID
	})
}

// boundsOf are those of a valid deployment.
func boundsOf(d *v1alpha1.MachineDeployment) deployment.Bounds {
	b, err := deployment.BoundsOf(d)
	if err != nil {
		panic(err)
	}
	return b
}

// least is one less if the policy gives up a machine for want of capacity.
func (l *laws) least(d *v1alpha1.MachineDeployment) int64 {
	if l.r.kind.quota && l.r.policy.FreeCapacity {
		return max(0, boundsOf(d).Least()-1)
	}
	return boundsOf(d).Least()
}

// machinesThereAre is the sum over all sets of what they may have by what they
// were told; those that are leaving come on top, unless they were harmed.
func (l *laws) machinesThereAre() int64 {
	var n int64
	inPlace := l.r.kind.strategy == kindInPlace
	for _, s := range l.sets() {
		c := members.Count(s, l.r.w.MachinesOf(s), nil, l.r.w.Now())
		switch {
		case s.DeletionTimestamp != nil: // it makes no more
			n += int64(c.Machines)
		case inPlace: // machines move from set to set in several writes
			n += int64(c.Desired)
		case l.r.kind.failing, l.r.kind.quota, l.r.kind.deletes:
			n += int64(max(c.Desired, c.Present))
		default:
			n += int64(max(c.Desired+c.Leaving, c.Machines))
		}
	}
	return n
}

// availableWithout counts available machines that are not leaving, without one.
func (l *laws) availableWithout(not types.UID) int64 {
	var n int64
	for _, s := range l.sets() {
		for _, m := range l.r.w.MachinesOf(s) {
			if m.UID != not && l.available(s, m) {
				n++
			}
		}
	}
	return n
}

func (l *laws) available(s *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	return !members.Leaving(m) && l.up(s, m, l.r.w.Node(m))
}

// up reports whether a machine has been available for long enough and its Node is not being updated.
func (l *laws) up(s *v1alpha1.MachineSet, m *v1alpha1.Machine, node *corev1.Node) bool {
	return !beingUpdated(node) && members.AvailableFor(m, time.Duration(s.Spec.MinReadySeconds)*time.Second, l.r.w.Now())
}

// beingUpdated reports whether a Node is selected for an update that has not succeeded
// yet.
func beingUpdated(node *corev1.Node) bool {
	return node != nil && node.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] == "true" &&
		node.Labels[v1alpha1.LabelKeyNodeUpdateResult] != v1alpha1.LabelValueNodeUpdateSuccessful
}

// wrote judges a write.
func (l *laws) wrote(c deploymenttest.Change) {
	if l.r == nil { // the first
		return
	}
	before := l.total
	l.total = l.machinesThereAre()
	switch after := c.After.(type) {
	case *v1alpha1.MachineDeployment:
		if c.By == "user" {
			l.lower(after)
			for entry := range strings.SplitSeq(after.Annotations[v1alpha1.TriggerDeletionByMCM], ",") {
				name, _, _ := strings.Cut(entry, "~")
				l.demanded[name] = true
			}
		}
	case *v1alpha1.MachineSet:
		l.tookSet(c, after)
		l.wroteSet(c, after, before)
	case *v1alpha1.Machine:
		l.tookMachine(c, after)
		l.wroteMachine(c, after)
	case *corev1.Node:
		l.wroteNode(c, after)
	}
}

// lower follows a user who wants fewer machines.
func (l *laws) lower(d *v1alpha1.MachineDeployment) {
	for uid := range l.floors {
		l.floors[uid] = min(l.floors[uid], l.least(d))
	}
}

// wroteSet: the deployment never has more than replicas + surge by its own doing, and
// each cut leaves enough machines.
func (l *laws) wroteSet(c deploymenttest.Change, s *v1alpha1.MachineSet, before int64) {
	d := l.r.w.Deployment()
	if d == nil || c.By != d.Name {
		return
	}
	if most := boundsOf(d).Most(); l.total > before && l.total > most && !l.r.kind.resizes && l.makesMore(s) {
		l.r.failf("%s makes it %d machines, of %d before and %d allowed", s.Name, l.total, before, most)
	}
	if c.Before == nil {
		l.onlyOneSet(s)
	}
	if was, ok := c.Before.(*v1alpha1.MachineSet); ok && s.Spec.Replicas < was.Spec.Replicas {
		l.floors[s.UID] = l.least(d)
		if len(l.sets()) == 1 || l.onlyActive(was) {
			l.floors[s.UID] = 0 // the only active set follows the replicas
		}
	}
}

// makesMore reports whether a set asks for machines that it does not have. A size that
// follows machines which have moved to the set makes none: they were there before.
func (l *laws) makesMore(s *v1alpha1.MachineSet) bool {
	return members.Count(s, l.r.w.MachinesOf(s), nil, l.r.w.Now()).Present < int(s.Spec.Replicas)
}

// onlyOneSet: no set is made for a template that has one.
func (l *laws) onlyOneSet(s *v1alpha1.MachineSet) {
	for _, o := range l.sets() {
		if o.UID != s.UID && rules.EqualIgnoreHash(o.Spec.Template, s.Spec.Template) {
			l.r.failf("%s is made for the template that %s has", s.Name, o.Name)
		}
	}
}

func (l *laws) onlyActive(s *v1alpha1.MachineSet) bool {
	for _, o := range l.sets() {
		if o.UID != s.UID && o.Spec.Replicas > 0 {
			return false
		}
	}
	return true
}

// wroteMachine: no set has more machines than it was asked for, and none
// lets an available one go that is needed.
func (l *laws) wroteMachine(c deploymenttest.Change, m *v1alpha1.Machine) {
	s := l.setOf(m)
	l.oneController(m)
	l.onlyItsOwn(c, s, m)
	l.ofItsClass(c, s, m)
	if s == nil || c.By != s.Name {
		return
	}
	was, existed := c.Before.(*v1alpha1.Machine)
	switch {
	case !existed:
		n := members.Count(s, l.r.w.MachinesOf(s), nil, l.r.w.Now())
		if back := l.r.happened[contradicts] > 0; n.Present-n.Moving > n.Desired && !back { // one that seemed to leave comes back
			// Those that have moved in are given their place by the deployment.
			l.r.failf("%s has %d machines, and %d have moved to it, of %d", s.Name, n.Present, n.Moving, n.Desired)
		}
		l.oldOnesFirst(s, m)
	case was.DeletionTimestamp == nil && m.DeletionTimestamp != nil && s.DeletionTimestamp == nil:
		l.betterFirst(s, was)
		floor, known := l.floors[s.UID]
		if left := l.availableWithout(m.UID); l.available(s, was) && known && left < floor-l.debt() && !l.harmed() && !l.demanded[m.Name] && !l.chosen[m.UID] {
			l.r.failf("%s deletes the available %s: %d left, %d needed", s.Name, m.Name, left, floor)
		}
	}
}

// oneController: no machine has two controllers.
func (l *laws) oneController(m *v1alpha1.Machine) {
	n := 0
	for _, r := range m.OwnerReferences {
		if r.Controller != nil && *r.Controller {
			n++
		}
	}
	if n > 1 {
		l.r.failf("%s has %d controllers", m.Name, n)
	}
}

// oldOnesFirst: Recreate makes no new machine while there is an old one, unless it
// is paused: then the set of the present template follows the replicas.
func (l *laws) oldOnesFirst(s *v1alpha1.MachineSet, m *v1alpha1.Machine) {
	d := l.r.w.Deployment()
	if l.harmed() || d.Spec.Paused || d.Spec.Strategy.Type != kindRecreate || !rules.EqualIgnoreHash(s.Spec.Template, d.Spec.Template) {
		return
	}
	for _, o := range l.sets() {
		if n := len(l.r.w.MachinesOf(o)); o.UID != s.UID && n > 0 {
			l.r.failf("%s is created while %s has %d machines", m.Name, o.Name, n)
		}
	}
}

// wroteNode: an update in place leaves enough machines.
func (l *laws) wroteNode(c deploymenttest.Change, n *corev1.Node) {
	d := l.r.w.Deployment()
	was, existed := c.Before.(*corev1.Node)
	if d == nil || c.By != d.Name || !existed || was.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] == n.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] ||
		n.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] != "true" {
		return
	}
	if left, needed := l.availableWithout(""), boundsOf(d).Least()-l.debt(); left < needed && !l.harmed() {
		l.r.failf("%s is selected: %d left, %d needed", n.Name, left, needed)
	}
}

// setPlanned: same input, same plan, and a reason for what is not done.
func (l *laws) setPlanned(in machineset.Observation, d machineset.Decision) {
	l.r.logf("    set %s, which names %v: %s", in.Set.Name, members.Victims(in.Set), d)
	l.setConfigured(in, d)
	if !d.NextCheck.IsZero() && !d.NextCheck.After(l.r.w.Now()) {
		l.r.failf("next check %s of %s is not after now", d.NextCheck, in.Set.Name)
	}
	if len(d.Actions)+len(d.Holds) > 0 && d.NextCheck.IsZero() {
		l.r.failf("no next check of %s", in.Set.Name)
	}
}

// planned judges a decision about the deployment.
func (l *laws) planned(in deployment.Observation, d deployment.Decision) {
	l.r.logf("    plan: %s %v", d, d.Targets)
	if what := brokenBy(in, d, l.r.w.Now()); what != "" {
		l.r.failf("%s: %s", what, d)
	}
	l.configured(in, d)
	l.sawTaken(in)
	l.enoughInView(in, d)
	if l.passes++; l.passes%l.every == 0 {
		l.samePlan(in, d)
	}
}

// brokenBy returns which law a decision breaks, whatever was observed; empty for none. What
// is not done has a reason, every set has a target unless nothing is decided about
// sizes, and no two actions write the same object.
func brokenBy(in deployment.Observation, d deployment.Decision, now time.Time) string {
	past := func(at time.Time) bool { return !at.IsZero() && !at.After(now) }
	switch {
	case past(d.NextCheck), len(d.Actions) > 0 && d.NextCheck.IsZero():
		return fmt.Sprintf("next check at %s", d.NextCheck)
	case d.Reason == "", len(d.Actions)+len(d.Holds) == 0 && d.Reason != deployment.ReasonComplete && !d.WriteStatus:
		return "nothing is said about what is not done"
	}
	for _, h := range d.Holds {
		if in.Deployment != nil && h.Subject == "" || h.Reason == "" || past(h.Until) {
			return fmt.Sprintf("the hold %v", h)
		}
	}
	targets := map[string]deployment.Target{}
	for _, t := range d.Targets {
		targets[t.Name] = t
		if t.To < 0 && t.To != t.From {
			return fmt.Sprintf("the target %s", t)
		}
	}
	for _, s := range in.Sets {
		if s != nil && len(targets) > 0 && targets[s.Name].Name == "" {
			return s.Name + " has no target"
		}
	}
	written := map[string]bool{}
	for _, a := range d.Actions {
		_, object, _ := strings.Cut(a.String(), " ")
		object, _, _ = strings.Cut(object, ":")
		if written[object] {
			return fmt.Sprintf("%q is written twice", object)
		}
		written[object] = true
		u, _ := a.(machinist.Update)
		if s, ok := u.Object.(*v1alpha1.MachineSet); ok {
			before, _ := u.Before.(*v1alpha1.MachineSet)
			if target := targets[s.Name]; target.To != s.Spec.Replicas || target.From != before.Spec.Replicas {
				return fmt.Sprintf("%s, but the target is %s", u, target)
			}
		}
	}
	return ""
}

// enoughInView: as far as the controller can see, a cut leaves enough machines, also
// where machines fail. Those of a set that has not reported on its present spec are not
// counted on: it may have been told anything in between.
func (l *laws) enoughInView(in deployment.Observation, d deployment.Decision) {
	sets, active := map[types.UID]*v1alpha1.MachineSet{}, 0
	for _, s := range in.Sets {
		sets[s.UID] = s
		if s.Spec.Replicas > 0 {
			active++
		}
	}
	cut, going := false, outgoing(d)
	for _, t := range d.Targets {
		cut = cut || t.To < t.From
		for _, v := range t.Victims {
			l.choose(in, sets[t.UID], v.Machine)
		}
	}
	if !cut || active < 2 || in.Deployment.Spec.Strategy.Type == kindRecreate {
		return
	}
	var left, lost int64
	for _, m := range in.Machines {
		if m == nil || members.Leaving(m) {
			continue
		}
		owner := metav1.GetControllerOfNoCopy(m)
		if owner == nil || sets[owner.UID] == nil {
			continue
		}
		s := sets[owner.UID]
		if !l.up(s, m, in.Nodes[m.Labels[v1alpha1.NodeLabelKey]]) {
			continue
		}
		t, _ := d.Target(s.UID)
		switch {
		case !going[m.UID] && s.Status.ObservedGeneration < s.Generation:
		case !going[m.UID]:
			left++
		case t.To < t.From && !l.demanded[m.Name] && !namedBefore(s, m):
			lost++
		}
	}
	if lost > 0 && left < l.least(in.Deployment) {
		l.r.failf("%d available machines are given up, %d are left and %d needed: %s", lost, left, l.least(in.Deployment), d)
	}
}

// outgoing returns the UIDs of the machines that a decision deletes.
func outgoing(d deployment.Decision) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, t := range d.Targets {
		for _, v := range t.Victims {
			out[v.Machine.UID] = true
		}
	}
	return out
}

// choose notes whether a machine was seen to be unavailable when it was chosen: it
// may become available before that is seen, and before it goes.
func (l *laws) choose(in deployment.Observation, s *v1alpha1.MachineSet, m *v1alpha1.Machine) {
	if _, known := l.chosen[m.UID]; !known {
		l.chosen[m.UID] = !l.up(s, m, in.Nodes[m.Labels[v1alpha1.NodeLabelKey]])
	}
}

// namedBefore reports whether a machine goes already for the size the set has.
func namedBefore(s *v1alpha1.MachineSet, m *v1alpha1.Machine) bool {
	return slices.Contains(members.Victims(s), m.Name)
}

// samePlan: the same input in another order makes the same plan.
func (l *laws) samePlan(in deployment.Observation, d deployment.Decision) {
	other := copyOf(in)
	other.Machines = slices.DeleteFunc(other.Machines, func(m *v1alpha1.Machine) bool { return m == nil })
	l.r.mix.Shuffle(len(other.Sets), func(i, j int) { other.Sets[i], other.Sets[j] = other.Sets[j], other.Sets[i] })
	l.r.mix.Shuffle(len(other.Machines), func(i, j int) { other.Machines[i], other.Machines[j] = other.Machines[j], other.Machines[i] })
	again := deployment.Decide(other, l.r.policy, l.r.w.Now())
	if reflect.DeepEqual(d, again) { // which is cheap
		return
	}
	if diff := cmp.Diff(d, again, cmpopts.EquateEmpty(), cmpopts.EquateErrors()); diff != "" {
		l.r.failf("the same observation makes another plan: %s", diff)
	}
}

// onlyItsOwn: no set deletes a machine that has moved to another, or one in place of
// a machine that has left it. A set that a user deletes, or has made smaller, takes
// what it sees.
func (l *laws) onlyItsOwn(c deploymenttest.Change, s *v1alpha1.MachineSet, m *v1alpha1.Machine) {
	was, existed := c.Before.(*v1alpha1.Machine)
	if s == nil || !existed || was.DeletionTimestamp != nil || m.DeletionTimestamp == nil {
		return
	}
	by := l.setNamed(c.By)
	switch {
	case by == nil || by.DeletionTimestamp != nil || l.r.kind.resizes:
		return
	case by != s:
		l.r.failf("%s deletes %s, which is of %s", by.Name, m.Name, s.Name)
	case l.harmed(), l.r.kind.deletes, l.demanded[m.Name], members.Failed(was):
		return // others take some as well, or they are replaced
	}
	if n := members.Count(s, l.r.w.MachinesOf(s), nil, l.r.w.Now()); n.Present < n.Desired {
		l.r.failf("%s deletes %s, and is left with %d machines of %d", s.Name, m.Name, n.Present, n.Desired)
	}
}

// setNamed is a set of the deployment, nil if there is none of that name.
func (l *laws) setNamed(name string) *v1alpha1.MachineSet {
	for _, s := range l.sets() {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// harmed reports whether what is there is not of the making of controllers alone: what
// they had decided before they saw it is no break of a law.
func (l *laws) harmed() bool { return l.r.kind.failing || l.r.kind.resizes }

// debt is how many machines may be missing because users deleted them: what had
// been decided before that was seen is carried out.
func (l *laws) debt() int64 { return int64(len(l.taken)) }

// tookMachine follows a user who deletes a machine.
func (l *laws) tookMachine(c deploymenttest.Change, m *v1alpha1.Machine) {
	was, existed := c.Before.(*v1alpha1.Machine)
	if s := l.setOf(m); c.By == "user" && existed && m.DeletionTimestamp != nil && s != nil && l.available(s, was) {
		l.taken[m.UID] = true
	}
}

// tookSet follows a user who deletes a set, with all its machines.
func (l *laws) tookSet(c deploymenttest.Change, s *v1alpha1.MachineSet) {
	was, existed := c.Before.(*v1alpha1.MachineSet)
	if c.By != "user" || !existed || was.DeletionTimestamp != nil || s.DeletionTimestamp == nil {
		return
	}
	for _, m := range l.r.w.MachinesOf(s) {
		if l.available(s, m) {
			l.taken[m.UID] = true
		}
	}
}

// sawTaken ends the debt when the controller has seen all that users deleted, and
// nothing is left to be carried out of what it had decided before.
func (l *laws) sawTaken(in deployment.Observation) {
	if len(l.taken) == 0 || l.beingCarriedOut() {
		return
	}
	doomed := map[types.UID]bool{}
	for _, s := range in.Sets {
		doomed[s.UID] = s.DeletionTimestamp != nil
	}
	for _, m := range in.Machines {
		if m != nil && l.taken[m.UID] && !members.Leaving(m) && !doomed[controllerOf(m)] {
			return
		}
	}
	clear(l.taken)
}

// beingCarriedOut reports whether a set has yet to let machines go.
func (l *laws) beingCarriedOut() bool {
	for _, s := range l.sets() {
		machines := l.r.w.MachinesOf(s)
		named := func(m *v1alpha1.Machine) bool { return !members.Leaving(m) && namedBefore(s, m) }
		if slices.ContainsFunc(machines, named) ||
			s.DeletionTimestamp == nil && members.Count(s, machines, nil, l.r.w.Now()).Present > int(s.Spec.Replicas) {
			return true
		}
	}
	return false
}

func controllerOf(m *v1alpha1.Machine) types.UID {
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		return owner.UID
	}
	return ""
}

// ofItsClass: no controller leaves a machine in a set of another class.
func (l *laws) ofItsClass(c deploymenttest.Change, s *v1alpha1.MachineSet, m *v1alpha1.Machine) {
	was, existed := c.Before.(*v1alpha1.Machine)
	if existed && (controllerOf(was) == controllerOf(m) || was.Spec.Class.Name == "former") || c.By == "user" {
		return
	}
	if s != nil && m.Spec.Class.Name != s.Spec.Template.Spec.Class.Name {
		l.r.failf("%s of set %s has class %s by %s, and the set has %s", m.Name, s.Name, m.Spec.Class.Name, c.By, s.Spec.Template.Spec.Class.Name)
	}
}

// configured: a decision about sizes brings the configuration of the deployment to each set that has
// machines.
func (l *laws) configured(in deployment.Observation, d deployment.Decision) {
	want := in.Deployment.Spec.Template.Spec.MachineConfiguration
	for _, s := range in.Sets {
		if len(d.Targets) > 0 && (s.Spec.Replicas > 0 || s.Status.Replicas > 0) && !apiequality.Semantic.DeepEqual(want, decided.After(s, d.Actions).Spec.Template.Spec.MachineConfiguration) {
			l.r.failf("%s keeps its timeouts: %s", s.Name, d)
		}
	}
}

// setConfigured: a decision of a set brings its configuration to each machine, in every phase.
func (l *laws) setConfigured(in machineset.Observation, d machineset.Decision) {
	for _, m := range in.Machines {
		if m != nil && controllerOf(m) == in.Set.UID && !apiequality.Semantic.DeepEqual(in.Set.Spec.Template.Spec.MachineConfiguration, decided.After(m, d.Actions).Spec.MachineConfiguration) {
			l.r.failf("%s of phase %s keeps its timeouts: %s", m.Name, m.Status.CurrentStatus.Phase, d)
		}
	}
}
