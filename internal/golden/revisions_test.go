// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type revisionsIn struct{ Revisions []*string }

type revisionsOut struct{ Last, Max int64 }

func revisions(in revisionsIn, out revisionsOut) ([]string, error) {
	var list []*v1alpha1.MachineSet
	for _, r := range in.Revisions {
		s := &v1alpha1.MachineSet{}
		if r != nil {
			s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: *r}
		}
		list = append(list, s, nil)
	}
	return nil, same("revisions", out, revisionsOut{Max: deployment.MaxRevision(list), Last: deployment.LastRevision(list)})
}
