// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Validate returns what is wrong with a deployment; nothing is filled in. It
// accepts what the reference system accepts, except that a selector has to be
// given (it may be empty; [Plan] then does nothing), has to be readable, and has to
// select the labels of the template, by its expressions too: a set that is created
// is not among those of the deployment otherwise.
// So negative bounds pass, and [Plan] reads them as zero.
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
	return append(errs, validateClass(d.Spec.Template.Spec.Class, spec.Child("template", "spec", "class"))...)
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
	var errs field.ErrorList
	if !readable(u.MaxUnavailable) {
		errs = append(errs, field.Required(path.Child("maxUnavailable"), "unable to convert maxUnavailable to int32"))
	}
	if !readable(u.MaxSurge) {
		errs = append(errs, field.Required(path.Child("maxSurge"), "unable to convert maxSurge to int32"))
	}
	return errs
}

// readable says whether a bound is a number or a number with a % sign behind.
func readable(v *intstr.IntOrString) bool {
	switch {
	case v == nil:
		return false
	case v.Type == intstr.Int:
		return true
	case v.Type != intstr.String:
		return false
	}
	number, ok := strings.CutSuffix(v.StrVal, "%")
	_, err := strconv.ParseInt(number, 10, 32)
	return ok && err == nil
}

func validateSelector(s *metav1.LabelSelector, labels map[string]string, path *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(path, "selector has to be given")}
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return field.ErrorList{field.Invalid(path, s, err.Error())}
	}
	missing := func(k string) bool { v, ok := labels[k]; return !ok || v != s.MatchLabels[k] }
	for k := range s.MatchLabels {
		if missing(k) {
			return field.ErrorList{field.Required(path.Child("matchLabels"), "is not matching with spec.template.metadata.labels")}
		}
	}
	if !selector.Matches(k8slabels.Set(labels)) {
		return field.ErrorList{field.Invalid(path, s, "does not select spec.template.metadata.labels")}
	}
	return nil
}

func validateClass(c v1alpha1.ClassSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind"), "Kind is required"))
	}
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "Name is required"))
	}
	return slices.Clip(errs)
}
