// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Failure has the errors of the last decision's actions. The zero Failure is no error. The texts of
// the errors become messages; nothing is decided from them.
type Failure struct {
	// Create is the first error of a creation.
	Create error
	// Delete is the first error of a deletion. It is reported only if no creation failed.
	Delete error
	// Unfinished means that the error of another action, such as an update of a machine, kept the set
	// from trying to create or delete machines. The generation is then not observed.
	Unfinished bool
}

// messageRefresh is the minimum age of a status before the message of an ongoing failure is
// renewed. Errors often have request numbers, and each write of the status wakes the controller.
const messageRefresh = time.Minute

// Status returns the whole status of the set: counts of the owned machines including leaving ones,
// the machines whose last operation failed, the conditions and the generation. changed reports
// whether it has to be written: whether anything but the time of the last operation differs.
//
// The generation is observed when the actions of a decision were tried, or when [Decide] refused the
// spec. Creations and deletions that fail do not keep it back, because they may fail for days and the
// numbers are those of this generation: a deployment waits for them. Machines that are not proven
// keep it back, because they may lack one that an earlier process has created for the former size.
//
// The conditions Available and Progressing follow from the other fields and are written with them.
// If the stored status has neither, they are written once a minute, because an API server with
// another definition of the kind drops them. The condition ReplicaFailure is True while there is a
// failure, with reason FailedCreate or FailedDelete and the error as message, and is absent
// otherwise. Other conditions are kept.
//
// A machine is available after minReadySeconds:
// [Decision.NextCheck] says when to call Status again. A machine that is leaving or whose deletion
// was requested is neither ready nor available. Creations in flight count as existing machines, so
// that a deployment does not grow another set too early.
//
// If the observation is incomplete, only a failure is recorded. Without a set the result is the
// zero status.
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
	if !f.Unfinished && (proven(in) || refusal(in.Set) != "") {
		s.ObservedGeneration = in.Set.Generation
	}
	c := members.Count(in.Set, machines, expected(in.Expectations, in.Machines, true), now)
	fill(&s, c)
	s.FullyLabeledReplicas = number(fullyLabeled(machines, in.Set.Spec.Template.Labels) + c.InFlight)
	s.FailedMachines = failedMachines(machines)
	s.StandardConditions = standardConditions(in.Set, s, machines, now)
	return s
}

func fill(s *v1alpha1.MachineSetStatus, c members.Counts) {
	s.Replicas = number(c.Machines + c.InFlight)
	s.ReadyReplicas = number(c.Ready)
	s.AvailableReplicas = number(c.Available)
	s.PreservedFailedReplicas = number(c.PreservedFailed)
	s.AutoPreserveFailedMachineCount = number(c.AutoPreserved + c.AutoPreservedLeaving)
}

// fullyLabeled returns the number of machines that have all labels of the template.
func fullyLabeled(machines []*v1alpha1.Machine, template map[string]string) (n int) {
	selector := labels.SelectorFromSet(template)
	for _, m := range machines {
		if selector.Matches(labels.Set(m.Labels)) {
			n++
		}
	}
	return n
}

func number(n int) int32 {
	return int32(n) //nolint:gosec // a list of 2^31 machines does not fit into memory
}

// failedMachines returns the machines whose last operation failed, sorted by name.
func failedMachines(machines []*v1alpha1.Machine) *[]v1alpha1.MachineSummary {
	var failed []v1alpha1.MachineSummary
	for _, m := range machines {
		if members.PreservedFailed(m) || m.Status.LastOperation.State != v1alpha1.MachineStateFailed {
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
