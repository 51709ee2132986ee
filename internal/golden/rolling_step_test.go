// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type rollingStepOut struct {
	NewSetScaled, OldSetsScaledDown bool
	Replicas                        map[string]int32
	Events                          []string
	Error                           *string
}

// rolled is one step of a rolling update.
type rolled struct {
	Replicas map[string]int32
	Events   []string
}

func rollingStep(in world, out rollingStepOut) ([]string, error) {
	model := rollingModel(in, nil)
	if err := same("the model does not reproduce the vector", out, model); err != nil {
		return nil, err
	}
	seen := in.observation()
	for _, s := range seen.Sets {
		s.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "1"}
	}
	plan := deployment.Decide(seen, deployment.Policy{}, now)
	got := rolled{Replicas: map[string]int32{}}
	for _, s := range seen.Sets {
		to, err := plan.Target(s.UID)
		if err != nil {
			return nil, err
		}
		got.Replicas[s.Name] = to.To
	}
	for _, a := range plan.Actions {
		if e := reportOf(a); e != nil {
			got.Events = append(got.Events, e.String())
		}
	}
	may, ours := allowed(seen), tollOf(seen.Sets, got.Replicas)
	if ours.machines > may.machines || ours.available < may.available {
		return nil, fmt.Errorf("machines and available %v, allowed are %v\n%s", ours, may, plan)
	}
	got.Events = lastEvents(got.Events)
	if equal(rolled{out.Replicas, lastEvents(out.Events)}, got) {
		return nil, nil
	}
	var deviations []string
	better := rollingModel(in, without("DS-11"))
	want := rolled{better.Replicas, lastEvents(better.Events)}
	if !equal(better, out) {
		deviations = append(deviations, "DS-11")
	}
	if !equal(want, got) {
		more := rollingDefects(seen, want.Replicas, got.Replicas)
		if len(more) == 0 {
			return nil, fmt.Errorf("%w\n%s", same("no defect shows", want, got), plan)
		}
		deviations = append(deviations, more...)
	}
	return deviations, nil
}

// lastEvents are those of each set's last change, as we write a set once where the
// reference writes it twice.
func lastEvents(events []string) []string {
	last := map[string]string{}
	for _, e := range events {
		_, rest, _ := strings.Cut(e, "machine set ")
		name, _, _ := strings.Cut(rest, " ")
		last[name] = e
	}
	return slices.Sorted(maps.Values(last))
}

// A toll is what sizes come to: how many machines there may be at most, and how
// many of them are available at least. Machines of a set beyond its present size
// are on their way out, those that are not available first.
type toll struct{ machines, available int32 }

func tollOf(sets []*v1alpha1.MachineSet, size map[string]int32) toll {
	var t toll
	for _, s := range sets {
		n := size[s.Name]
		t.available += min(s.Status.AvailableReplicas, n)
		if leaving := s.Status.Replicas - s.Spec.Replicas; leaving > 0 && n > s.Spec.Replicas {
			n += leaving
		}
		t.machines += max(n, s.Status.Replicas)
	}
	return t
}

// allowed is the toll that a step has to keep to: the bounds, or what it was
// before.
func allowed(seen deployment.Observation) toll {
	d, size := seen.Deployment, map[string]int32{}
	for _, s := range seen.Sets {
		size[s.Name] = s.Spec.Replicas
	}
	before := tollOf(seen.Sets, size)
	surge, unavailable := max(0, surgeOf(d)), unavailableOf(d)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return toll{max(before.machines, d.Spec.Replicas+surge), min(before.available, d.Spec.Replicas-unavailable)}
}

