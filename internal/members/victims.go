// SPDX-License-Identifier: Apache-2.0

package members

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// victimsAnnotation names the machines of a set that are deleted first if it has too many,
// separated by commas. It is written together with the size, so that one write says how many
// machines are deleted and which. Names of unknown or leaving machines have no effect, and no name
// has one if the set is not too large. So nothing is deleted twice.
//
// A named machine is deleted even if it is preserved. [DeletionOrder] has preserved machines last,
// so they are named only if no others are left. A set of size 0 deletes preserved machines, as in
// MCM.
const victimsAnnotation = "machinist.dev/delete-first"

// MaxVictims is how many machines one write names at most.
const MaxVictims = 500

// maxAnnotations is how many bytes the annotations of one object may have, keys and values
// together.
const maxAnnotations = 256 << 10

// How a machine came to be chosen, beside the criteria of an [Order].
const (
	// ByDemand means that an autoscaler named the machine: see [NamedByAutoscaler].
	ByDemand = "NamedByAutoscaler"
	// ByPlan means that the set names the machine: see [NameVictims].
	ByPlan = "NamedByPlan"
)

// Victims returns the names in the annotation machinist.dev/delete-first of a set, in their order
// and each once, without invalid names. It returns nil for a nil set.
func Victims(set *v1alpha1.MachineSet) []string {
	if set == nil {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for name := range strings.SplitSeq(set.Annotations[victimsAnnotation], ",") {
		if name = strings.TrimSpace(name); nameable(name) && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// NameVictims writes the names into the annotation of the set and returns how many it wrote. It
// writes each name once, at most [MaxVictims], no invalid ones, and fewer if the annotations would
// exceed what the API server stores. If it writes none, it removes the annotation. If the set
// shrinks by more machines than are named, it chooses the others itself. For a nil set it returns
// 0.
func NameVictims(set *v1alpha1.MachineSet, names []string) int {
	if set == nil {
		return 0
	}
	delete(set.Annotations, victimsAnnotation)
	room := maxAnnotations - len(victimsAnnotation)
	for key, value := range set.Annotations {
		room -= len(key) + len(value)
	}
	var fit []string
	seen := map[string]bool{}
	for _, name := range names {
		if !nameable(name) || seen[name] {
			continue
		}
		if room -= len(name) + 1; room < 0 || len(fit) == MaxVictims {
			break
		}
		seen[name] = true
		fit = append(fit, name)
	}
	if len(fit) == 0 {
		return 0
	}
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	set.Annotations[victimsAnnotation] = strings.Join(fit, ",")
	return len(fit)
}

// nameable reports whether a name is valid in the annotation: neither empty nor too long, and the
// same when it is read.
func nameable(name string) bool {
	return name != "" && len(name) <= validation.DNS1123SubdomainMaxLength &&
		!strings.Contains(name, ",") && strings.TrimSpace(name) == name
}

// Choose returns the eligible machines that a set deletes to keep the given number: all that an
// autoscaler named, even if the set is not too large; then, while there are too many, those that
// the set names, in that order; then the first by o. A negative keep is 0. The machines have to be
// [Eligible]; nil machines are skipped.
//
// The result does not depend on the order of the machines. Repeated calls choose the same machines
// until they are leaving, unless the set keeps more, names others, or machines change. A machine
// whose deletion was requested is not eligible, so no other is chosen in its place.
func Choose(set *v1alpha1.MachineSet, eligible []*v1alpha1.Machine, keep int, o Order) []Victim {
	var demanded, rest []*v1alpha1.Machine
	for _, m := range eligible {
		switch {
		case m == nil:
		case NamedByAutoscaler(set, m):
			demanded = append(demanded, m)
		default:
			rest = append(rest, m)
		}
	}
	victims := make([]Victim, 0, len(demanded))
	for _, v := range o.First(demanded, len(demanded)) {
		victims = append(victims, Victim{v.Machine, ByDemand})
	}
	k := len(rest) - max(0, keep)
	if k <= 0 {
		return victims
	}
	named, rest := named(Victims(set), rest)
	for _, m := range named[:min(k, len(named))] {
		victims = append(victims, Victim{m, ByPlan})
	}
	return append(victims, o.First(rest, k-len(named))...)
}

// named returns the machines with these names, in the order of the names, and the rest. Of several
// with one name it takes the one with the smallest UID.
func named(names []string, machines []*v1alpha1.Machine) (taken, rest []*v1alpha1.Machine) {
	if len(names) == 0 {
		return nil, machines
	}
	at := make(map[string]*v1alpha1.Machine, len(names))
	for _, name := range names {
		at[name] = nil
	}
	for _, m := range machines {
		if known, ok := at[m.Name]; ok && (known == nil || m.UID < known.UID) {
			at[m.Name] = m
		}
	}
	for _, m := range machines {
		if at[m.Name] != m {
			rest = append(rest, m)
		}
	}
	for _, name := range names {
		if m := at[name]; m != nil {
			taken = append(taken, m)
		}
	}
	return taken, rest
}
