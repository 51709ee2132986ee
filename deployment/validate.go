// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// Validate returns the errors in the spec of a deployment. It does not set defaults. It accepts
// what MCM accepts, with these exceptions:
//   - The selector is required and must match the labels of the template, including its
//     expressions. Otherwise a new set would not belong to the deployment. An empty selector is
//     valid, but [Decide] does nothing.
//   - maxSurge and maxUnavailable must not be negative. In MCM such a rollout never ends.
//   - The kind of the class must be MachineClass. In MCM the set makes machines without a VM.
func Validate(d *v1alpha1.MachineDeployment) field.ErrorList {
	spec := field.NewPath("spec")
	if d == nil {
		return field.ErrorList{field.Required(spec, "no deployment")}
	}
	var errs field.ErrorList
	if d.Spec.Replicas < 0 {
		errs = append(errs, field.Required(spec.Child("replicas"), "Replicas has to be a whole number"))
	}
	errs = append(errs, validateStrategy(d.Spec.Strategy, spec.Child("strategy"))...)
	errs = append(errs, validateSelector(d.Spec.Selector, d.Spec.Template.Labels, spec.Child("selector"))...)
	return append(errs, facts.ValidateClassReference(d.Spec.Template.Spec.Class, spec.Child("template", "spec", "class"))...)
}

func validateStrategy(s v1alpha1.MachineDeploymentStrategy, path *field.Path) field.ErrorList {
	switch s.Type {
	case v1alpha1.RecreateMachineDeploymentStrategyType:
		return nil
	case v1alpha1.RollingUpdateMachineDeploymentStrategyType:
		path = path.Child("rollingUpdate")
		if s.RollingUpdate == nil {
			return field.ErrorList{field.Required(path, "RollingUpdate parameter cannot be nil for rolling update strategy")}
		}
		return validateBounds(s.RollingUpdate.UpdateConfiguration, path)
	case v1alpha1.InPlaceUpdateMachineDeploymentStrategyType:
		path = path.Child("inPlaceUpdate")
		if s.InPlaceUpdate == nil {
			return field.ErrorList{field.Required(path, "InPlaceUpdate parameter cannot be nil for in-place update strategy")}
		}
		errs := validateBounds(s.InPlaceUpdate.UpdateConfiguration, path)
		switch s.InPlaceUpdate.OrchestrationType {
		case v1alpha1.OrchestrationTypeAuto, v1alpha1.OrchestrationTypeManual:
			return errs
		}
		return append(errs, field.Invalid(path.Child("orchestrationType"), s.InPlaceUpdate.OrchestrationType, "orchestrationType must be either Auto or Manual"))
	default:
		return field.ErrorList{field.Invalid(path.Child("type"), s.Type, "strategy type must be one of [InPlaceUpdate Recreate RollingUpdate]")}
	}
}

func validateBounds(u v1alpha1.UpdateConfiguration, path *field.Path) field.ErrorList {
	return append(validateBound(u.MaxUnavailable, "maxUnavailable", path), validateBound(u.MaxSurge, "maxSurge", path)...)
}

// validateBound accepts a number, or a number with a percent sign.
func validateBound(v *intstr.IntOrString, name string, path *field.Path) field.ErrorList {
	_, unreadable := rollout.Resolve(v, 0, false)
	n, err := intstr.GetScaledValueFromIntOrPercent(v, 100, false)
	switch {
	case unreadable != nil || err != nil:
		return field.ErrorList{field.Required(path.Child(name), "unable to convert "+name+" to int32")}
	case n < 0:
		return field.ErrorList{field.Invalid(path.Child(name), v.String(), "must not be negative")}
	default:
		return nil
	}
}

func validateSelector(s *metav1.LabelSelector, labels map[string]string, path *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(path, "selector has to be given")}
	}
	selector, err := readSelector(s)
	if err != nil {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	if !k8slabels.SelectorFromSet(s.MatchLabels).Matches(k8slabels.Set(labels)) {
		return field.ErrorList{field.Required(path.Child("matchLabels"), "is not matching with spec.template.metadata.labels")}
	}
	if !selector.Matches(k8slabels.Set(labels)) {
		return field.ErrorList{field.Invalid(path, metav1.FormatLabelSelector(s), "does not select spec.template.metadata.labels")}
	}
	return nil
}

// readSelector converts a selector. The error is always about the first invalid label, by key.
func readSelector(s *metav1.LabelSelector) (k8slabels.Selector, error) {
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if _, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: map[string]string{k: s.MatchLabels[k]}}); err != nil {
			return nil, err
		}
	}
	return metav1.LabelSelectorAsSelector(s)
}

const selectsAll = "This deployment is selecting all machines. A non-empty selector is required."

// refusal returns why a spec cannot be used, or empty results. The message is the same for the same
// spec.
func refusal(d *v1alpha1.MachineDeployment) (r machinist.Reason, message string) {
	if errs := Validate(d); len(errs) > 0 {
		return ReasonInvalid, errs.ToAggregate().Error()
	}
	if len(d.Spec.Selector.MatchLabels)+len(d.Spec.Selector.MatchExpressions) == 0 {
		return ReasonSelectsNothing, selectsAll
	}
	return "", ""
}

// Claim returns which sets a deployment has, adopts and releases, by the rules of [machineset.Claim].
// While [Decide] refuses the spec, nothing is adopted or released.
func Claim(d *v1alpha1.MachineDeployment, sets []*v1alpha1.MachineSet) (c machineset.Claims[*v1alpha1.MachineSet]) {
	if d == nil {
		return c
	}
	if refused, _ := refusal(d); refused == "" {
		c.Selector = d.Spec.Selector
	}
	c.Owned, c.Released, c.Adopt, c.Release = members.Claim(d, "MachineDeployment", c.Selector, sets)
	return c
}
