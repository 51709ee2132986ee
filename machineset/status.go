// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A Failure is what went wrong when the actions of the last decision were
// carried out. The zero Failure is nothing. Only the texts of the errors are
// used, for people; nothing is decided from them.
type Failure struct {
	// Create is the first error of a creation.
	Create error
	// Delete is the first error of a deletion. It is reported only if no creation
	// failed.
	Delete error
	// Unfinished says that an error of another action kept the set from creating and
	// deleting: its generation is not observed yet.
	Unfinished bool
}

// messageRefresh is how old a status has to be before a failure that goes on
// renews the message of its condition. Errors often carry request numbers, and
// each write of the status wakes the controller.
const messageRefresh = time.Minute

// Status returns the status of the set in an observation, whole: counts of the
// machines that are claimed, those on their way out included; the machines whose
// last operation failed; the conditions; and the generation. Machines that
// another object controls are left out. changed reports whether it has to be written:
// anything but the time of the last operation differs.
//
// The generation is observed once the actions of a pass were carried out, or once [Decide]
// refused the spec.
//
// The conditions Available and Progressing follow from the rest of the status, and are
// written with it. If the stored status has neither, they are written by themselves, but
// no more than once a minute: an API server with another definition of the kind drops them.
//
// The condition ReplicaFailure is True, with the reason FailedCreate or
// FailedDelete and the error as its message, while there is a failure, and absent
// else. All other conditions are kept as they are; the condition Frozen belongs to
// whoever freezes.
//
// The numbers are those of [Count]. A machine counts as available once it has been
// so for minReadySeconds, which only time brings about: [Decide] says when to ask
// again. A machine that is leaving, or whose deletion is in flight, is neither
// ready nor available, whatever its phase still says. Creations in flight count as
// machines that exist: a deployment that believed a smaller number, of a set which
// became smaller meanwhile, would let another set grow too much.
//
// If the observation is not complete, the former status is returned with nothing
// but a failure recorded: counts of half a list would mislead the deployment.
// Without a set, the zero status is returned.
func Status(in Observation, f Failure, now time.Time) (next v1alpha1.MachineSetStatus, changed bool) {
	if in.Set == nil {
		return v1alpha1.MachineSetStatus{}, false
	}
	before := in.Set.Status
	next = status(in, f, now)
	if len(before.StandardConditions) == 0 && now.Sub(before.LastOperation.LastUpdateTime.Time) < messageRefresh {
		before.StandardConditions = next.StandardConditions
	}
	before.LastOperation.LastUpdateTime = next.LastOperation.LastUpdateTime
	return next, !equality.Semantic.DeepEqual(before, next)
}

func status(in Observation, f Failure, now time.Time) v1alpha1.MachineSetStatus {
	s := *in.Set.Status.DeepCopy()
	if !in.Complete && f.Create == nil && f.Delete == nil {
		return s
	}
	s.Conditions = replicaFailure(s.Conditions, f, in.Set.Status.LastOperation.LastUpdateTime.Time, now)
	s.LastOperation.LastUpdateTime = metav1.NewTime(now)
	if !in.Complete {
		return s
	}
	machines, _ := ours(in)
	if !f.Unfinished {
		s.ObservedGeneration = in.Set.Generation
	}
	fill(&s, Count(in.Set, machines, expected(in.Expectations, in.Machines, true), now))
	s.FailedMachines = failedMachines(machines)
	s.StandardConditions = standardConditions(in.Set, s, now)
	return s
}

func fill(s *v1alpha1.MachineSetStatus, c Counts) {
	s.Replicas = number(c.Machines + c.InFlight)
	s.FullyLabeledReplicas = number(c.FullyLabeled + c.InFlight)
	s.ReadyReplicas = number(c.Ready)
	s.AvailableReplicas = number(c.Available)
	s.PreservedFailedReplicas = number(c.PreservedFailed)
	s.AutoPreserveFailedMachineCount = number(c.AutoPreserved + c.AutoPreservedLeaving)
}

func number(n int) int32 {
	return int32(n) //nolint:gosec // a list of 2^31 machines does not fit into memory
}

// failedMachines lists the machines whose last operation failed. They come in
// the order of their names, so that the order of a cache makes no change of it.
func failedMachines(machines []*v1alpha1.Machine) *[]v1alpha1.MachineSummary {
	var failed []v1alpha1.MachineSummary
	for _, m := range machines {
		if preservedFailed(m) || m.Status.LastOperation.State != v1alpha1.MachineStateFailed {
			continue
		}
		summary := v1alpha1.MachineSummary{
			Name: m.Name, ProviderID: m.Spec.ProviderID, LastOperation: *m.Status.LastOperation.DeepCopy(),
		}
		if controller := metav1.GetControllerOfNoCopy(m); controller != nil {
			summary.OwnerRef = controller.Name
		}
		failed = append(failed, summary)
	}
	if failed == nil {
		return nil
	}
	return &failed
}

func replicaFailure(conditions []v1alpha1.MachineSetCondition, f Failure, written, now time.Time) []v1alpha1.MachineSetCondition {
	at := slices.IndexFunc(conditions, func(c v1alpha1.MachineSetCondition) bool {
		return c.Type == v1alpha1.MachineSetReplicaFailure
	})
	reason, err := v1alpha1.FailedCreate, f.Create
	if err == nil {
		reason, err = v1alpha1.FailedDelete, f.Delete
	}
	if err == nil {
		return slices.DeleteFunc(conditions, func(c v1alpha1.MachineSetCondition) bool {
			return c.Type == v1alpha1.MachineSetReplicaFailure
		})
	}
	if at < 0 {
		return append(conditions, v1alpha1.MachineSetCondition{
			Type: v1alpha1.MachineSetReplicaFailure, Status: v1alpha1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(now), Reason: reason, Message: err.Error(),
		})
	}
	c := &conditions[at]
	if c.Status != v1alpha1.ConditionTrue {
		c.Status, c.LastTransitionTime, c.Reason, c.Message = v1alpha1.ConditionTrue, metav1.NewTime(now), reason, err.Error()
	}
	if c.Reason != reason || now.Sub(written) >= messageRefresh {
		c.Reason, c.Message = reason, err.Error()
	}
	return conditions
}
