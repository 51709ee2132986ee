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
}

// MessageRefresh is how old a status has to be before a failure that goes on
// renews the message of its condition. Errors often carry request numbers, and
// each write of the status wakes the controller.
const MessageRefresh = time.Minute

// Status returns the status of the set in an observation, whole: counts of the
// machines that are claimed, those on their way out included; the machines whose
// last operation failed; the conditions; and the generation. Machines that
// another object controls are left out. Write it if [StatusChanged] says so.
//
// The condition ReplicaFailure is True, with the reason FailedCreate or
// FailedDelete and the error as its message, while there is a failure, and absent
// else. All other conditions are kept as they are; the condition Frozen belongs to
// whoever freezes.
//
// A machine counts as available as soon as its phase says so: minReadySeconds is
// passed on and has no effect, as in the reference system, where users set it to
// values that would stall a roll-out if it had one.
//
// If the observation is not complete, the former status is returned with nothing
// but a failure recorded: counts of half a list would mislead the deployment.
// Without a set, the zero status is returned.
func Status(in Observation, f Failure, now time.Time) v1alpha1.MachineSetStatus {
	if in.Set == nil {
		return v1alpha1.MachineSetStatus{}
	}
	s := *in.Set.Status.DeepCopy()
	if !in.Complete && f == (Failure{}) {
		return s
	}
	s.Conditions = replicaFailure(s.Conditions, f, in.Set.Status.LastOperation.LastUpdateTime.Time, now)
	s.LastOperation.LastUpdateTime = metav1.NewTime(now)
	if !in.Complete {
		return s
	}
	machines, _ := ours(in)
	s.ObservedGeneration = in.Set.Generation
	count(&s, machines, in.Set.Spec.Template.Labels)
	s.FailedMachines = failedMachines(machines)
	return s
}

// StatusChanged reports whether a new status has to be written: anything but the
// time of the last operation differs.
func StatusChanged(old, next v1alpha1.MachineSetStatus) bool {
	old.LastOperation.LastUpdateTime = next.LastOperation.LastUpdateTime
	return !equality.Semantic.DeepEqual(old, next)
}

func count(s *v1alpha1.MachineSetStatus, machines []*v1alpha1.Machine, template map[string]string) {
	s.Replicas = int32(len(machines)) //nolint:gosec // a list of 2^31 machines does not fit into memory
	s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas = 0, 0, 0
	s.PreservedFailedReplicas, s.AutoPreserveFailedMachineCount = 0, 0
	for _, m := range machines {
		s.FullyLabeledReplicas += one(containsAll(m.Labels, template))
		s.ReadyReplicas += one(Ready(m))
		s.AvailableReplicas += one(Available(m))
		s.PreservedFailedReplicas += one(PreservedFailed(m))
		s.AutoPreserveFailedMachineCount += one(AutoPreserved(m))
	}
}

// failedMachines lists the machines whose last operation failed. They come in
// the order of their names, so that the order of a cache makes no change of it.
func failedMachines(machines []*v1alpha1.Machine) *[]v1alpha1.MachineSummary {
	var failed []v1alpha1.MachineSummary
	for _, m := range machines {
		if PreservedFailed(m) || m.Status.LastOperation.State != v1alpha1.MachineStateFailed {
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
	if c.Reason != reason || now.Sub(written) >= MessageRefresh {
		c.Reason, c.Message = reason, err.Error()
	}
	return conditions
}

func containsAll(have, want map[string]string) bool {
	for key, value := range want {
		if got, found := have[key]; !found || got != value {
			return false
		}
	}
	return true
}

func one(yes bool) int32 {
	if yes {
		return 1
	}
	return 0
}
