// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/line"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// OvershootObservation is what [StepOvershoot] is told. The zero observation is of a
// world that nobody has looked at.
type OvershootObservation struct {
	// Deployments of the sets. Nil deployments are skipped.
	Deployments []*v1alpha1.MachineDeployment
	// Sets of all of them, and those without one. Nil sets are skipped.
	Sets []*v1alpha1.MachineSet
	// Machines of all sets. Nil machines are skipped.
	Machines []*v1alpha1.Machine
	// Complete says that these are all there are. Without that nothing is decided.
	Complete bool
}

// A FreezeWrite is one object whose freeze changes. Metadata and status are two requests:
// a freeze writes the metadata first, an end the status. A write that was lost, or of which
// one request was lost, is decided again by the next call. It is safe to repeat.
type FreezeWrite struct {
	// Set or Deployment is the edited copy, resource version included; the other one
	// is nil. The receiver of the decision owns it.
	Set        *v1alpha1.MachineSet
	Deployment *v1alpha1.MachineDeployment
	// Frozen says that the object is frozen; if not, it is unfrozen.
	Frozen bool
	// Message says why, for people.
	Message string
	// Event is what to report on the object once it is written.
	Event *machinist.Event
}

// String returns the write in one line.
func (w FreezeWrite) String() string {
	what, name := "set", ""
	switch {
	case w.Set != nil:
		name = w.Set.Name
	case w.Deployment != nil:
		what, name = "deployment", w.Deployment.Name
	}
	verb := "Unfreeze"
	if w.Frozen {
		verb = "Freeze"
	}
	return fmt.Sprintf("%s %s %s: %s", verb, what, name, w.Message)
}

// OvershootState is what [StepOvershoot] remembers from one call to the next: since when each
// set has been asked for the same number of machines. It need not be stored. After a loss a
// set is frozen only once it creates another machine. It is not changed by calls.
type OvershootState struct {
	sets map[types.UID]asked
}

// asked is what a set was asked for at the last call.
type asked struct {
	generation, parentGeneration int64
	parent                       types.UID
	high                         int
	labelled                     bool // it was frozen
	// since is the time after which each creation was decided knowing all this.
	since time.Time
}

// settle is for how long requests may still create machines that were decided about
// before the last change of a set.
const settle = 10 * time.Second

// OvershootDecision is which objects are frozen and unfrozen.
type OvershootDecision struct {
	// Actions of all sets, then of all deployments, by their names.
	Actions []FreezeWrite
	// Holds are the sets that have too many machines or stay frozen, by their names, and the
	// deployments that wait for their sets.
	Holds []machinist.Hold
	// NextCheck is when to look again. It is after now.
	NextCheck time.Time
}

// String returns the writes and the holds in one line.
func (d OvershootDecision) String() string { return line.Decision(d.Actions, "", "", d.Holds) }

