// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// mended are the defects that a model does not have.
type mended map[string]bool

func without(defects ...string) mended {
	m := mended{}
	for _, d := range defects {
		m[d] = true
	}
	return m
}

// explain judges by a model, a naive model of MCM in which each
// of the defects can be mended. With none mended it has to reproduce the vector,
// with all of them mended it has to agree with us. The deviations are those
// defects that make a difference, alone or at last.
func explain[T any](defects []string, model func(mended) T, vector, ours T) ([]string, error) {
	if err := same("the model does not reproduce the vector", vector, model(nil)); err != nil {
		return nil, err
	}
	all := model(without(defects...))
	if err := same("the model without defects does not agree with us", all, ours); err != nil {
		return nil, err
	}
	if equal(vector, ours) {
		return nil, nil
	}
	var deviations []string
	for i, d := range defects {
		others := append(append([]string{}, defects[:i]...), defects[i+1:]...)
		if !equal(vector, model(without(d))) || !equal(all, model(without(others...))) {
			deviations = append(deviations, d)
		}
	}
	if len(deviations) == 0 {
		return nil, fmt.Errorf("several defects are needed to tell %v from %v", vector, ours)
	}
	return deviations, nil
}

func equal(a, b any) bool { return cmp.Equal(a, b, cmpopts.EquateEmpty()) }
