// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type hashNamesIn struct {
	CollisionCount *int32
	Template       *template
}

type hashNamesOut struct{ HashLabel, NameSuffix string }

// hashNames does not compare the hash, which depends on the memory layout of MCM: sets are found by
// their template. The suffix follows from the hash by the same rule.
func hashNames(in hashNamesIn, out hashNamesOut) ([]string, error) {
	if err := same("suffix by the rule", out.NameSuffix, suffixModel(out.HashLabel)); err != nil {
		return nil, err
	}
	s, err := newSetOf(in.Template.object())
	if err != nil {
		return nil, err
	}
	return nil, same("name", "md-"+suffixModel(s.Labels[v1alpha1.DefaultMachineDeploymentUniqueLabelKey]), s.Name)
}

// suffixModel spells the first five digits of a hash without vowels.
func suffixModel(hash string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	out := ""
	for _, r := range hash[:min(5, len(hash))] {
		out += string(letters[int(r)%len(letters)])
	}
	return out
}
