// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// OvershootObservation is the input of [StepOvershoot]. With the zero value nothing is done.
type OvershootObservation struct {
	// Deployments are all MachineDeployments. Nil is skipped.
	Deployments []*v1alpha1.MachineDeployment
	// Sets are all MachineSets, with and without a deployment. Nil is skipped.
	Sets []*v1alpha1.MachineSet
	// Machines are all machines. Nil is skipped.
	Machines []*v1alpha1.Machine
	// Complete reports that no object is missing. If false, nothing is done.
	Complete bool
}

// OvershootState is the memory of [StepOvershoot]: since when each set has its current limit.
// It need not be stored. After a loss a set is frozen only if it creates another machine.
type OvershootState struct {
	sets map[types.UID]limitRecord
}

// limitRecord is the limit of a set at the last call.
type limitRecord struct {
	generation, parentGeneration int64
	parent                       types.UID
	high                         int
	labeled                      bool // the set had the freeze label
	// since is the time from which creations were decided with this limit.
	since time.Time
}

// settle is how long requests that were decided before a change of a set may still create
// machines.
const settle = 10 * time.Second

// StepOvershoot freezes sets that create too many machines, and unfreezes them when they have
// fewer. A frozen set creates no machines; it still deletes them. It protects against errors
// in the decisions of package machineset.
//
//   - A set is frozen if it has too many machines and created one of them with its current
//     limit. Lowered replicas alone do not freeze a set. See [OvershootPolicy].
//   - The machines of a set are those that it controls and that are not being deleted.
//   - The annotation [v1alpha1.UnfreezeAnnotation] on a set or its deployment unfreezes it.
//     It is frozen again only if it creates another machine and has too many.
//   - Removing the freeze label by hand has the same effect.
//   - A deployment is frozen while one of its sets is. Its annotation is removed after all of
//     its sets are unfrozen.
//   - Sets and deployments that are being deleted or have no UID do not change.
//
// Each object has two updates, one after the other: metadata first to freeze, and status first to
// unfreeze. The second needs the resource version that the first returned; skip it if the first
// fails. Updates of sets come first, sorted by name, then those of deployments.
//
// Before it writes a freeze, a controller reads the set and its deployment from the API
// server and decides again. A cache may show new machines before the new replicas.
func StepOvershoot(state OvershootState, in OvershootObservation, p OvershootPolicy, now time.Time) (OvershootState, Decision[machinist.Update]) {
	s := overshoot{in: in, policy: p, now: now, before: state, next: map[types.UID]limitRecord{}, frozen: map[types.UID]cause{}, waits: map[types.UID]string{}}
	s.d.NextCheck = now.Add(p.period())
	if !in.Complete {
		s.d.Holds = append(s.d.Holds, machinist.Hold{Subject: "machines", Reason: machinesUnusable, Message: "the lists may be incomplete", Until: s.d.NextCheck})
		return state, s.d
	}
	s.index()
	for _, set := range byName(in.Sets) {
		if set.UID != "" && set.DeletionTimestamp == nil {
			s.judge(set)
		}
	}
	for _, d := range s.deployments {
		if d.DeletionTimestamp == nil {
			s.follow(d)
		}
	}
	return OvershootState{sets: s.next}, s.d
}

func (p OvershootPolicy) period() time.Duration {
	if p.Period <= 0 {
		return time.Minute
	}
	return p.Period
}

// cause is the reason why a deployment is frozen.
type cause struct {
	reason  machinist.Reason
	message string
}

// overshoot holds the intermediate results of one [StepOvershoot].
type overshoot struct {
	in          OvershootObservation
	policy      OvershootPolicy
	now         time.Time
	before      OvershootState
	next        map[types.UID]limitRecord
	machines    map[types.UID][]*v1alpha1.Machine // by the UID of their controller
	deployments []*v1alpha1.MachineDeployment
	parents     map[types.UID]*v1alpha1.MachineDeployment
	frozen      map[types.UID]cause  // by the UID of the deployment
	waits       map[types.UID]string // the set to wait for, by the UID of the deployment
	d           Decision[machinist.Update]
}

