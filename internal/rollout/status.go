// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Texts of the Available condition.
const (
	availableMessage   = "Deployment has minimum availability."
	unavailableMessage = "Deployment does not have minimum availability."
)

// Counted returns the counters, the failed machines and the condition Available that follow from
// the sets. Other conditions and the collision count are copied. [Status] adds the condition
// Progressing. Nil sets are skipped. A nil deployment has the zero status.
func Counted(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet, now time.Time) v1alpha1.MachineDeploymentStatus {
	if d == nil {
		return v1alpha1.MachineDeploymentStatus{}
	}
	carried := d.Status.DeepCopy()
	out := v1alpha1.MachineDeploymentStatus{
		ObservedGeneration: d.Generation,
		CollisionCount:     carried.CollisionCount,
		FailedMachines:     []*v1alpha1.MachineSummary{},
	}
	var asked, replicas, ready, available, preserved int64
	for _, s := range append(slices.Clip(old), newSet) {
		if s == nil {
			continue
		}
		asked += int64(s.Spec.Replicas)
		replicas += int64(s.Status.Replicas)
		ready += int64(s.Status.ReadyReplicas)
		available += int64(s.Status.AvailableReplicas)
		preserved += int64(s.Status.PreservedFailedReplicas)
		if s.Status.FailedMachines != nil {
			for _, m := range *s.Status.FailedMachines {
				out.FailedMachines = append(out.FailedMachines, m.DeepCopy())
			}
		}
	}
	out.Replicas, out.ReadyReplicas = Narrow(replicas), Narrow(ready)
	out.AvailableReplicas, out.PreservedFailedReplicas = Narrow(available), Narrow(preserved)
	if newSet != nil {
		out.UpdatedReplicas = newSet.Status.Replicas
	}
	out.UnavailableReplicas = Narrow(max(0, asked-int64(out.AvailableReplicas)))
	out.Conditions = With(carried.Conditions, availability(d, out, now))
	return out
}

// availability returns the condition Available. Preserved failed machines do not count as missing.
// A deployment with the strategy Recreate is available only with all machines.
func availability(d *v1alpha1.MachineDeployment, s v1alpha1.MachineDeploymentStatus, now time.Time) v1alpha1.MachineDeploymentCondition {
	b, _ := LimitsOf(d) // bounds that cannot be read allow no machine less
	if d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType {
		b.Unavailable = 0
	}
	if int64(s.AvailableReplicas) >= max(0, b.Least()-int64(s.PreservedFailedReplicas)) {
		return NewCondition(v1alpha1.MachineDeploymentAvailable, v1alpha1.ConditionTrue, v1alpha1.MinimumReplicasAvailable, availableMessage, now)
	}
	return NewCondition(v1alpha1.MachineDeploymentAvailable, v1alpha1.ConditionFalse, v1alpha1.MinimumReplicasUnavailable, unavailableMessage, now)
}

// Condition returns a copy of the condition of a type, or nil.
func Condition(status v1alpha1.MachineDeploymentStatus, kind v1alpha1.MachineDeploymentConditionType) *v1alpha1.MachineDeploymentCondition {
	for _, c := range status.Conditions {
		if c.Type == kind {
			return &c
		}
	}
	return nil
}

// NewCondition returns a condition with both times.
func NewCondition(kind v1alpha1.MachineDeploymentConditionType, status v1alpha1.ConditionStatus, reason, message string, now time.Time) v1alpha1.MachineDeploymentCondition {
	return v1alpha1.MachineDeploymentCondition{
		Type: kind, Status: status, Reason: reason, Message: message,
		LastUpdateTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	}
}

// WithStep returns the conditions with a reason and a message in Progressing.
func WithStep(conditions []v1alpha1.MachineDeploymentCondition, reason, message string, now time.Time) []v1alpha1.MachineDeploymentCondition {
	return With(conditions, NewCondition(v1alpha1.MachineDeploymentProgressing, v1alpha1.ConditionTrue, reason, message, now))
}

// With returns the conditions with c instead of the one of its type. A condition with the
// same status and reason stays. One with the same status keeps its transition time.
func With(conditions []v1alpha1.MachineDeploymentCondition, c v1alpha1.MachineDeploymentCondition) []v1alpha1.MachineDeploymentCondition {
	for _, present := range conditions {
		switch {
		case present.Type != c.Type || present.Status != c.Status:
		case present.Reason == c.Reason:
			return conditions
		default:
			c.LastTransitionTime = present.LastTransitionTime
		}
	}
	return append(Without(conditions, c.Type), c)
}

