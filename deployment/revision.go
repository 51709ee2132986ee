// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"strconv"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Revision returns the revision of a set: 0 if it carries none, false if what
// it carries is not a number.
func Revision(s *v1alpha1.MachineSet) (int64, bool) {
	if s == nil {
		return 0, true
	}
	return parseRevision(s.Annotations[v1alpha1.RevisionAnnotation])
}

func parseRevision(text string) (int64, bool) {
	if text == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// MaxRevision returns the highest revision of the sets, 0 if there is none.
// Revisions that are not numbers are skipped.
func MaxRevision(sets []*v1alpha1.MachineSet) int64 {
	highest, _ := topRevisions(sets)
	return highest
}

// LastRevision returns the second highest revision of the sets, which is where
// a roll-back without a revision goes; two sets with the highest revision make
// it the same. It is 0 if there is none.
func LastRevision(sets []*v1alpha1.MachineSet) int64 {
	_, second := topRevisions(sets)
	return second
}

func topRevisions(sets []*v1alpha1.MachineSet) (highest, second int64) {
	for _, s := range sets {
		n, ok := Revision(s)
		switch {
		case s == nil || !ok:
		case n >= highest:
			highest, second = n, highest
		case n > second:
			second = n
		}
	}
	return highest, second
}
