// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machinist-dev/machinist/deployment"
)

type validationIn struct {
	MachineDeployment   machineDeployment
	SelectorMatchLabels map[string]string
}

type problem struct{ Type, Field, Detail string }

type validationOut struct{ Errors []problem }

func validation(in validationIn, out validationOut) ([]string, error) {
	d := in.MachineDeployment.object()
	d.Spec.Selector.MatchLabels = maps.Clone(in.SelectorMatchLabels)
	kinds := map[field.ErrorType]string{field.ErrorTypeRequired: "FieldValueRequired", field.ErrorTypeInvalid: "FieldValueInvalid"}
	var got validationOut
	for _, e := range deployment.Validate(d) {
		got.Errors = append(got.Errors, problem{kinds[e.Type], e.Field, e.Detail})
	}
	return nil, same("errors", out, got)
}
