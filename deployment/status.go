// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Texts of the Available condition.
const (
	availableMessage   = "Deployment has minimum availability."
	unavailableMessage = "Deployment does not have minimum availability."
)

// statusOf returns the status of a deployment that follows from its sets: the
// counters, the failed machines and the Available condition. The other
// conditions and the collision count are carried over. What a rollout adds to
// it is the business of [RolloutStatus]. The result shares no memory with the
// arguments; nil sets are skipped and a nil deployment has a zero status.
func statusOf(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet, now time.Time) v1alpha1.MachineDeploymentStatus {
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
	out.Replicas, out.ReadyReplicas = narrow(replicas), narrow(ready)
	out.AvailableReplicas, out.PreservedFailedReplicas = narrow(available), narrow(preserved)
	if newSet != nil {
		out.UpdatedReplicas = newSet.Status.Replicas
	}
	out.UnavailableReplicas = narrow(max(0, asked-int64(out.AvailableReplicas)))
	out.Conditions = withCondition(carried.Conditions, availability(d, out, now))
	return out
}

// availability returns the condition Available. Preserved failed machines are not missed.
// A Recreate leaves a gap, and is available only with all of its machines.
func availability(d *v1alpha1.MachineDeployment, s v1alpha1.MachineDeploymentStatus, now time.Time) v1alpha1.MachineDeploymentCondition {
	b, _ := BoundsOf(d) // bounds that cannot be read allow no machine less
	if d.Spec.Strategy.Type == v1alpha1.RecreateMachineDeploymentStrategyType {
		b.Unavailable = 0
	}
	if int64(s.AvailableReplicas) >= max(0, b.Least()-int64(s.PreservedFailedReplicas)) {
		return newCondition(v1alpha1.MachineDeploymentAvailable, v1alpha1.ConditionTrue, v1alpha1.MinimumReplicasAvailable, availableMessage, now)
	}
	return newCondition(v1alpha1.MachineDeploymentAvailable, v1alpha1.ConditionFalse, v1alpha1.MinimumReplicasUnavailable, unavailableMessage, now)
}

// conditionOf returns the condition of the given type, nil if there is none.
// It points into a copy.
func conditionOf(status v1alpha1.MachineDeploymentStatus, kind v1alpha1.MachineDeploymentConditionType) *v1alpha1.MachineDeploymentCondition {
	for _, c := range status.Conditions {
		if c.Type == kind {
			return &c
		}
	}
	return nil
}

func newCondition(kind v1alpha1.MachineDeploymentConditionType, status v1alpha1.ConditionStatus, reason, message string, now time.Time) v1alpha1.MachineDeploymentCondition {
	return v1alpha1.MachineDeploymentCondition{
		Type: kind, Status: status, Reason: reason, Message: message,
		LastUpdateTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	}
}

// withStep returns the conditions with a step of a rollout in the Progressing condition.
func withStep(conditions []v1alpha1.MachineDeploymentCondition, reason, message string, now time.Time) []v1alpha1.MachineDeploymentCondition {
	return withCondition(conditions, newCondition(v1alpha1.MachineDeploymentProgressing, v1alpha1.ConditionTrue, reason, message, now))
}

// withCondition returns the conditions with c put last, in place of the one of
// its type. One of the same status and reason stays as it is; one of the same
// status gives its transition time to c.
func withCondition(conditions []v1alpha1.MachineDeploymentCondition, c v1alpha1.MachineDeploymentCondition) []v1alpha1.MachineDeploymentCondition {
	for _, present := range conditions {
		switch {
		case present.Type != c.Type || present.Status != c.Status:
		case present.Reason == c.Reason:
			return conditions
		default:
			c.LastTransitionTime = present.LastTransitionTime
		}
	}
	return append(withoutCondition(conditions, c.Type), c)
}

// withoutFuture returns the conditions with the present time in place of a later one in
// the Progressing condition: it was recorded by a clock that is ahead of this one. The
// progress deadline begins anew, rather than late by the difference of the clocks.
func withoutFuture(conditions []v1alpha1.MachineDeploymentCondition, now time.Time) []v1alpha1.MachineDeploymentCondition {
	conditions = slices.Clone(conditions)
	for i, c := range conditions {
		if c.Type == v1alpha1.MachineDeploymentProgressing && c.LastUpdateTime.After(now) {
			conditions[i].LastUpdateTime = metav1.NewTime(now)
		}
	}
	return conditions
}

func withoutCondition(conditions []v1alpha1.MachineDeploymentCondition, kind v1alpha1.MachineDeploymentConditionType) []v1alpha1.MachineDeploymentCondition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c v1alpha1.MachineDeploymentCondition) bool { return c.Type == kind })
}

