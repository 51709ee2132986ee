// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"slices"
	"strings"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// CountedAnnotation on a deployment holds the names for which [ScaleDown] has
// lowered the replicas, separated by commas, as long as their machines exist. Those
// in v1alpha1.TriggerDeletionByMCM are forgotten, as in the reference system, when
// their machines begin to leave, which may take hours; who names such a machine
// again must not make the deployment smaller again.
const CountedAnnotation = "machinist.dev/scaled-down-for"

// counted returns the names in the [CountedAnnotation].
func counted(d *v1alpha1.MachineDeployment) []string {
	return slices.DeleteFunc(strings.Split(d.Annotations[CountedAnnotation], ","), func(name string) bool { return name == "" })
}

// forgetCounted forgets the names whose machines are gone, and those that were
// withdrawn, so that they count if they are named again.
func (c *pass) forgetCounted(named map[string]bool) {
	names := counted(c.d)
	if len(names) == 0 {
		return
	}
	going := map[string]bool{}
	for _, m := range c.in.Machines {
		if m != nil && (named[m.Name] || machineset.Leaving(m) || machineset.Failed(m)) {
			going[m.Name] = true
		}
	}
	left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !going[name] })
	switch {
	case len(left) == len(names):
		return
	case len(left) == 0:
		delete(c.d.Annotations, CountedAnnotation)
	default:
		annotate(c.d, CountedAnnotation, strings.Join(left, ","))
	}
	c.editDeployment("machines are gone that it was scaled down for")
}
