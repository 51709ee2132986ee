// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"errors"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type validationIn struct {
	MachineDeployment   machineDeployment
	SelectorMatchLabels map[string]string
}

type problem struct{ Type, Field, Detail string }

type validationOut struct{ Errors []problem }

// notNegative is what we say of a bound below 0, which MCM accepts.
const notNegative = "must not be negative"

func validation(in validationIn, out validationOut) ([]string, error) {
	d := in.MachineDeployment.object()
	d.Spec.Selector.MatchLabels = maps.Clone(in.SelectorMatchLabels)
	kinds := map[field.ErrorType]string{field.ErrorTypeRequired: "FieldValueRequired", field.ErrorTypeInvalid: "FieldValueInvalid"}
	var got validationOut
	var refused []string
	for _, e := range deployment.Validate(d) {
		if e.Detail == notNegative {
			refused = append(refused, e.Field)
			continue
		}
		got.Errors = append(got.Errors, problem{kinds[e.Type], e.Field, e.Detail})
	}
	if err := same("errors", out, got); err != nil || len(refused) == 0 {
		return nil, errors.Join(err, same("negative bounds", negative(d.Spec.Strategy), refused))
	}
	return []string{"DS-14"}, same("negative bounds", negative(d.Spec.Strategy), refused)
}

// negative returns the fields of bounds that are below 0.
func negative(s v1alpha1.MachineDeploymentStrategy) (fields []string) {
	u, path := v1alpha1.UpdateConfiguration{}, ""
	switch {
	case s.Type == v1alpha1.RollingUpdateMachineDeploymentStrategyType && s.RollingUpdate != nil:
		u, path = s.RollingUpdate.UpdateConfiguration, "spec.strategy.rollingUpdate"
	case s.Type == v1alpha1.InPlaceUpdateMachineDeploymentStrategyType && s.InPlaceUpdate != nil:
		u, path = s.InPlaceUpdate.UpdateConfiguration, "spec.strategy.inPlaceUpdate"
	}
	below := func(v *intstr.IntOrString) bool {
		if v == nil {
			return false
		}
		number, percent := strings.CutSuffix(v.String(), "%")
		n, err := strconv.ParseInt(number, 10, 32)
		return err == nil && n < 0 && percent == (v.Type == intstr.String)
	}
	if below(u.MaxUnavailable) {
		fields = append(fields, path+".maxUnavailable")
	}
	if below(u.MaxSurge) {
		fields = append(fields, path+".maxSurge")
	}
	return fields
}