// withPause returns the stored conditions with a pause or its end written down.
// A rollout that missed its deadline stays so.
func withPause(d *v1alpha1.MachineDeployment, now time.Time) []v1alpha1.MachineDeploymentCondition {
	reason := ""
	if c := conditionOf(d.Status, v1alpha1.MachineDeploymentProgressing); c != nil {
		reason = c.Reason
	}
	if reason == v1alpha1.ProgressDeadlineExceeded || d.Spec.Paused == (reason == v1alpha1.DeploymentPaused) {
		return d.Status.Conditions
	}
	next, message := v1alpha1.DeploymentResumed, "Deployment is resumed"
	if d.Spec.Paused {
		next, message = v1alpha1.DeploymentPaused, "Deployment is paused"
	}
	return withCondition(d.Status.Conditions, newCondition(v1alpha1.MachineDeploymentProgressing, v1alpha1.ConditionUnknown, next, message, now))
}

// withFreeze returns the stored conditions with a freeze of the controllers or its end
// written down, for which there is one Event each.
func (c *pass) withFreeze() []v1alpha1.MachineDeploymentCondition {
	const kind = v1alpha1.MachineDeploymentControllerFrozen
	conditions, freeze := c.d.Status.Conditions, c.in.Freeze
	known := conditionOf(c.d.Status, kind)
	switch {
	case freeze.Frozen == (known != nil):
		return conditions
	case !freeze.Frozen:
		c.out.Events = append(c.out.Events, machinist.Event{Type: eventNormal, Reason: "ControllerUnfrozen", Message: brief(fmt.Sprintf(
			"The API servers answer again after a freeze since %s; health and creation timeouts begin anew", known.LastTransitionTime.UTC().Format(time.RFC3339)))})
		return withoutCondition(conditions, kind)
	}
	message := brief("Nothing is created, failed, replaced or rolled out until the API servers answer; deletions go on: " + freeze.Message)
	c.out.Events = append(c.out.Events, machinist.Event{Type: eventWarning, Reason: "ControllerFrozen", Message: message})
	return withCondition(conditions, newCondition(kind, v1alpha1.ConditionTrue, v1alpha1.APIServerUnreachable, message, freeze.Since))
}

// Complete reports whether a rollout has ended, judged by the given status: all
// machines are of the new set, as many as wanted, all available, and the status
// is of the present spec, which was not refused and asks for no rollback.
func Complete(d *v1alpha1.MachineDeployment, status v1alpha1.MachineDeploymentStatus) bool {
	return d != nil && d.Spec.RollbackTo == nil && !saysRefused(status) &&
		status.UpdatedReplicas == d.Spec.Replicas &&
		status.Replicas == d.Spec.Replicas &&
		status.AvailableReplicas == d.Spec.Replicas &&
		status.ObservedGeneration >= d.Generation
}

// progressed reports whether a rollout got on between two statuses: more
// machines are updated, ready or available, or fewer old ones are left.
func progressed(from, to v1alpha1.MachineDeploymentStatus) bool {
	return to.UpdatedReplicas > from.UpdatedReplicas ||
		to.Replicas-to.UpdatedReplicas < from.Replicas-from.UpdatedReplicas ||
		to.ReadyReplicas > from.ReadyReplicas ||
		to.AvailableReplicas > from.AvailableReplicas
}

// timedOut reports whether a rollout stood still for longer than its progress deadline,
// judged by the Progressing condition of the given status, and when that passes; zero if
// it is not running. A rollout that ended does not time out; one that did stays so until
// it gets on.
func timedOut(d *v1alpha1.MachineDeployment, status v1alpha1.MachineDeploymentStatus, now time.Time) (bool, time.Time) {
	c := conditionOf(status, v1alpha1.MachineDeploymentProgressing)
	switch {
	case d.Spec.ProgressDeadlineSeconds == nil || c == nil || c.Reason == v1alpha1.NewMachineSetAvailable:
		return false, time.Time{}
	case c.Reason == v1alpha1.ProgressDeadlineExceeded:
		return true, time.Time{}
	}
	at := c.LastUpdateTime.Add(time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second)
	return at.Before(now), at
}

// RolloutStatus returns the status of a deployment with what a rollout adds to
// the counters: the Progressing condition and the failure to create or delete
// machines that a set reports. The time is when the progress deadline passes,
// zero if none is running. The status of d has to be the stored one. As in
// [Complete], the counters are believed; [Decide] also wants the sets to have
// reported on their present size before it calls a rollout complete.
func RolloutStatus(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet, now time.Time) (v1alpha1.MachineDeploymentStatus, time.Time) {
	return rolloutStatus(d, newSet, old, now, true)
}

