// SPDX-License-Identifier: Apache-2.0

package machine

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// validCondition returns the condition Valid of the machine, or nil if the object is valid. For a
// machine that is being deleted only the provider ID and the Node are checked.
func (l *logic) validCondition() *corev1.NodeCondition {
	var errs field.ErrorList
	reason, stays := reasonPartlyIgnored, l.m.DeletionTimestamp.IsZero()
	add := func(r machinist.Reason, more field.ErrorList) {
		if len(more) > 0 {
			errs, reason = append(errs, more...), r
		}
	}
	if stays {
		add(reasonInvalid, Validate(l.m))
	}
	add(reasonNodeUnproven, l.strangeNode())
	add(reasonProviderIDShared, l.sharedErrors())
	if stays {
		add(reason, l.ignoredNodeName())
	}
	if stays && !l.templateApplied { // values already on the Node are valid
		t := l.m.Spec.NodeTemplateSpec
		_, ignored := facts.Acceptable(nodeops.Template{Labels: t.Labels, Annotations: t.Annotations, Taints: t.Spec.Taints})
		add(reason, ignored)
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
	due := l.validity()
	written, changed := statusOf(d.Action), statusOf(due.Action)
	switch {
	case changed == nil:
		return d
	case written == nil:
		return due
	}
	valid := facts.ConditionOf(changed.Status.Conditions, v1alpha1.MachineValid)
	written.Status.Conditions = facts.WithCondition(written.Status.Conditions, v1alpha1.MachineValid, valid)
	return d
}

// validity returns the decision that writes the condition Valid, and the zero Decision if it has not
// changed.
func (l *logic) validity() Decision {
	want, have := l.validCondition(), facts.ConditionOf(l.m.Status.Conditions, v1alpha1.MachineValid)
	reason, message := reasonConditionsChanged, ""
	switch {
	case want == nil && have == nil:
		return Decision{}
	case want == nil:
	case facts.SameState(want, have):
		return Decision{}
	default:
		reason, message = machinist.Reason(want.Reason), want.Message
		if have != nil && want.Status == have.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
	}
	return l.record(reason, message, func(s *v1alpha1.MachineStatus) {
		s.Conditions = facts.WithCondition(s.Conditions, v1alpha1.MachineValid, want)
	})
}

// Validate returns the errors that keep the VM of a machine from being created: its class must have
// a name, and the kind MachineClass. They have no effect on a machine with a VM. A nil machine is
// invalid.
func Validate(m *v1alpha1.Machine) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(field.NewPath("spec"), "Machine is required")}
	}
	if c := m.Spec.Class; c.Kind == v1alpha1.MachineClassKind && c.Name != "" { // the usual case, without an allocation
		return nil
	}
	return facts.ValidateClassReference(m.Spec.Class, field.NewPath("spec", "class"))
}

// fieldErrors returns the errors as one text of limited length.
func fieldErrors(errs field.ErrorList) string { return facts.Shorten(errs.ToAggregate().Error()) }
