// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"errors"
	"maps"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type templateEqualityIn struct{ A, B *template }

type templateEqualityOut struct{ EqualIgnoringHash bool }

// sidedLabels is the fault of MCM that has no number: it walks
// the labels of the template that has more of them, or of the second, and takes a
// label that the other one lacks for an empty one. So the order of the arguments
// matters.
const sidedLabels = "labels of one side"

func templateEquality(in templateEqualityIn, out templateEqualityOut) ([]string, error) {
	a, b := in.A.object(), in.B.object()
	got := deployment.EqualIgnoreHash(a, b)
	if got != deployment.EqualIgnoreHash(b, a) {
		return nil, errors.New("the order matters")
	}
	setA, errA := newSetOf(a)
	setB, errB := newSetOf(b)
	if errA != nil || errB != nil || got && setA.Name != setB.Name {
		return nil, errors.Join(errors.New("equal templates with different hashes"), errA, errB)
	}
	model := func(m mended) templateEqualityOut {
		x, y := a, b
		labels := walkedEqual(in.A.Labels, in.B.Labels)
		if m[sidedLabels] {
			labels = walkedEqual(in.A.Labels, in.B.Labels) && walkedEqual(in.B.Labels, in.A.Labels) && lackNone(in.A.Labels, in.B.Labels) && lackNone(in.B.Labels, in.A.Labels)
		}
		x.Labels, y.Labels = nil, nil
		return templateEqualityOut{labels && deployment.EqualIgnoreHash(x, y)}
	}
	return explain([]string{sidedLabels}, model, out, templateEqualityOut{got})
}

func walkedEqual(a, b map[string]string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for k, v := range b {
		if a[k] != v && k != v1alpha1.DefaultMachineDeploymentUniqueLabelKey {
			return false
		}
	}
	return true
}

// lackNone reports whether b has all labels of a, the hash apart.
func lackNone(a, b map[string]string) bool {
	want := maps.Clone(a)
	delete(want, v1alpha1.DefaultMachineDeploymentUniqueLabelKey)
	for k := range want {
		if _, ok := b[k]; !ok {
			return false
		}
	}
	return true
}