// rolloutStatus is RolloutStatus for sets that are known, or not, to be at rest;
// without that no rollout is said to be complete.
func rolloutStatus(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet, now time.Time, atRest bool) (v1alpha1.MachineDeploymentStatus, time.Time) {
	out := statusOf(d, newSet, old, now)
	if d == nil {
		return out, time.Time{}
	}
	out.Conditions = withoutRefusal(out)
	complete := atRest && Complete(d, out)
	cur := conditionOf(d.Status, v1alpha1.MachineDeploymentProgressing)
	ended := cur != nil && cur.Reason == v1alpha1.NewMachineSetAvailable && out.Replicas == out.UpdatedReplicas
	if !ended {
		out.Conditions = withProgress(d, newSet, out, complete, now)
	}
	out.Conditions = withReplicaFailure(out.Conditions, newSet, old)
	_, at := timedOut(d, out, now)
	if complete || at.IsZero() {
		return out, time.Time{}
	}
	return out, at.Add(time.Second) // stored times have no fractions of a second, and the deadline itself is still in time
}

func withProgress(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, status v1alpha1.MachineDeploymentStatus, complete bool, now time.Time) []v1alpha1.MachineDeploymentCondition {
	who := fmt.Sprintf("Machine Deployment %q", d.Name)
	if newSet != nil {
		who = fmt.Sprintf("MachineSet %q", newSet.Name)
	}
	const kind = v1alpha1.MachineDeploymentProgressing
	switch late, _ := timedOut(d, status, now); {
	case complete:
		return withCondition(status.Conditions, newCondition(kind, v1alpha1.ConditionTrue, v1alpha1.NewMachineSetAvailable, who+" has successfully progressed.", now))
	case progressed(d.Status, status):
		c := newCondition(kind, v1alpha1.ConditionTrue, v1alpha1.MachineSetUpdated, who+" is progressing.", now)
		if cur := conditionOf(d.Status, kind); cur != nil && cur.Status == v1alpha1.ConditionTrue {
			c.LastTransitionTime = cur.LastTransitionTime
		}
		return append(withoutCondition(status.Conditions, kind), c)
	case late:
		return withCondition(status.Conditions, newCondition(kind, v1alpha1.ConditionFalse, v1alpha1.ProgressDeadlineExceeded, who+" has timed out progressing.", now))
	default:
		return status.Conditions
	}
}

// withReplicaFailure takes over the failure of the new set, or else of the
// first set that has one.
func withReplicaFailure(conditions []v1alpha1.MachineDeploymentCondition, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) []v1alpha1.MachineDeploymentCondition {
	for _, s := range append([]*v1alpha1.MachineSet{newSet}, old...) {
		if c := failureOf(s); c != nil {
			return withCondition(conditions, newCondition(v1alpha1.MachineDeploymentReplicaFailure, c.Status, c.Reason, c.Message, c.LastTransitionTime.Time))
		}
	}
	return withoutCondition(conditions, v1alpha1.MachineDeploymentReplicaFailure)
}

// failureOf returns what a set says about machines that it could not create or delete, nil
// if it says nothing.
func failureOf(s *v1alpha1.MachineSet) *v1alpha1.MachineSetCondition {
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

// CreateFailed returns the status to store, and the event to report, when the
// set of a [CreateSet] could not be created for another reason than that its
// name is taken. Status is the stored one: that of the decision counts the set.
func CreateFailed(status v1alpha1.MachineDeploymentStatus, set string, err error, now time.Time) (v1alpha1.MachineDeploymentStatus, machinist.Event) {
	message := fmt.Sprintf("Failed to create new machine set %q: %v", set, err)
	out := status.DeepCopy()
	out.Conditions = withCondition(out.Conditions, newCondition(v1alpha1.MachineDeploymentProgressing, v1alpha1.ConditionFalse, v1alpha1.MachineSetCreateError, message, now))
	return *out, machinist.Event{Type: eventWarning, Reason: v1alpha1.MachineSetCreateError, Message: message}
}

// saysRefused reports whether a status says that a spec was refused.
func saysRefused(status v1alpha1.MachineDeploymentStatus) bool {
	c := conditionOf(status, v1alpha1.MachineDeploymentProgressing)
	return c != nil && (c.Reason == string(ReasonInvalid) || c.Reason == string(ReasonSelectsNothing))
}

// withoutRefusal returns the conditions without a Progressing condition that says that
// the spec was refused. The rollout of a spec that is valid again begins anew.
func withoutRefusal(status v1alpha1.MachineDeploymentStatus) []v1alpha1.MachineDeploymentCondition {
	if !saysRefused(status) {
		return status.Conditions
	}
	return withoutCondition(status.Conditions, v1alpha1.MachineDeploymentProgressing)
}

// counters brings the status up to date, without what a rollout adds to it.
func (c *pass) counters() {
	c.out.Status = statusOf(c.d, c.newSet, c.old, c.now)
}
