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

// OvershootPolicy defines when a set has too many machines. Numbers below 0 mean 0. The zero
// policy is the strictest: a set at its limit is frozen.
type OvershootPolicy struct {
	// Up is the number of machines above the limit at which a set is frozen.
	Up int32
	// Down is how far below that number a set is unfrozen. With at least 1 a set does not
	// alternate between both.
	Down int32
	// Period is the time between two checks. Zero or less means 1m.
	Period time.Duration
}

// DefaultOvershootPolicy returns the values of MCM: 2 up, 1 down, every minute.
func DefaultOvershootPolicy() OvershootPolicy {
	return OvershootPolicy{Up: 2, Down: 1, Period: time.Minute}
}

// thresholds returns the numbers of machines at which a set is frozen and unfrozen. The limit
// of a set in a deployment is the larger of [deployment.BoundsOf] and its replicas. The limit
// of a set without a deployment is twice its replicas.
func (p OvershootPolicy) thresholds(replicas int32, parent *v1alpha1.MachineDeployment) (high, low int) {
	most := 2 * int(max(0, replicas))
	if parent != nil {
		b, _ := deployment.BoundsOf(parent) // invalid bounds allow the replicas only
		most = max(int(b.Most()), int(replicas))
	}
	high = most + int(max(0, p.Up))
	return high, high - int(max(0, p.Down))
}

// freezing is the change of the freeze of an object.
type freezing int

const (
	stays freezing = iota
	begins
	ends
)

// overshootMessage returns the message of the conditions, as in MCM.
func overshootMessage(set *v1alpha1.MachineSet, machines, high int) string {
	return fmt.Sprintf("The number of machines backing MachineSet: %s is %d >= %d which is the Max-ScaleUp-Limit", set.Name, machines, high)
}

// freezeSet returns a copy of a set with the label and the condition Frozen, or without both
// and without the unfreeze annotation. It also returns the Event for a successful write.
func freezeSet(set *v1alpha1.MachineSet, f freezing, message string, now time.Time) (*v1alpha1.MachineSet, *machinist.Event) {
	next := set.DeepCopy()
	label(next, f)
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c v1alpha1.MachineSetCondition) bool {
		said := f == begins && c.Status == v1alpha1.ConditionTrue && c.Reason == string(overshooting)
		return aboutFreeze(c) && !said
	})
	if f == ends {
		return next, &machinist.Event{Type: "Normal", Reason: eventSetUnfrozen, Message: "SafetyController: Unfroze MachineSet " + set.Name}
	}
	if !setConditionFrozen(next) {
		next.Status.Conditions = append(next.Status.Conditions, v1alpha1.MachineSetCondition{
			Type: v1alpha1.MachineSetFrozen, Status: v1alpha1.ConditionTrue, Reason: string(overshooting), Message: message, LastTransitionTime: metav1.NewTime(now),
		})
	}
	return next, &machinist.Event{Type: "Normal", Reason: eventSetFrozen, Message: "SafetyController: Froze MachineSet " + set.Name + " due to replica overshooting"}
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
		return next, &machinist.Event{Type: "Normal", Reason: eventDeploymentUnfrozen, Message: "SafetyController: Unfroze MachineDeployment " + d.Name}
	}
	if !deploymentConditionFrozen(next) {
		next.Status.Conditions = append(next.Status.Conditions, v1alpha1.MachineDeploymentCondition{
			Type: v1alpha1.MachineDeploymentFrozen, Status: v1alpha1.ConditionTrue, Reason: string(r), Message: message,
			LastTransitionTime: metav1.NewTime(now), LastUpdateTime: metav1.NewTime(now),
		})
	}
	return next, &machinist.Event{Type: "Normal", Reason: eventDeploymentFrozen, Message: "SafetyController: Froze MachineDeployment " + d.Name + ": " + message}
}

// label sets the freeze label, or removes it together with the unfreeze annotation.
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

// freezeValue is the only value of the label that freezes.
const freezeValue = "True"

func isFrozen(labels map[string]string) bool { return labels[v1alpha1.FreezeLabelKey] == freezeValue }

// aboutFreeze reports whether a condition has the type Frozen.
func aboutFreeze(c v1alpha1.MachineSetCondition) bool { return c.Type == v1alpha1.MachineSetFrozen }

// setConditionFrozen reports whether the condition Frozen of a set is true.
func setConditionFrozen(set *v1alpha1.MachineSet) bool {
	return slices.ContainsFunc(set.Status.Conditions, func(c v1alpha1.MachineSetCondition) bool {
		return aboutFreeze(c) && c.Status == v1alpha1.ConditionTrue
	})
}

// deploymentConditionFrozen reports whether the condition Frozen of a deployment is true.
func deploymentConditionFrozen(d *v1alpha1.MachineDeployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
		return c.Type == v1alpha1.MachineDeploymentFrozen && c.Status == v1alpha1.ConditionTrue
	})
}

// asksUnfreeze reports whether an object has the unfreeze annotation.
func asksUnfreeze(o metav1.Object) bool {
	_, asked := o.GetAnnotations()[v1alpha1.UnfreezeAnnotation]
	return asked
}