// index builds the maps of machines and deployments.
func (s *overshoot) index() {
	s.machines = map[types.UID][]*v1alpha1.Machine{}
	for _, m := range s.in.Machines {
		if m != nil {
			uid := controllerOf(m)
			s.machines[uid] = append(s.machines[uid], m)
		}
	}
	s.parents = map[types.UID]*v1alpha1.MachineDeployment{}
	for _, d := range s.in.Deployments {
		if d != nil && d.UID != "" {
			s.parents[d.UID] = d
			s.deployments = append(s.deployments, d)
		}
	}
	slices.SortStableFunc(s.deployments, func(a, b *v1alpha1.MachineDeployment) int { return compareNames(a, b) })
}

// judge decides whether a set is frozen or unfrozen.
func (s *overshoot) judge(set *v1alpha1.MachineSet) {
	parent, machines := s.parents[controllerOf(set)], s.machines[set.UID]
	n := members.Count(set, machines, nil, s.now).Present
	high, low := s.policy.thresholds(set.Spec.Replicas, parent)
	labeled, told := isFrozen(set.Labels), setConditionFrozen(set)
	unfreeze := asksUnfreeze(set) || parent != nil && asksUnfreeze(parent)
	created := s.created(set, parent, high, unfreeze)
	change, message := stays, ""
	switch {
	case unfreeze:
		if labeled || told || asksUnfreeze(set) {
			change, message = ends, "annotation "+v1alpha1.UnfreezeAnnotation+" is set"
		}
	case n >= high && created && !labeled:
		change, message = begins, overshootMessage(set, n, high)
	case n <= low && (labeled || slices.ContainsFunc(set.Status.Conditions, aboutFreeze)):
		change, message = ends, fmt.Sprintf("it has %d machines, at most %d", n, low)
	case told && !labeled:
		change, message = ends, "label "+v1alpha1.FreezeLabelKey+" was removed"
	case labeled && !told:
		change, message = begins, fmt.Sprintf("MachineSet %s has %d machines and stays frozen until it has %d", set.Name, n, low)
	case labeled:
		s.frozen[controllerOf(set)] = cmp.Or(s.frozen[controllerOf(set)], cause{follows, "MachineSet " + set.Name + " is frozen"})
		s.hold(set, fmt.Sprintf("it has %d machines and is unfrozen at %d", n, low))
	case n >= high:
		s.hold(set, fmt.Sprintf("it has %d machines, at least %d; it is frozen if it creates another machine", n, high))
	}
	s.write(set, change, message)
}

// write adds the action for a set.
func (s *overshoot) write(set *v1alpha1.MachineSet, change freezing, message string) {
	switch change {
	case stays:
		return
	case begins:
		s.frozen[controllerOf(set)] = cmp.Or(s.frozen[controllerOf(set)], cause{overshooting, message})
	case ends:
		s.waits[controllerOf(set)] = set.Name
	}
	next, event := freezeSet(set, change, message, s.now)
	s.d.Actions = append(s.d.Actions, freezeUpdates(set, next, change, message, event)...)
}

func (s *overshoot) hold(set *v1alpha1.MachineSet, message string) {
	s.d.Holds = append(s.d.Holds, machinist.Hold{Subject: setSubject(set), Reason: overshooting, Message: message, Until: s.d.NextCheck})
}