// Overshoot freezes sets that create more machines than they were asked for, and unfreezes
// them when they have fewer. A frozen set creates no machine; it deletes as before. This is
// the net below package machineset, which counts what it asks for.
//
//   - A set is frozen if it has too many machines and one of them was created since the set
//     has been asked for what it is asked for now. A set whose replicas were lowered has too
//     many machines as well, and creates none.
//   - Machines of a set are those that it controls, by its UID, and that are not being
//     deleted. The deployment of a set is the one that controls it. See [OvershootPolicy].
//   - A set that carries the annotation [v1alpha1.UnfreezeAnnotation], or whose deployment
//     does, is unfrozen. It is frozen again only if it then creates another machine and still
//     has too many.
//   - A set from which the label was taken by hand counts as one whose unfreezing was asked for.
//   - A deployment is frozen while one of its sets is. Its annotation stays until all of its
//     sets are seen unfrozen.
//   - Sets and deployments that are being deleted, or have no UID, are left alone.
//
// All sets are judged in one call. On lists that are not complete nothing is decided.
//
// Caches may show machines that were created for replicas which they do not show yet. Decide
// again with the set and its deployment as the API server has them before a freeze is written.
func StepOvershoot(state OvershootState, in OvershootObservation, p OvershootPolicy, now time.Time) (OvershootState, OvershootDecision) {
	s := overshoot{in: in, policy: p, now: now, before: state, next: map[types.UID]asked{}, frozen: map[types.UID]cause{}, waits: map[types.UID]string{}}
	s.d.NextCheck = now.Add(p.period())
	if !in.Complete {
		s.d.Holds = append(s.d.Holds, machinist.Hold{Subject: "machines", Reason: MachinesUnusable, Message: "the lists may not be whole", Until: s.d.NextCheck})
		return state, s.d
	}
	s.look()
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

// cause is why a deployment is frozen.
type cause struct {
	reason  machinist.Reason
	message string
}

// overshoot is one decision in the making.
type overshoot struct {
	in          OvershootObservation
	policy      OvershootPolicy
	now         time.Time
	before      OvershootState
	next        map[types.UID]asked
	machines    map[types.UID][]*v1alpha1.Machine // by the UID of their controller
	deployments []*v1alpha1.MachineDeployment
	parents     map[types.UID]*v1alpha1.MachineDeployment
	frozen      map[types.UID]cause  // why, by the UID of the deployment
	waits       map[types.UID]string // for which set, by the UID of the deployment
	d           OvershootDecision
}

func (s *overshoot) look() {
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

// judge decides about a set.
func (s *overshoot) judge(set *v1alpha1.MachineSet) {
	parent, machines := s.parents[controllerOf(set)], s.machines[set.UID]
	n := machineset.Count(set, machines, nil, s.now).Present
	high, low := s.policy.marks(set.Spec.Replicas, parent)
	labelled, told := isFrozen(set.Labels), setTold(set)
	unfreeze := asksUnfreeze(set) || parent != nil && asksUnfreeze(parent)
	created := s.created(set, parent, high, unfreeze)
	verdict, message := stays, ""
	switch {
	case unfreeze:
		if labelled || told || asksUnfreeze(set) {
			verdict, message = ends, "the annotation "+v1alpha1.UnfreezeAnnotation+" asks for it"
		}
	case n >= high && created && !labelled:
		verdict, message = begins, overshootMessage(set, n, high)
	case n <= low && (labelled || slices.ContainsFunc(set.Status.Conditions, aboutFreeze)):
		verdict, message = ends, fmt.Sprintf("%d machines <= %d", n, low)
	case told && !labelled:
		verdict, message = ends, "the label "+v1alpha1.FreezeLabelKey+" was taken off"
	case labelled && !told:
		verdict, message = begins, fmt.Sprintf("MachineSet %s has %d machines and stays frozen until it has %d", set.Name, n, low)
	case labelled:
		s.frozen[controllerOf(set)] = cmp.Or(s.frozen[controllerOf(set)], cause{follows, "MachineSet " + set.Name + " is frozen"})
		s.hold(set, fmt.Sprintf("%d machines; it goes on at %d", n, low))
	case n >= high:
		s.hold(set, fmt.Sprintf("%d machines >= %d; it is frozen once it creates another", n, high))
	}
	s.write(set, verdict, message)
}

// write writes the verdict about a set.
func (s *overshoot) write(set *v1alpha1.MachineSet, verdict freezing, message string) {
	switch verdict {
	case stays:
		return
	case begins:
		s.frozen[controllerOf(set)] = cmp.Or(s.frozen[controllerOf(set)], cause{Overshooting, message})
	case ends:
		s.waits[controllerOf(set)] = set.Name
	}
	next, event := freezeSet(set, verdict, message, s.now)
	s.d.Actions = append(s.d.Actions, FreezeWrite{Set: next, Frozen: verdict == begins, Message: message, Event: event})
}

func (s *overshoot) hold(set *v1alpha1.MachineSet, message string) {
	s.d.Holds = append(s.d.Holds, machinist.Hold{Subject: "set " + set.Name, Reason: Overshooting, Message: message, Until: s.d.NextCheck})
}

// created reports whether a machine of a set was created since the set has been asked for
// what it is asked for now, and remembers that. The time begins anew with unfreeze, and when
// the label was taken off.
func (s *overshoot) created(set *v1alpha1.MachineSet, parent *v1alpha1.MachineDeployment, high int, unfreeze bool) bool {
	is := asked{generation: set.Generation, high: high, labelled: isFrozen(set.Labels)}
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
	if unfreeze || !known || was.labelled && !is.labelled || is.generation > was.generation || is.parent != was.parent || is.parentGeneration > was.parentGeneration || high < was.high {
		is.since = s.now
		if newest.After(is.since) {
			is.since = newest
		}
		is.since = is.since.Add(settle)
	} else { // a cache may show an older one than was read before
		is.since, is.generation, is.parentGeneration = was.since, was.generation, was.parentGeneration
	}
	s.next[set.UID] = is
	return newest.After(is.since)
}

// follow makes a deployment what its sets are.
func (s *overshoot) follow(d *v1alpha1.MachineDeployment) {
	why, frozen := s.frozen[d.UID]
	labelled, told := isFrozen(d.Labels), deploymentTold(d)
	switch {
	case frozen && (!labelled || !told):
		next, event := freezeDeployment(d, begins, why.reason, why.message, s.now)
		s.d.Actions = append(s.d.Actions, FreezeWrite{Deployment: next, Frozen: true, Message: why.message, Event: event})
	case !frozen && s.waits[d.UID] != "" && asksUnfreeze(d):
		s.d.Holds = append(s.d.Holds, machinist.Hold{
			Subject: "deployment " + d.Name, Reason: follows, Until: s.d.NextCheck,
			Message: "it is unfrozen once MachineSet " + s.waits[d.UID] + " is seen unfrozen",
		})
	case !frozen && (labelled || told || asksUnfreeze(d)):
		next, event := freezeDeployment(d, ends, "", "", s.now)
		s.d.Actions = append(s.d.Actions, FreezeWrite{Deployment: next, Message: "none of its sets is frozen", Event: event})
	}
}

// controllerOf returns the UID of an object's controller, empty if it has none.
func controllerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

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
