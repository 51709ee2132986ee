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

// OvershootPolicy says when a set has too many machines. Numbers below 0 count as 0. The
// zero policy is the strictest: a set that has reached its limit may not create.
type OvershootPolicy struct {
	// Up is how many machines above its limit freeze a set.
	Up int32
	// Down is how many machines below the number that froze it let a set go on. At least 1
	// keeps a set from being frozen and unfrozen in turns.
	Down int32
	// Period is the time between two looks. Zero or less means 1m.
	Period time.Duration
}

// DefaultOvershootPolicy returns the numbers of MCM: 2 up and 1 down, every minute.
func DefaultOvershootPolicy() OvershootPolicy {
	return OvershootPolicy{Up: 2, Down: 1, Period: time.Minute}
}

// marks returns the number of machines that freezes a set, and the number that unfreezes
// it. The limit of a set of a deployment is what [deployment.BoundsOf] allows, or its own
// replicas if these are more: the deployment has not lowered them yet. The limit of a set
// without a deployment is twice its replicas.
func (p OvershootPolicy) marks(replicas int32, parent *v1alpha1.MachineDeployment) (high, low int) {
	most := 2 * int(max(0, replicas))
	if parent != nil {
		b, _ := deployment.BoundsOf(parent) // bounds that cannot be read allow no more than the replicas
		most = max(int(b.Most()), int(replicas))
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

// overshootMessage is what the conditions say.
func overshootMessage(set *v1alpha1.MachineSet, machines, high int) string {
	return fmt.Sprintf("The number of machines backing MachineSet: %s is %d >= %d which is the Max-ScaleUp-Limit", set.Name, machines, high)
}

// freezeSet returns a copy of a set with the label and the condition Frozen, or without
// both and without the annotation that asks for that, and the Event to report once it is
// written.
func freezeSet(set *v1alpha1.MachineSet, f freezing, message string, now time.Time) (*v1alpha1.MachineSet, *machinist.Event) {
	next := set.DeepCopy()
	label(next, f)
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c v1alpha1.MachineSetCondition) bool {
		said := f == begins && c.Status == v1alpha1.ConditionTrue && c.Reason == string(Overshooting)
		return aboutFreeze(c) && !said
	})
	if f == ends {
		return next, &machinist.Event{Type: "Normal", Reason: "UnfrozeMachineSet", Message: "SafetyController: Unfroze MachineSet " + set.Name}
	}
	if !setTold(next) {
		next.Status.Conditions = append(next.Status.Conditions, v1alpha1.MachineSetCondition{
			Type: v1alpha1.MachineSetFrozen, Status: v1alpha1.ConditionTrue, Reason: string(Overshooting), Message: message, LastTransitionTime: metav1.NewTime(now),
		})
	}
	return next, &machinist.Event{Type: "Normal", Reason: "FrozeMachineSet", Message: "SafetyController: Froze MachineSet " + set.Name + " due to replica overshooting"}
}

// freezeDeployment is freezeSet for a deployment.
func freezeDeployment(d *v1alpha1.MachineDeployment, f freezing, r machinist.Reason, message string, now time.Time) (*v1alpha1.MachineDeployment, *machinist.Event) {
	next := d.DeepCopy()
	label(next, f)
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
		said := f == begins && c.Status == v1alpha1.ConditionTrue && c.Reason == string(r)
		return c.Type == v1alpha1.MachineDeploymentFrozen && !said
	})
	if f == ends {
		return next, &machinist.Event{Type: "Normal", Reason: "UnfrozeMachineDeployment", Message: "SafetyController: Unfroze MachineDeployment " + d.Name}
	}
	if !deploymentTold(next) {
		next.Status.Conditions = append(next.Status.Conditions, v1alpha1.MachineDeploymentCondition{
			Type: v1alpha1.MachineDeploymentFrozen, Status: v1alpha1.ConditionTrue, Reason: string(r), Message: message,
			LastTransitionTime: metav1.NewTime(now), LastUpdateTime: metav1.NewTime(now),
		})
	}
	return next, &machinist.Event{Type: "Normal", Reason: "FrozeMachineDeployment", Message: "SafetyController: Froze MachineDeployment " + d.Name + ": " + message}
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

// aboutFreeze reports whether a condition is the condition Frozen, whatever it says.
func aboutFreeze(c v1alpha1.MachineSetCondition) bool { return c.Type == v1alpha1.MachineSetFrozen }

// setTold reports whether the condition of a set says that it is frozen.
func setTold(set *v1alpha1.MachineSet) bool {
	return slices.ContainsFunc(set.Status.Conditions, func(c v1alpha1.MachineSetCondition) bool {
		return aboutFreeze(c) && c.Status == v1alpha1.ConditionTrue
	})
}

// deploymentTold is setTold for a deployment.
func deploymentTold(d *v1alpha1.MachineDeployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
		return c.Type == v1alpha1.MachineDeploymentFrozen && c.Status == v1alpha1.ConditionTrue
	})
}

// asksUnfreeze reports whether an annotation of an object asks to unfreeze it.
func asksUnfreeze(o metav1.Object) bool {
	_, asked := o.GetAnnotations()[v1alpha1.UnfreezeAnnotation]
	return asked
}