// rollingModel takes one step by what the sets have reported: the new set first,
// the old ones only if it does not change. Mended (DS-11), it goes on if more are
// available in an old set than it was asked for, and counts no more than those.
func rollingModel(in world, m mended) rollingStepOut {
	d := in.MachineDeployment.object()
	desired, surge := d.Spec.Replicas, surgeOf(d)
	least := desired - unavailableOf(d)
	old := slices.Clone(in.OldMSs)
	slices.SortStableFunc(old, func(a, b *machineSet) int {
		return cmp.Or(cmp.Compare(a.CreatedOffset, b.CreatedOffset), strings.Compare(a.Name, b.Name))
	})
	o := rollingStepOut{Replicas: map[string]int32{}}
	var reported, asked int32
	for _, s := range append(slices.Clone(old), in.NewMS) {
		o.Replicas[s.Name] = s.Replicas
		reported += s.Status.Replicas
		asked += s.Replicas
	}
	to := in.NewMS.Replicas
	switch {
	case to > desired:
		to = desired
	case to < desired && reported < desired+surge:
		to += min(desired+surge-reported, desired-to)
	}
	if to != in.NewMS.Replicas {
		o.NewSetScaled = true
		o.size(in.NewMS.Name, to)
		return o
	}
	if asked == in.NewMS.Replicas {
		return o
	}
	budget := asked - least - (in.NewMS.Replicas - in.NewMS.Status.AvailableReplicas)
	if budget > 0 {
		o.reduce(old, in.NewMS, budget, least, m)
	}
	return o
}

func (o *rollingStepOut) size(name string, to int32) {
	word := "up"
	if to < o.Replicas[name] {
		word = "down"
	}
	o.Replicas[name] = to
	o.Events = append(o.Events, fmt.Sprintf("Normal ScalingMachineSet Scaled %s machine set %s to %d", word, name, to))
}

// reduce takes away machines that are not available, and then available ones.
func (o *rollingStepOut) reduce(old []*machineSet, newSet *machineSet, budget, least int32, m mended) {
	active := slices.DeleteFunc(slices.Clone(old), func(s *machineSet) bool { return s.Replicas == 0 })
	var cleaned, down int32
	for _, s := range active {
		k := min(budget-cleaned, s.Replicas-s.Status.AvailableReplicas)
		if m["DS-11"] {
			k = max(0, k)
		}
		if cleaned >= budget {
			break
		}
		if k < 0 {
			return // more are available than asked for: an error that no caller reads
		}
		if k > 0 {
			o.size(s.Name, s.Replicas-k)
			cleaned += k
		}
	}
	available := newSet.Status.AvailableReplicas
	for _, s := range active {
		n := s.Status.AvailableReplicas
		if m["DS-11"] {
			n = min(n, s.Replicas)
		}
		available += n
	}
	for _, s := range active {
		k := min(o.Replicas[s.Name], available-least-down)
		if k > 0 {
			o.size(s.Name, o.Replicas[s.Name]-k)
			down += k
		}
	}
	o.OldSetsScaledDown = cleaned+down > 0
}

// rollingDefects says which defects show in a step that MCM would take
// if it knew of DS-11.
//
//	DS-1   there may be more machines than are allowed: those that are asked for and not reported, or are on their way out, are forgotten
//	DS-10  fewer are available than have to be: machines that are on their way out are counted
//
// A new set that has more machines than it wants shows both. Once it has grown, the number
// of machines that it deletes is unknown, so this module waits. Its available machines are
// no reason to delete others.
func rollingDefects(seen deployment.Observation, theirs, ours map[string]int32) []string {
	var out []string
	may, reference, s := allowed(seen), tollOf(seen.Sets, theirs), seen.Sets[0]
	waits := s.Status.Replicas > s.Spec.Replicas && theirs[s.Name] > s.Spec.Replicas && ours[s.Name] == s.Spec.Replicas
	if reference.machines > may.machines || waits {
		out = append(out, "DS-1")
	}
	fewer := false
	for name, n := range ours {
		fewer = fewer || n < theirs[name]
	}
	if reference.available < may.available || s.Status.AvailableReplicas > s.Spec.Replicas && !fewer {
		out = append(out, "DS-10")
	}
	return out
}