// WithMessage returns the conditions with another message in Progressing, unless it says that a rollout has
// ended. The times stay, because a new text is no progress.
func WithMessage(conditions []v1alpha1.MachineDeploymentCondition, message string) []v1alpha1.MachineDeploymentCondition {
	conditions = slices.Clone(conditions)
	for i, c := range conditions {
		if c.Type == v1alpha1.MachineDeploymentProgressing && c.Reason != v1alpha1.NewMachineSetAvailable {
			conditions[i].Message = message
		}
	}
	return conditions
}

// WithoutFuture returns the conditions with Progressing updated now at the latest. A clock that is
// ahead may have set a later time, which would delay the progress deadline.
func WithoutFuture(conditions []v1alpha1.MachineDeploymentCondition, now time.Time) []v1alpha1.MachineDeploymentCondition {
	conditions = slices.Clone(conditions)
	for i, c := range conditions {
		if c.Type == v1alpha1.MachineDeploymentProgressing && c.LastUpdateTime.After(now) {
			conditions[i].LastUpdateTime = metav1.NewTime(now)
		}
	}
	return conditions
}

// Without returns the conditions except those of a type.
func Without(conditions []v1alpha1.MachineDeploymentCondition, kind v1alpha1.MachineDeploymentConditionType) []v1alpha1.MachineDeploymentCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c v1alpha1.MachineDeploymentCondition) bool { return c.Type == kind })
}

// WithPause returns the stored conditions with the beginning or the end of a pause. A rollout that
// exceeded its deadline keeps that condition.
func WithPause(d *v1alpha1.MachineDeployment, now time.Time) []v1alpha1.MachineDeploymentCondition {
	reason := ""
	if c := Condition(d.Status, v1alpha1.MachineDeploymentProgressing); c != nil {
		reason = c.Reason
	}
	if reason == v1alpha1.ProgressDeadlineExceeded || d.Spec.Paused == (reason == v1alpha1.DeploymentPaused) {
		return d.Status.Conditions
	}
	next, message := v1alpha1.DeploymentResumed, "Deployment is resumed"
	if d.Spec.Paused {
		next, message = v1alpha1.DeploymentPaused, "Deployment is paused"
	}
	return With(d.Status.Conditions, NewCondition(v1alpha1.MachineDeploymentProgressing, v1alpha1.ConditionUnknown, next, message, now))
}

// progressed reports whether more machines are updated, ready or available in the second status, or
// fewer old ones exist.
func progressed(from, to v1alpha1.MachineDeploymentStatus) bool {
	return to.UpdatedReplicas > from.UpdatedReplicas ||
		to.Replicas-to.UpdatedReplicas < from.Replicas-from.UpdatedReplicas ||
		to.ReadyReplicas > from.ReadyReplicas ||
		to.AvailableReplicas > from.AvailableReplicas
}

// timedOut reports whether the progress deadline is exceeded, according to the condition
// Progressing, and returns the time of the deadline. The time is zero if no deadline applies. A
// complete rollout has none. An exceeded deadline stays exceeded until there is progress.
func timedOut(d *v1alpha1.MachineDeployment, status v1alpha1.MachineDeploymentStatus, now time.Time) (bool, time.Time) {
	c := Condition(status, v1alpha1.MachineDeploymentProgressing)
	switch {
	case d.Spec.ProgressDeadlineSeconds == nil || c == nil || c.Reason == v1alpha1.NewMachineSetAvailable:
		return false, time.Time{}
	case c.Reason == v1alpha1.ProgressDeadlineExceeded:
		return true, time.Time{}
	}
	at := c.LastUpdateTime.Add(time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second)
	return at.Before(now), at
}

