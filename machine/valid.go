// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
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
	due := l.validity()
	written, changed := statusOf(d.Action), statusOf(due.Action)
	switch {
	case changed == nil:
		return d
	case written == nil:
		return due
	}
	valid := facts.ConditionOf(changed.Status.Conditions, v1alpha1.MachineValid)
	written.Status.Conditions = withCondition(written.Status.Conditions, v1alpha1.MachineValid, valid)
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
	case sameState(want, have):
		return Decision{}
	default:
		reason, message = machinist.Reason(want.Reason), want.Message
		if have != nil && want.Status == have.Status {
			want.LastTransitionTime = have.LastTransitionTime
		}
	}
	return l.record(reason, message, func(s *v1alpha1.MachineStatus) {
		s.Conditions = withCondition(s.Conditions, v1alpha1.MachineValid, want)
	})
}

// withCondition returns the conditions with c in place of each condition of a type. Nil removes
// them. It changes conditions.
func withCondition(conditions []corev1.NodeCondition, t corev1.NodeConditionType, c *corev1.NodeCondition) []corev1.NodeCondition {
	conditions = slices.DeleteFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == t })
	if c != nil {
		conditions = append(conditions, *c)
	}
	return conditions
}

// sameState reports whether two conditions have the same status, reason and message. It is false for
// nil.
func sameState(a, b *corev1.NodeCondition) bool {
	return a != nil && b != nil && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
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

// validateClass returns the errors that keep VMs of a class from being created: a node template
// must have the capacities cpu, gpu and memory, the instance type, the region and the zone. They
// have no effect on deletions.
func validateClass(c *v1alpha1.MachineClass) field.ErrorList {
	if c == nil || c.NodeTemplate == nil {
		return nil
	}
	var errs field.ErrorList
	path := field.NewPath("nodeTemplate")
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, "gpu", corev1.ResourceMemory} {
		if _, ok := c.NodeTemplate.Capacity[name]; !ok {
			errs = append(errs, field.Required(path.Child("capacity").Key(string(name)), "Capacity is required"))
		}
	}
	for _, text := range []struct{ name, value string }{
		{"instanceType", c.NodeTemplate.InstanceType}, {"region", c.NodeTemplate.Region}, {"zone", c.NodeTemplate.Zone},
	} {
		if text.value == "" {
			errs = append(errs, field.Required(path.Child(text.name), "is required in a node template"))
		}
	}
	return errs
}

// fieldErrors returns the errors as one text of limited length.
func fieldErrors(errs field.ErrorList) string { return facts.Shorten(errs.ToAggregate().Error()) }

// acceptable returns a node template without the entries that are invalid on a Node. The API server
// would refuse each write of the Node with them.
func acceptable(t nodeops.Template) nodeops.Template {
	t.Labels, t.Annotations, t.Taints = maps.Clone(t.Labels), maps.Clone(t.Annotations), slices.Clone(t.Taints)
	maps.DeleteFunc(t.Labels, func(key, value string) bool { return !labelKey(key) || !labelValue(value) })
	maps.DeleteFunc(t.Annotations, func(key, _ string) bool { return !annotationKey(key) })
	t.Taints = slices.DeleteFunc(t.Taints, func(taint corev1.Taint) bool { return taintProblem(&taint) != "" })
	return t
}

// ignoredTemplate appends the errors for the entries that [acceptable] removes.
func ignoredTemplate(t *v1alpha1.NodeTemplateSpec, errs field.ErrorList) field.ErrorList {
	path := field.NewPath("spec", "nodeTemplate")
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		if value := t.Labels[key]; !labelKey(key) || !labelValue(value) {
			errs = append(errs, field.Invalid(path.Child("metadata", "labels").Key(facts.Excerpt(key)), facts.Excerpt(value), "is not a valid label of a Node"))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.Annotations)) {
		if !annotationKey(key) {
			at, value := path.Child("metadata", "annotations").Key(facts.Excerpt(key)), facts.Excerpt(t.Annotations[key])
			errs = append(errs, field.Invalid(at, value, "is not a valid annotation of a Node"))
		}
	}
	for i := range t.Spec.Taints {
		if problem := taintProblem(&t.Spec.Taints[i]); problem != "" {
			errs = append(errs, field.Invalid(path.Child("spec", "taints").Index(i), facts.Excerpt(t.Spec.Taints[i].ToString()), problem))
		}
	}
	return errs
}

// taintProblem returns why a taint is invalid, or "".
func taintProblem(t *corev1.Taint) string {
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	switch {
	case !labelKey(t.Key):
		return "has no valid key"
	case !labelValue(t.Value):
		return "has no valid value"
	case !slices.Contains(effects, t.Effect):
		return "has no valid effect"
	default:
		return ""
	}
}

// The following functions check labels and annotations as the API server does.

func labelKey(key string) bool { return len(content.IsLabelKey(key)) == 0 }

func labelValue(value string) bool { return len(content.IsLabelValue(value)) == 0 }

func annotationKey(key string) bool { return labelKey(strings.ToLower(key)) }
