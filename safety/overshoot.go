// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
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

// marks returns the number of machines that freezes a set of so many replicas, and the
// one that lets it go on. With a deployment these are what [deployment.BoundsOf] says may
// exist + up, and down less; without one twice the replicas take the place of that.
func (p OvershootPolicy) marks(replicas int32, parent *v1alpha1.MachineDeployment) (high, low int) {
	most := 2 * int(max(0, replicas))
	if parent != nil {
		b, _ := deployment.BoundsOf(parent) // bounds that cannot be read allow no machine more
		most = int(b.Most())
	}
	high = most + int(max(0, p.Up))
	return high, high - int(max(0, p.Down))
}

// Overshooting is the reason of a freeze, and of the Frozen condition: a set has too many
// machines.
const Overshooting machinist.Reason = v1alpha1.OverShootingReplicaCount

// follows is the reason of the Frozen condition of a deployment that follows its sets.
const follows machinist.Reason = v1alpha1.MachineDeploymentStateSync

// freezing is what becomes of the freeze of an object.
type freezing int

const (
	stays freezing = iota
	begins
	ends
)

// judge judges one set that has so many machines: if it is not frozen and has as many as
// freeze it, it is frozen; else, if it is frozen and has no more than let it go on, it
// goes on. A set without the label counts as frozen while it has the condition.
func judge(set *v1alpha1.MachineSet, machines, high, low int) freezing {
	labelled := isFrozen(set.Labels)
	switch {
	case machines >= high && !labelled:
		return begins
	case machines <= low && (labelled || setFrozen(set)):
		return ends
	default:
		return stays
	}
}

// overshootMessage is what the conditions say.
func overshootMessage(set *v1alpha1.MachineSet, machines, high int) string {
	return fmt.Sprintf("The number of machines backing MachineSet: %s is %d >= %d which is the Max-ScaleUp-Limit", set.Name, machines, high)
}

// freezeSet returns a copy of a set with what the freezing makes of it: the label
// and the condition Frozen, which come or go together, and without the annotation
// that asks to unfreeze if they go. It also returns the event to report once it is
// written, nil for none.
func freezeSet(set *v1alpha1.MachineSet, f freezing, message string, now time.Time) (*v1alpha1.MachineSet, *machinist.Event) {
	next := set.DeepCopy()
	label(next, f)
	if f == ends {
		next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, frozenSetCondition)
		return next, &machinist.Event{Type: "Normal", Reason: "UnfrozeMachineSet", Message: "SafetyController: Unfroze MachineSet " + set.Name}
	}
	i := slices.IndexFunc(next.Status.Conditions, frozenSetCondition)
	if i < 0 || next.Status.Conditions[i].Status != v1alpha1.ConditionTrue || next.Status.Conditions[i].Reason != string(Overshooting) {
		next.Status.Conditions = append(slices.DeleteFunc(next.Status.Conditions, frozenSetCondition), v1alpha1.MachineSetCondition{
			Type: v1alpha1.MachineSetFrozen, Status: v1alpha1.ConditionTrue, Reason: string(Overshooting), Message: message, LastTransitionTime: metav1.NewTime(now),
		})
	}
	return next, &machinist.Event{Type: "Normal", Reason: "FrozeMachineSet", Message: "SafetyController: Froze MachineSet " + set.Name + " due to replica overshooting"}
}

// freezeDeployment is freezeSet for a deployment, without an event.
func freezeDeployment(d *v1alpha1.MachineDeployment, f freezing, r machinist.Reason, message string, now time.Time) *v1alpha1.MachineDeployment {
	next := d.DeepCopy()
	label(next, f)
	if f == ends {
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
func label(object metav1.Object, f freezing) {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if f == ends {
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
