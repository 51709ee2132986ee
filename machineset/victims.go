// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// victimsAnnotation on a set names the machines that go first when the set has
// too many, separated by commas. It is written together with the size, so that
// one write says how many go and which. Names that are of no machine, or of one
// that is leaving, say nothing; nor does any name once the set has no more
// machines than it wants. So a repeated or late reading deletes nothing twice.
//
// A name outranks a preservation: whoever names a machine has decided that it
// goes. Whoever is to choose the names finds preserved machines at the end of
// [DeletionOrder], and so names them only if no others are left. That no name at
// all keeps a preserved machine from going with a set that shrinks to 0 is as in
// the reference system.
const victimsAnnotation = "machinist.dev/delete-first"

// MaxVictims is how many machines one write names at most.
const MaxVictims = 500

// maxAnnotations is how many bytes the API server stores in the annotations of
// one object, keys and values together.
const maxAnnotations = 256 << 10

// How a machine came to be chosen, beside the criteria of an [Order].
const (
	// ByDemand says that an autoscaler named the machine; see [NamedByAutoscaler].
	ByDemand = "NamedByAutoscaler"
	// ByPlan says that the set names the machine; see [NameVictims].
	ByPlan = "NamedByPlan"
)

// Victims returns the names in the annotation machinist.dev/delete-first of a set, in their order
// and each once. What cannot be the name of a machine is left out. A nil set has
// none.
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

// NameVictims writes the names into the annotations of a set, which is changed,
// and returns how many of them it wrote; if none, the annotation is taken away.
// The first [MaxVictims] are written, and fewer if the annotations of the set
// would get larger than the API server stores. Each is written once, and what
// cannot be the name of a machine is left out. If a set shrinks by more machines
// than were written, it chooses the others itself. A nil set stays nil.
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

// nameable reports whether a text can stand in a list of names: it is neither
// empty nor too long for a name, and is the same when read back.
func nameable(name string) bool {
	return name != "" && len(name) <= validation.DNS1123SubdomainMaxLength &&
		!strings.Contains(name, ",") && strings.TrimSpace(name) == name
}

// Choose returns which of the eligible machines a set lets go if it is to keep
// that many: all that an autoscaler named, even if no machine is too many; then,
// as long as there are too many, those that the set names, in the order of their
// names there, and then the first in the given order. A keep below 0 counts as 0.
// Machines are to be eligible as [Eligible] tells; nil ones are skipped.
//
// The result depends neither on the order of the machines nor on how often it is
// asked: whoever is chosen stays chosen until it leaves, unless the set is asked
// to keep more, names others, or the machines change. Once its deletion is in
// flight it is not eligible any more, and no change chooses another in its place.
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

// named takes the machines with these names, in the order of the names, out of
// the others. Of several with one name, it takes the one with the smallest UID.
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
