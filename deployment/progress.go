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

// Complete says whether a roll-out has ended, judged by the given status: all
// machines are of the new set, as many as wanted, all available, and the status
// is of the present spec, which was not refused and asks for no roll-back.
func Complete(d *v1alpha1.MachineDeployment, status v1alpha1.MachineDeploymentStatus) bool {
	return d != nil && d.Spec.RollbackTo == nil && !saysRefused(status) &&
		status.UpdatedReplicas == d.Spec.Replicas &&
		status.Replicas == d.Spec.Replicas &&
		status.AvailableReplicas == d.Spec.Replicas &&
		status.ObservedGeneration >= d.Generation
}

// Progressing says whether a roll-out got on between two statuses: more
// machines are updated, ready or available, or fewer old ones are left.
func Progressing(from, to v1alpha1.MachineDeploymentStatus) bool {
	return to.UpdatedReplicas > from.UpdatedReplicas ||
		to.Replicas-to.UpdatedReplicas < from.Replicas-from.UpdatedReplicas ||
		to.ReadyReplicas > from.ReadyReplicas ||
		to.AvailableReplicas > from.AvailableReplicas
}

// TimedOut says whether a roll-out stood still for longer than its progress
// deadline, judged by the Progressing condition of the given status. A roll-out
// that ended does not time out; one that did stays so until it gets on.
func TimedOut(d *v1alpha1.MachineDeployment, status v1alpha1.MachineDeploymentStatus, now time.Time) bool {
	if d == nil || d.Spec.ProgressDeadlineSeconds == nil {
		return false
	}
	c := GetCondition(status, v1alpha1.MachineDeploymentProgressing)
	switch {
	case c == nil, c.Reason == v1alpha1.NewMachineSetAvailable:
		return false
	case c.Reason == v1alpha1.ProgressDeadlineExceeded:
		return true
	default:
		return c.LastUpdateTime.Add(deadline(d)).Before(now)
	}
}

func deadline(d *v1alpha1.MachineDeployment) time.Duration {
	return time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
}

// RolloutStatus returns the status of a deployment with what a roll-out adds to
// [Status]: the Progressing condition and the failure to create or delete
// machines that a set reports. The time is when the progress deadline passes,
// zero if none is running. The status of d has to be the stored one. As in
// [Complete], the counters are believed; [Plan] also wants the sets to have
// reported on their present size before it calls a roll-out complete.
func RolloutStatus(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet, now time.Time) (v1alpha1.MachineDeploymentStatus, time.Time) {
	return rolloutStatus(d, newSet, old, now, true)
}

// rolloutStatus is RolloutStatus for sets that are known, or not, to be at rest;
// without that no roll-out is said to be complete.
func rolloutStatus(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet, now time.Time, atRest bool) (v1alpha1.MachineDeploymentStatus, time.Time) {
	out := Status(d, newSet, old, now)
	if d == nil {
		return out, time.Time{}
	}
	out.Conditions = withoutRefusal(out)
	complete := atRest && Complete(d, out)
	cur := GetCondition(d.Status, v1alpha1.MachineDeploymentProgressing)
	ended := cur != nil && cur.Reason == v1alpha1.NewMachineSetAvailable && out.Replicas == out.UpdatedReplicas
	if !ended {
		out.Conditions = withProgress(d, newSet, out, complete, now)
	}
	out.Conditions = withReplicaFailure(out.Conditions, newSet, old)
	return out, expiry(d, out, complete, now)
}

func withProgress(d *v1alpha1.MachineDeployment, newSet *v1alpha1.MachineSet, status v1alpha1.MachineDeploymentStatus, complete bool, now time.Time) []v1alpha1.MachineDeploymentCondition {
	who := fmt.Sprintf("Machine Deployment %q", d.Name)
	if newSet != nil {
		who = fmt.Sprintf("MachineSet %q", newSet.Name)
	}
	const kind = v1alpha1.MachineDeploymentProgressing
	switch {
	case complete:
		return withCondition(status.Conditions, newCondition(kind, v1alpha1.ConditionTrue, v1alpha1.NewMachineSetAvailable, who+" has successfully progressed.", now))
	case Progressing(d.Status, status):
		c := newCondition(kind, v1alpha1.ConditionTrue, v1alpha1.MachineSetUpdated, who+" is progressing.", now)
		if cur := GetCondition(d.Status, kind); cur != nil && cur.Status == v1alpha1.ConditionTrue {
			c.LastTransitionTime = cur.LastTransitionTime
		}
		return append(withoutCondition(status.Conditions, kind), c)
	case TimedOut(d, status, now):
		return withCondition(status.Conditions, newCondition(kind, v1alpha1.ConditionFalse, v1alpha1.ProgressDeadlineExceeded, who+" has timed out progressing.", now))
	default:
		return status.Conditions
	}
}

// withReplicaFailure takes over the failure of the new set, or else of the
// first set that has one.
func withReplicaFailure(conditions []v1alpha1.MachineDeploymentCondition, newSet *v1alpha1.MachineSet, old []*v1alpha1.MachineSet) []v1alpha1.MachineDeploymentCondition {
	for _, s := range append([]*v1alpha1.MachineSet{newSet}, old...) {
		if s == nil {
			continue
		}
		i := slices.IndexFunc(s.Status.Conditions, func(c v1alpha1.MachineSetCondition) bool {
			return c.Type == v1alpha1.MachineSetReplicaFailure
		})
		if i >= 0 {
			c := s.Status.Conditions[i]
			return withCondition(conditions, newCondition(v1alpha1.MachineDeploymentReplicaFailure, c.Status, c.Reason, c.Message, c.LastTransitionTime.Time))
		}
	}
	return withoutCondition(conditions, v1alpha1.MachineDeploymentReplicaFailure)
}

// expiry returns when the progress deadline will have passed, zero if it is not
// running.
func expiry(d *v1alpha1.MachineDeployment, status v1alpha1.MachineDeploymentStatus, complete bool, now time.Time) time.Time {
	c := GetCondition(status, v1alpha1.MachineDeploymentProgressing)
	if d.Spec.ProgressDeadlineSeconds == nil || c == nil || complete || c.Reason == v1alpha1.NewMachineSetAvailable || TimedOut(d, status, now) {
		return time.Time{}
	}
	// Stored times have no fractions of a second, and the deadline itself is
	// still in time.
	return c.LastUpdateTime.Add(deadline(d) + time.Second)
}

// CreateFailed returns the status to store, and the event to report, when the
// set of a [CreateSet] could not be created for another reason than that its
// name is taken. Status is the stored one: that of the decision counts the set.
func CreateFailed(status v1alpha1.MachineDeploymentStatus, set string, err error, now time.Time) (v1alpha1.MachineDeploymentStatus, machinist.Event) {
	message := fmt.Sprintf("Failed to create new machine set %q: %v", set, err)
	out := status.DeepCopy()
	out.Conditions = withCondition(out.Conditions, v1alpha1.MachineDeploymentCondition{
		Type:               v1alpha1.MachineDeploymentProgressing,
		Status:             v1alpha1.ConditionFalse,
		Reason:             v1alpha1.MachineSetCreateError,
		Message:            message,
		LastUpdateTime:     metav1.NewTime(now),
		LastTransitionTime: metav1.NewTime(now),
	})
	return *out, machinist.Event{Type: eventWarning, Reason: v1alpha1.MachineSetCreateError, Message: message}
}
