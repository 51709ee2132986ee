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
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// OvershootObservation is what [Overshoot] is told. The zero observation is of a
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

// A FreezeWrite is one object whose freeze changes: metadata and status of it are
// to be written. It is safe to lose and to repeat.
type FreezeWrite struct {
	// Set or Deployment is the edited copy, resource version included; the other one
	// is nil. The receiver of the decision owns it.
	Set        *v1alpha1.MachineSet
	Deployment *v1alpha1.MachineDeployment
	// Frozen says that the object is frozen; if not, it goes on.
	Frozen bool
	// Message says why, for people.
	Message string
	// Event is what to report on the object once it is written, nil for nothing.
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

// OvershootDecision is which freezes begin and end.
type OvershootDecision struct {
	// Writes of all sets, then of all deployments, by their names.
	Writes []FreezeWrite
	// Holds are the sets that stay frozen, by their names.
	Holds []machinist.Hold
	// NextCheck is when to look again. It is after now.
	NextCheck time.Time
}

// Overshoot freezes sets that have far more machines than anybody asked for, so
// that they create no more, and lets them go on when they have fewer. That is the
// last net below the counting of package machineset: whatever creates machines
// without end is stopped by it.
//
//   - All sets are judged in one call, each by itself. Machines are
//     those that the set controls, by its UID, and which are not on their way out.
//     The deployment of a set is the one that controls it.
//   - A set, or a deployment with all its sets, that carries the annotation which
//     asks for it goes on in any case. It may be frozen again by the next call.
//   - A deployment is frozen while one of its sets is.
//   - Sets and deployments that are being deleted, or have no UID, are left alone.
//
// The reference system stops at the first set that changes, counts machines that
// are leaving, and looks for owners by name. What a freeze means is the business
// of packages machineset and deployment.
func Overshoot(in OvershootObservation, p OvershootPolicy, now time.Time) OvershootDecision {
	s := overshoot{in: in, policy: p, now: now, frozen: map[types.UID]string{}}
	s.d.NextCheck = now.Add(p.period())
	if !in.Complete {
		s.d.Holds = append(s.d.Holds, machinist.Hold{Subject: "machines", Reason: MachinesUnusable, Message: "the lists may not be whole", Until: s.d.NextCheck})
		return s.d
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
	return s.d
}

func (p OvershootPolicy) period() time.Duration {
	if p.Period <= 0 {
		return time.Minute
	}
	return p.Period
}

// overshoot is one decision in the making.
type overshoot struct {
	in          OvershootObservation
	policy      OvershootPolicy
	now         time.Time
	machines    map[types.UID][]*v1alpha1.Machine // by the UID of their controller
	deployments []*v1alpha1.MachineDeployment
	parents     map[types.UID]*v1alpha1.MachineDeployment
	frozen      map[types.UID]string // why, by the UID of the deployment
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
	parent := s.parents[controllerOf(set)]
	n := machineset.Count(set, s.machines[set.UID], nil, s.now).Present
	high, low := s.policy.marks(set.Spec.Replicas, parent)
	verdict, message := judge(set, n, high, low), overshootMessage(set, n, high)
	_, asked := set.Annotations[v1alpha1.UnfreezeAnnotation]
	if parent != nil {
		_, all := parent.Annotations[v1alpha1.UnfreezeAnnotation]
		asked = asked || all
	}
	switch {
	case asked:
		verdict, message = stays, "an annotation asks for it"
		if _, noted := set.Annotations[v1alpha1.UnfreezeAnnotation]; noted || setFrozen(set) {
			verdict = ends
		}
	case verdict == ends:
		message = fmt.Sprintf("%d machines <= %d", n, low)
	case verdict == begins:
		s.frozen[controllerOf(set)] = message
	case setFrozen(set):
		if _, known := s.frozen[controllerOf(set)]; !known {
			s.frozen[controllerOf(set)] = ""
		}
		s.d.Holds = append(s.d.Holds, machinist.Hold{
			Subject: "set " + set.Name, Reason: Overshooting, Until: s.d.NextCheck,
			Message: fmt.Sprintf("%d machines; it goes on at %d", n, low),
		})
	}
	if verdict != stays {
		next, event := freezeSet(set, verdict, message, s.now)
		s.d.Writes = append(s.d.Writes, FreezeWrite{Set: next, Frozen: verdict == begins, Message: message, Event: event})
	}
}

// follow makes a deployment what its sets are.
func (s *overshoot) follow(d *v1alpha1.MachineDeployment) {
	why, frozen := s.frozen[d.UID]
	labelled, told := isFrozen(d.Labels), slices.ContainsFunc(d.Status.Conditions, frozenDeploymentCondition)
	_, asked := d.Annotations[v1alpha1.UnfreezeAnnotation]
	reason := Overshooting
	if why == "" {
		reason, why = follows, "one of its sets is frozen"
	}
	switch {
	case frozen && (!labelled || !told):
		next := freezeDeployment(d, begins, reason, why, s.now)
		s.d.Writes = append(s.d.Writes, FreezeWrite{Deployment: next, Frozen: true, Message: why})
	case !frozen && (labelled || told || asked):
		next := freezeDeployment(d, ends, "", "", s.now)
		s.d.Writes = append(s.d.Writes, FreezeWrite{Deployment: next, Message: "none of its sets is frozen"})
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