// created reports whether a machine of a set was created with its current limit, and records
// the limit. The time starts again with unfreeze and when the label is removed.
func (s *overshoot) created(set *v1alpha1.MachineSet, parent *v1alpha1.MachineDeployment, high int, unfreeze bool) bool {
	is := limitRecord{generation: set.Generation, high: high, labeled: isFrozen(set.Labels)}
	if parent != nil {
		is.parent, is.parentGeneration = parent.UID, parent.Generation
	}
	newest := time.Time{}
	for _, m := range s.machines[set.UID] {
		if m.CreationTimestamp.After(newest) {
			newest = m.CreationTimestamp.Time
		}
	}
	was, known := s.before.sets[set.UID]
	if unfreeze || !known || was.labeled && !is.labeled || is.generation > was.generation || is.parent != was.parent || is.parentGeneration > was.parentGeneration || high < was.high {
		is.since = s.now
		if newest.After(is.since) {
			is.since = newest
		}
		is.since = is.since.Add(settle)
	} else { // a cache may show an older generation
		is.since, is.generation, is.parentGeneration = was.since, was.generation, was.parentGeneration
	}
	s.next[set.UID] = is
	return newest.After(is.since)
}

// follow freezes or unfreezes a deployment like its sets.
func (s *overshoot) follow(d *v1alpha1.MachineDeployment) {
	why, frozen := s.frozen[d.UID]
	labeled, told := isFrozen(d.Labels), deploymentConditionFrozen(d)
	switch {
	case frozen && (!labeled || !told):
		next, event := freezeDeployment(d, begins, why.reason, why.message, s.now)
		s.d.Actions = append(s.d.Actions, freezeUpdates(d, next, begins, why.message, event)...)
	case !frozen && s.waits[d.UID] != "" && asksUnfreeze(d):
		s.d.Holds = append(s.d.Holds, machinist.Hold{
			Subject: deploymentSubject(d), Reason: follows, Until: s.d.NextCheck,
			Message: "MachineSet " + s.waits[d.UID] + " is not unfrozen yet; the deployment is unfrozen after it",
		})
	case !frozen && (labeled || told || asksUnfreeze(d)):
		next, event := freezeDeployment(d, ends, "", "", s.now)
		s.d.Actions = append(s.d.Actions, freezeUpdates(d, next, ends, "none of its sets is frozen", event)...)
	}
}

// freezeUpdates returns the two updates from an object to its new version.
func freezeUpdates[T interface {
	metav1.Object
	runtime.Object
}](before, next T, f freezing, message string, event *machinist.Event) []machinist.Update {
	metadata, from, what := next, before, "unfrozen"
	if f == begins {
		metadata, from, what = before, next, "frozen"
	}
	between := metadata.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the same type
	between.SetLabels(maps.Clone(from.GetLabels()))
	between.SetAnnotations(maps.Clone(from.GetAnnotations()))
	updates := []machinist.Update{
		{Before: before, Object: between, Unchanged: true, Changes: []string{what + " in namespace " + next.GetNamespace(), message}},
		{Before: between, Object: next, Unchanged: true, Changes: []string{what}, Report: event},
	}
	if f == begins {
		updates[1].Subresource = "status"
	} else {
		updates[0].Subresource = "status"
	}
	return updates
}

// setSubject returns the subject of a set.
func setSubject(set *v1alpha1.MachineSet) string { return subject("machineset", set) }

// deploymentSubject returns the subject of a deployment.
func deploymentSubject(d *v1alpha1.MachineDeployment) string {
	return subject("machinedeployment", d)
}

// subject returns "kind/namespace/name", or "kind/name" without a namespace.
func subject(kind string, o metav1.Object) string {
	if o.GetNamespace() == "" {
		return kind + "/" + o.GetName()
	}
	return kind + "/" + o.GetNamespace() + "/" + o.GetName()
}

// controllerOf returns the UID of an object's controller. Empty means none.
func controllerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

// byName returns the sets without nil, sorted by name.
func byName(sets []*v1alpha1.MachineSet) []*v1alpha1.MachineSet {
	var out []*v1alpha1.MachineSet
	for _, set := range sets {
		if set != nil {
			out = append(out, set)
		}
	}
	slices.SortStableFunc(out, func(a, b *v1alpha1.MachineSet) int { return compareNames(a, b) })
	return out
}

func compareNames(a, b metav1.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetUID(), b.GetUID()))
}
