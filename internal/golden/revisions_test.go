// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"
	"strconv"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type revisionsIn struct{ Revisions []*string }

type revisionsOut struct{ Last, Max int64 }

func revisions(in revisionsIn, out revisionsOut) ([]string, error) {
	var list []*v1alpha1.MachineSet
	for i, r := range in.Revisions {
		s := &v1alpha1.MachineSet{}
		s.Namespace, s.Name = "ns", fmt.Sprint("s", i)
		if r != nil {
			s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: *r}
		}
		list = append(list, s, nil)
	}
	newSet, err := newSetOf(v1alpha1.MachineTemplateSpec{}, list...)
	if err != nil {
		return nil, err
	}
	next, _ := strconv.ParseInt(newSet.Annotations[v1alpha1.RevisionAnnotation], 10, 64)
	return nil, same("revisions", out, revisionsOut{Max: next - 1, Last: deployment.LastRevision(list)})
}
