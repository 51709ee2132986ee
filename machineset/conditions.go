// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Reasons of the condition Progressing, besides those of ReplicaFailure.
const (
	invalidSpec  = "InvalidSpec"
	complete     = "Complete"
	machinesWait = "WaitingForMachines"
)

// standardConditions returns the conditions Available and Progressing, which follow from the spec,
// the other fields of the status, and what the machines wait for.
func standardConditions(set *v1alpha1.MachineSet, s v1alpha1.MachineSetStatus, machines []*v1alpha1.Machine, now time.Time) []v1alpha1.MachineSetCondition {
	conditions := slices.Clone(s.StandardConditions)
	for _, c := range []v1alpha1.MachineSetCondition{availability(set, s), progress(set, s, machines)} {
		c.LastTransitionTime = metav1.NewTime(now)
		at := slices.IndexFunc(conditions, func(x v1alpha1.MachineSetCondition) bool { return x.Type == c.Type })
		if at < 0 {
			conditions = append(conditions, c)
			continue
		}
		if conditions[at].Status == c.Status {
			c.LastTransitionTime = conditions[at].LastTransitionTime
		}
		conditions[at] = c
	}
	return conditions
}

// availability returns the condition Available: whether all desired machines are available.
func availability(set *v1alpha1.MachineSet, s v1alpha1.MachineSetStatus) v1alpha1.MachineSetCondition {
	c := v1alpha1.MachineSetCondition{
		Type: v1alpha1.MachineSetAvailable, Status: v1alpha1.ConditionTrue, Reason: v1alpha1.MinimumReplicasAvailable,
		Message: fmt.Sprintf("%d of %d machines are available", s.AvailableReplicas, max(0, set.Spec.Replicas)),
	}
	if s.AvailableReplicas < max(0, set.Spec.Replicas)-s.PreservedFailedReplicas {
		c.Status, c.Reason = v1alpha1.ConditionFalse, v1alpha1.MinimumReplicasUnavailable
	}
	return c
}

// progress returns the condition Progressing: whether the set approaches its spec.
func progress(set *v1alpha1.MachineSet, s v1alpha1.MachineSetStatus, machines []*v1alpha1.Machine) v1alpha1.MachineSetCondition {
	c := v1alpha1.MachineSetCondition{Type: v1alpha1.MachineSetProgressing, Status: v1alpha1.ConditionFalse}
	failure := slices.IndexFunc(s.Conditions, func(x v1alpha1.MachineSetCondition) bool {
		return x.Type == v1alpha1.MachineSetReplicaFailure && x.Status == v1alpha1.ConditionTrue
	})
	wanted := max(0, set.Spec.Replicas)
	exist := fmt.Sprintf("%d of %d machines exist", s.Replicas, wanted)
	switch why := refusal(set); {
	case why != "":
		c.Reason, c.Message = invalidSpec, why
	case failure >= 0:
		c.Reason, c.Message = s.Conditions[failure].Reason, s.Conditions[failure].Message
	case s.Replicas == wanted && s.AvailableReplicas+s.PreservedFailedReplicas >= wanted:
		c.Status, c.Reason, c.Message = v1alpha1.ConditionTrue, complete, exist
	default:
		c.Status, c.Reason, c.Message = v1alpha1.ConditionTrue, machinesWait, exist+waiting(machines)
	}
	return c
}

// waiting returns what the machine waits for that comes first by name, of those whose status tells that it
// waits for something which does not end by itself. It returns "" if there is none.
func waiting(machines []*v1alpha1.Machine) (text string) {
	first := ""
	for _, m := range machines {
		c := facts.ConditionOf(m.Status.Conditions, v1alpha1.MachineWaiting)
		if c != nil && strings.Contains(m.Status.LastOperation.Description, facts.WaitsMark) && (first == "" || m.Name < first) {
			first, text = m.Name, fmt.Sprintf("; machine %s waits: %s", m.Name, c.Message)
		}
	}
	return text
}

// refusal returns why [Decide] does nothing for a set, empty if it decides. A set that is
// being deleted is decided about whatever its spec is.
func refusal(set *v1alpha1.MachineSet) string {
	if set.DeletionTimestamp != nil {
		return ""
	}
	if problems := validate(set); len(problems) > 0 {
		return problems.ToAggregate().Error()
	}
	if set.UID == "" {
		return "metadata.uid is empty"
	}
	return ""
}

// refusalEvents returns the Event of a refusal that the stored status does not tell.
func refusalEvents(set *v1alpha1.MachineSet, why string) []machinist.Event {
	for _, c := range set.Status.StandardConditions {
		if c.Type == v1alpha1.MachineSetProgressing && c.Reason == invalidSpec && c.Message == why {
			return nil
		}
	}
	return []machinist.Event{{
		Type: corev1.EventTypeWarning, Reason: invalidSpec, Message: "Nothing is created or deleted until the spec is corrected: " + why,
	}}
}
