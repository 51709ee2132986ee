// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// validCondition returns the condition Valid of the machine, or nil if the object is valid. For a
// machine that is being deleted only the provider ID and the Node are checked.
func (l *logic) validCondition() *corev1.NodeCondition {
	var errs field.ErrorList
	reason, stays := reasonPartlyIgnored, l.m.DeletionTimestamp.IsZero()
	if stays {
		if errs = Validate(l.m); len(errs) > 0 {
			reason = reasonInvalid
		}
	}
	if strange := l.strangeNode(); len(strange) > 0 {
		errs, reason = append(errs, strange...), reasonNodeUnproven
	}
	if shared := l.sharedErrors(); len(shared) > 0 {
		errs, reason = append(errs, shared...), reasonProviderIDShared
	}
	if stays {
		errs = append(errs, l.ignoredNodeName()...)
	}
	if stays && !l.templateApplied { // values already on the Node are valid
		errs = ignoredTemplate(&l.m.Spec.NodeTemplateSpec, errs)
	}
	if len(errs) == 0 {
		return nil
	}
	c := facts.Condition(v1alpha1.MachineValid, corev1.ConditionFalse, string(reason), fieldErrors(errs), l.now)
	return &c
}

// withValidity adds the condition Valid to the status that the decision writes. If it writes none
// and the condition has changed, it returns a decision that writes the condition first.
func (l *logic) withValidity(d Decision) Decision {
	want, due := l.validDue()
	if due.Action == nil {
		return d
	}
	if m := statusOf(d.Action); m != nil {
		m.Status.Conditions = withValid(m.Status.Conditions, want)
		return d
	}
	return due
}

// validDue returns the condition Valid, and the decision that writes it if it has changed.
func (l *logic) validDue() (*corev1.NodeCondition, Decision) {
	want, have := l.validCondition(), facts.ConditionOf(l.m.Status.Conditions, v1alpha1.MachineValid)
	reason, message := reasonConditionsChanged, ""
	switch {
	case want == nil && have == nil:
		return nil, Decision{}
	case want == nil:
	case have != nil && want.Status == have.Status && want.Reason == have.Reason && want.Message == have.Message:
		return want, Decision{}
	default:
		reason, message = machinist.Reason(want.Reason), want.Message
		if have != nil && want.Status == have.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
	}
	return want, l.record(reason, message, func(s *v1alpha1.MachineStatus) { s.Conditions = withValid(s.Conditions, want) })
}

// withValid returns the conditions with own in place of each condition Valid. Nil removes them. It
// changes conditions.
func withValid(conditions []corev1.NodeCondition, own *corev1.NodeCondition) []corev1.NodeCondition {
	conditions = slices.DeleteFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == v1alpha1.MachineValid })
	if own != nil {
		conditions = append(conditions, *own)
	}
	return conditions
}

// ownConditions are the types of conditions of a Machine that are not conditions of its Node.
var ownConditions = []corev1.NodeConditionType{v1alpha1.MachineValid, v1alpha1.MachineVMRequested}

func ownCondition(c corev1.NodeCondition) bool { return slices.Contains(ownConditions, c.Type) }

// withNodeConditions returns a copy of the conditions of a Node, with the machine's own conditions
// that are recorded on it.
func withNodeConditions(node, recorded []corev1.NodeCondition) []corev1.NodeCondition {
	conditions := slices.DeleteFunc(slices.Clone(node), ownCondition)
	for _, t := range ownConditions {
		if c := facts.ConditionOf(recorded, t); c != nil {
			conditions = append(conditions, *c)
		}
	}
	return conditions
}

// withoutOwn returns the conditions without the machine's own, to compare them with those of the
// Node.
func withoutOwn(conditions []corev1.NodeCondition) []corev1.NodeCondition {
	if !slices.ContainsFunc(conditions, ownCondition) {
		return conditions
	}
	return slices.DeleteFunc(slices.Clone(conditions), ownCondition)
}
