// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// OvershootPolicy says when a set has far more machines than anybody asked for.
// The zero policy is the strictest: a set is frozen as soon as it has as many
// machines as there may be, and let go at the same number. Numbers below 0 count
// as 0.
type OvershootPolicy struct {
	// Up is how many machines above the most that may be needed freeze a set.
	Up int32
	// Down is how many fewer than those that freeze a set let it go on. At least 1
	// keeps a set from being frozen and let go in turns.
	Down int32
	// Period is the time between two looks. Zero or less means 1 minute, as in the
	// reference system.
	Period time.Duration
}

// DefaultOvershootPolicy returns the numbers of the reference system: 2 up and 1
// down, every minute.
func DefaultOvershootPolicy() OvershootPolicy {
	return OvershootPolicy{Up: 2, Down: 1, Period: time.Minute}
}

// Room is how many machines the deployment of a set may have. Numbers below 0
// count as 0.
type Room struct {
	// Desired are the replicas of the deployment.
	Desired int32
	// Surge is how many more its strategy allows; 0 for one that allows none, such
	// as Recreate. The reference system judges no set any more if one deployment
	// does not say.
	Surge int32
}

// Marks returns the number of machines that freezes a set of so many replicas,
// and the one that lets it go on. With a deployment these are desired + surge +
// up, and down less; without one, for which room is nil, twice the replicas take
// the place of desired + surge.
func (p OvershootPolicy) Marks(replicas int32, room *Room) (high, low int) {
	most := 2 * int(max(0, replicas))
	if room != nil {
		most = int(max(0, room.Desired)) + int(max(0, room.Surge))
	}
	high = most + int(max(0, p.Up))
	return high, high - int(max(0, p.Down))
}

// Freezing is what becomes of the freeze of an object.
type Freezing string

// What becomes of a freeze.
const (
	// FreezeStays leaves it as it is.
	FreezeStays Freezing = "Stays"
	// FreezeBegins freezes the object.
	FreezeBegins Freezing = "Freeze"
	// FreezeEnds lets the object go on.
	FreezeEnds Freezing = "Unfreeze"
)

// Reasons of a freeze, which are also those of the Frozen conditions.
const (
	// Overshooting means that a set has too many machines.
	Overshooting machinist.Reason = v1alpha1.OverShootingReplicaCount
	// FreezeFollows means that a deployment follows its sets.
	FreezeFollows machinist.Reason = v1alpha1.MachineDeploymentStateSync
)

// OvershootOf judges one set that has so many machines: if it is not frozen and
// has as many as freeze it, it is frozen; else, if it is frozen and has no more
// than let it go on, it goes on. A set without the label counts as frozen while it
// has the condition. A nil set stays.
func OvershootOf(set *v1alpha1.MachineSet, machines int, room *Room, p OvershootPolicy) Freezing {
	if set == nil {
		return FreezeStays
	}
	high, low := p.Marks(set.Spec.Replicas, room)
	labelled := isFrozen(set.Labels)
	switch {
	case machines >= high && !labelled:
		return FreezeBegins
	case machines <= low && (labelled || setFrozen(set)):
		return FreezeEnds
	default:
		return FreezeStays
	}
}

// overshootMessage is what the conditions say.
func overshootMessage(set *v1alpha1.MachineSet, machines, high int) string {
	return fmt.Sprintf("The number of machines backing MachineSet: %s is %d >= %d which is the Max-ScaleUp-Limit", set.Name, machines, high)
}

// FreezeSet returns a copy of a set with what the freezing makes of it: the label
// and the condition Frozen, which come or go together, and without the annotation
// that asks to unfreeze if they go. It also returns the event to report once it is
// written, nil for none.
func FreezeSet(set *v1alpha1.MachineSet, f Freezing, r machinist.Reason, message string, now time.Time) (*v1alpha1.MachineSet, *machinist.Event) {
	next := set.DeepCopy()
	if next == nil || f != FreezeBegins && f != FreezeEnds {
		return next, nil
	}
	label(next, f)
	if f == FreezeEnds {
		next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, frozenSetCondition)
		return next, &machinist.Event{Type: "Normal", Reason: "UnfrozeMachineSet", Message: "SafetyController: Unfroze MachineSet " + set.Name}
	}
	i := slices.IndexFunc(next.Status.Conditions, frozenSetCondition)
	if i < 0 || next.Status.Conditions[i].Status != v1alpha1.ConditionTrue || next.Status.Conditions[i].Reason != string(r) {
		next.Status.Conditions = append(slices.DeleteFunc(next.Status.Conditions, frozenSetCondition), v1alpha1.MachineSetCondition{
			Type: v1alpha1.MachineSetFrozen, Status: v1alpha1.ConditionTrue, Reason: string(r), Message: message, LastTransitionTime: metav1.NewTime(now),
		})
	}
	return next, &machinist.Event{Type: "Normal", Reason: "FrozeMachineSet", Message: "SafetyController: Froze MachineSet " + set.Name + " due to replica overshooting"}
}

// FreezeDeployment is [FreezeSet] for a deployment, without an event.
func FreezeDeployment(d *v1alpha1.MachineDeployment, f Freezing, r machinist.Reason, message string, now time.Time) *v1alpha1.MachineDeployment {
	next := d.DeepCopy()
	if next == nil || f != FreezeBegins && f != FreezeEnds {
		return next
	}
	label(next, f)
	if f == FreezeEnds {
		next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, frozenDeploymentCondition)
		return next
	}
	i := slices.IndexFunc(next.Status.Conditions, frozenDeploymentCondition)
	if i < 0 || next.Status.Conditions[i].Status != v1alpha1.ConditionTrue || next.Status.Conditions[i].Reason != string(r) {
		next.Status.Conditions = append(slices.DeleteFunc(next.Status.Conditions, frozenDeploymentCondition), v1alpha1.MachineDeploymentCondition{
			Type: v1alpha1.MachineDeploymentFrozen, Status: v1alpha1.ConditionTrue, Reason: string(r), Message: message,
			LastTransitionTime: metav1.NewTime(now), LastUpdateTime: metav1.NewTime(now),
		})
	}
	return next
}

// label sets or removes the label, and with it the wish to unfreeze.
func label(object metav1.Object, f Freezing) {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if f == FreezeEnds {
		delete(labels, v1alpha1.FreezeLabelKey)
		delete(annotations, v1alpha1.UnfreezeAnnotation)
		return
	}
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.FreezeLabelKey] = freezeValue
	object.SetLabels(labels)
}

// freezeValue is the value of the label that freezes; no other does.
const freezeValue = "True"

func isFrozen(labels map[string]string) bool { return labels[v1alpha1.FreezeLabelKey] == freezeValue }

func frozenSetCondition(c v1alpha1.MachineSetCondition) bool {
	return c.Type == v1alpha1.MachineSetFrozen
}

func frozenDeploymentCondition(c v1alpha1.MachineDeploymentCondition) bool {
	return c.Type == v1alpha1.MachineDeploymentFrozen
}

// setFrozen says whether a set has the label or the condition.
func setFrozen(set *v1alpha1.MachineSet) bool {
	return isFrozen(set.Labels) || slices.ContainsFunc(set.Status.Conditions, frozenSetCondition)
}
