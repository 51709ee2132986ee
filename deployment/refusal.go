// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const selectsAll = "This deployment is selecting all machines. A non-empty selector is required."

// refusal returns why nothing can be decided about the spec of a deployment. Both
// results are empty for a spec that can be decided about. The message is the same for
// the same spec.
func refusal(d *v1alpha1.MachineDeployment) (r machinist.Reason, message string) {
	if errs := Validate(d); len(errs) > 0 {
		return ReasonInvalid, errs.ToAggregate().Error()
	}
	if len(d.Spec.Selector.MatchLabels)+len(d.Spec.Selector.MatchExpressions) == 0 {
		return ReasonSelectsNothing, selectsAll
	}
	return "", ""
}

// ClaimSelector returns the selector by which a deployment claims its sets. It is nil
// while [Plan] refuses the spec, also for a nil deployment: with a nil selector
// [machineset.Claim] adopts nothing and releases nothing. The result is that of the
// deployment, not a copy.
func ClaimSelector(d *v1alpha1.MachineDeployment) *metav1.LabelSelector {
	if refused, _ := refusal(d); refused != "" {
		return nil
	}
	return d.Spec.Selector
}

// refuse holds a deployment whose spec cannot be decided about. The Progressing
// condition says so, and one Event does when that condition changes.
func (c *pass) refuse(r machinist.Reason, message string) {
	c.stop(r, message)
	c.counters()
	event := r
	if r == ReasonSelectsNothing {
		event = EventSelectingAll
	}
	cond := newCondition(v1alpha1.MachineDeploymentProgressing, v1alpha1.ConditionFalse, string(r), message, c.now)
	if present := GetCondition(c.d.Status, cond.Type); present != nil {
		if present.Status == cond.Status && present.Reason == cond.Reason && present.Message == cond.Message {
			return
		}
		if present.Status == cond.Status {
			cond.LastTransitionTime = present.LastTransitionTime
		}
	}
	c.out.Status.Conditions = append(withoutCondition(c.out.Status.Conditions, cond.Type), cond)
	c.out.Events = append(c.out.Events, machinist.Event{Type: eventWarning, Reason: event, Message: brief(message)})
}

// saysRefused reports whether a status says that a spec was refused.
func saysRefused(status v1alpha1.MachineDeploymentStatus) bool {
	c := GetCondition(status, v1alpha1.MachineDeploymentProgressing)
	return c != nil && (c.Reason == string(ReasonInvalid) || c.Reason == string(ReasonSelectsNothing))
}

// withoutRefusal returns the conditions without a Progressing condition that says that
// the spec was refused. The roll-out of a spec that is valid again begins anew.
func withoutRefusal(status v1alpha1.MachineDeploymentStatus) []v1alpha1.MachineDeploymentCondition {
	if !saysRefused(status) {
		return status.Conditions
	}
	return withoutCondition(status.Conditions, v1alpha1.MachineDeploymentProgressing)
}