// Status returns the status of a deployment with the conditions Progressing and ReplicaFailure, and the
// time of the progress deadline, or zero. The status of d must be the stored one. Only sets that are at
// rest complete a rollout: they have reported on their present size.
func Status(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet, now time.Time, atRest bool) (v1alpha1.MachineDeploymentStatus, time.Time) {
	out := Counted(d, newSet, old, now)
	if d == nil {
		return out, time.Time{}
	}
	out.Conditions = WithoutRefusal(out)
	complete := atRest && Complete(d, out)
	cur := Condition(d.Status, v1alpha1.MachineDeploymentProgressing)
	ended := cur != nil && cur.Reason == v1alpha1.NewMachineSetAvailable && out.Replicas == out.UpdatedReplicas
	if !ended {
		out.Conditions = withProgress(d, newSet, out, complete, now)
	}
	out.Conditions = withReplicaFailure(out.Conditions, newSet, old)
	_, at := timedOut(d, out, now)
	if complete || at.IsZero() {
		return out, time.Time{}
	}
	return out, at.Add(time.Second) // stored times have no fractions of a second
}

func withProgress(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, status v1alpha1.MachineDeploymentStatus, complete bool, now time.Time) []v1alpha1.MachineDeploymentCondition {
	subject := fmt.Sprintf("Machine Deployment %q", d.Name)
	if newSet != nil {
		subject = fmt.Sprintf("MachineSet %q", newSet.Name)
	}
	const kind = v1alpha1.MachineDeploymentProgressing
	switch late, _ := timedOut(d, status, now); {
	case complete:
		return With(status.Conditions, NewCondition(kind, v1alpha1.ConditionTrue, v1alpha1.NewMachineSetAvailable, subject+" has successfully progressed.", now))
	case progressed(d.Status, status):
		c := NewCondition(kind, v1alpha1.ConditionTrue, v1alpha1.MachineSetUpdated, subject+" is progressing.", now)
		if cur := Condition(d.Status, kind); cur != nil && cur.Status == v1alpha1.ConditionTrue {
			c.LastTransitionTime = cur.LastTransitionTime
		}
		return append(Without(status.Conditions, kind), c)
	case late:
		return With(status.Conditions, NewCondition(kind, v1alpha1.ConditionFalse, v1alpha1.ProgressDeadlineExceeded, subject+" has timed out progressing.", now))
	default:
		return status.Conditions
	}
}

// withReplicaFailure returns the conditions with the ReplicaFailure of the new set, or of the first
// other set that has one.
func withReplicaFailure(conditions []v1alpha1.MachineDeploymentCondition, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) []v1alpha1.MachineDeploymentCondition {
	for _, s := range append([]*v1alpha1.MachineSet{newSet}, old...) {
		if c := FailureOf(s); c != nil {
			return With(conditions, NewCondition(v1alpha1.MachineDeploymentReplicaFailure, c.Status, c.Reason, c.Message, c.LastTransitionTime.Time))
		}
	}
	return Without(conditions, v1alpha1.MachineDeploymentReplicaFailure)
}

// FailureOf returns the condition ReplicaFailure of a set, or nil.
func FailureOf(s *v1alpha1.MachineSet) *v1alpha1.MachineSetCondition {
	if s == nil {
		return nil
	}
	for _, c := range s.Status.Conditions {
		if c.Type == v1alpha1.MachineSetReplicaFailure {
			return &c
		}
	}
	return nil
}

// Complete reports whether a rollout is complete according to a status, as documented at
// deployment.Complete.
func Complete(d *v1alpha1.MachineDeployment, status v1alpha1.MachineDeploymentStatus) bool {
	return d != nil && d.Spec.RollbackTo == nil && !saysRefused(status) &&
		status.UpdatedReplicas == d.Spec.Replicas &&
		status.Replicas == d.Spec.Replicas &&
		status.AvailableReplicas == d.Spec.Replicas &&
		status.ObservedGeneration >= d.Generation
}

// The reasons of a refused spec in the condition Progressing.
const (
	InvalidSpec   = "InvalidSpec"
	EmptySelector = "EmptySelector"
)

// saysRefused reports whether the condition Progressing says that the spec was refused.
func saysRefused(status v1alpha1.MachineDeploymentStatus) bool {
	c := Condition(status, v1alpha1.MachineDeploymentProgressing)
	return c != nil && (c.Reason == InvalidSpec || c.Reason == EmptySelector)
}

// WithoutRefusal returns the conditions without a Progressing condition of a refused spec. The
// rollout of a valid spec starts again.
func WithoutRefusal(status v1alpha1.MachineDeploymentStatus) []v1alpha1.MachineDeploymentCondition {
	if !saysRefused(status) {
		return status.Conditions
	}
	return Without(status.Conditions, v1alpha1.MachineDeploymentProgressing)
}
