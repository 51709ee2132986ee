// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"fmt"
	"maps"
	"strings"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Apply returns a copy of a set with the size and the annotations that a Scale
// gives it, to be written with the resource version that the set was read with.
// It returns nil if the set is nil, another one, or not of the size that the
// decision was made for.
func (a Scale) Apply(s *v1alpha1.MachineSet) *v1alpha1.MachineSet {
	if s == nil || s.UID != a.UID || s.Spec.Replicas != a.From ||
		a.ResourceVersion != "" && s.ResourceVersion != a.ResourceVersion {
		return nil
	}
	next := s.DeepCopy()
	next.Spec.Replicas = a.To
	if next.Annotations == nil && len(a.Annotations) > 0 {
		next.Annotations = map[string]string{}
	}
	maps.Copy(next.Annotations, a.Annotations)
	return next
}

// String returns the decision in one line, for logs and golden tests.
func (d Decision) String() string {
	var parts []string
	for _, a := range d.Actions {
		parts = append(parts, a.String())
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing")
	}
	parts = []string{fmt.Sprintf("%s (%s)", strings.Join(parts, "; "), d.Reason)}
	for _, h := range d.Holds {
		parts = append(parts, "waits for "+h.String())
	}
	return strings.Join(parts, "; ")
}
