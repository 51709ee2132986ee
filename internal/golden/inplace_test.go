// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/decided"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type oldMachine struct {
	Machine                                        string
	HasNode, CandidateForUpdate, SelectedForUpdate bool
	UpdateResult, InPlaceConditionReason           string
	Phase                                          v1alpha1.MachinePhase
}

type inPlaceStepIn struct {
	MachineDeployment machineDeployment
	NewMS             *machineSet
	OldMSs            []*machineSet
	OldMachines       map[string][]oldMachine
}

type inPlaceStepOut struct {
	NewSetScaled, OldWorkDone          bool
	NewError, OldError                 *string
	NewlySelectedPerSet                map[string]int
	ReplicasAfterNew, ReplicasAfterOld map[string]int32
	TransferredMachines                []string
}

// moved is what a step comes to.
type moved struct {
	Replicas    map[string]int32
	Transferred []string
	Selected    map[string]int
}

func inPlaceStep(in inPlaceStepIn, out inPlaceStepOut) ([]string, error) {
	model := inPlaceModel(in, nil)
	if err := same("the model does not reproduce the vector", out, model); err != nil {
		return nil, err
	}
	seen := in.observation()
	plan := decide(seen)
	got := movedBy(seen, plan)
	cut := got
	if len(got.Transferred) > 0 {
		got.Replicas, got.Selected = sizesAfter(seen, plan), nil
		cut = moved{maps.Clone(got.Replicas), got.Transferred, nil}
		for _, s := range in.OldMSs {
			left := s.Replicas
			for _, m := range in.OldMachines[s.Name] {
				left -= one(slices.Contains(got.Transferred, m.Machine))
			}
			if got.Replicas[in.NewMS.Name] == in.MachineDeployment.Replicas {
				got.Replicas[s.Name] = max(got.Replicas[s.Name], left) // the step after this one has begun
			}
		}
	}
	if err := inPlaceBounds(in, seen, got); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, plan)
	}
	if d, err := inPlaceSurplus(in, out.moved(), cut); d != nil || err != nil {
		return d, err
	}
	d, err := explain([]string{"DS-5", "DS-8", floor}, func(m mended) moved { return inPlaceModel(in, m).moved() }, out.moved(), got)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, plan)
	}
	return d, nil
}

func (o inPlaceStepOut) moved() moved {
	if o.NewSetScaled {
		return moved{o.ReplicasAfterNew, o.TransferredMachines, nil}
	}
	return moved{o.ReplicasAfterOld, o.TransferredMachines, o.NewlySelectedPerSet}
}

func movedBy(seen deployment.Observation, plan deployment.Decision) moved {
	got := moved{Replicas: sizesOf(plan), Selected: map[string]int{}}
	sets := map[string]string{} // of machines and of their Nodes
	for _, m := range seen.Machines {
		sets[m.Name] = m.OwnerReferences[0].Name
		sets[m.Labels[v1alpha1.NodeLabelKey]] = m.OwnerReferences[0].Name
	}
	for _, a := range plan.Actions {
		u, _ := a.(machinist.Update)
		switch o := u.Object.(type) {
		case *v1alpha1.Machine:
			if o.OwnerReferences[0].Name != sets[o.Name] {
				got.Transferred = append(got.Transferred, o.Name)
			}
		case *corev1.Node:
			if o.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] == "true" && u.Before.(*corev1.Node).Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] == "" {
				got.Selected[sets[o.Name]]++
			}
		}
	}
	slices.Sort(got.Transferred)
	return got
}

// inPlaceBounds says that no more machines are taken out of service than may be,
// be it by a selection or by a cut.
func inPlaceBounds(in inPlaceStepIn, seen deployment.Observation, got moved) error {
	selected, available := 0, 0
	for _, n := range got.Selected {
		selected += n
	}
	for _, s := range in.OldMSs {
		for _, m := range in.OldMachines[s.Name] {
			if m.Phase == v1alpha1.MachineRunning && !(m.HasNode && m.SelectedForUpdate) {
				available++
			}
		}
	}
	available += int(in.NewMS.Status.AvailableReplicas)
	least := int(seen.Deployment.Spec.Replicas - unavailableOf(seen.Deployment))
	serving := seen
	serving.Sets = slices.Clone(seen.Sets)
	for i, s := range serving.Sets {
		serving.Sets[i] = s.DeepCopy()
		if old := slices.IndexFunc(in.OldMSs, func(o *machineSet) bool { return o.Name == s.Name }); old >= 0 {
			serving.Sets[i].Status.AvailableReplicas = in.serving(in.OldMSs[old])
		}
	}
	may, ours := allowed(serving), tollOf(serving.Sets, got.Replicas)
	if len(got.Transferred) == 0 && ours.available < may.available {
		return fmt.Errorf("%d available machines are left, at least %d", ours.available, may.available)
	}
	if selected > max(0, available-least) {
		return fmt.Errorf("%d of %d available machines selected, at least %d", selected, available, least)
	}
	return nil
}

// serving are the available machines of a set that are not about to be drained.
func (in inPlaceStepIn) serving(s *machineSet) int32 {
	n := s.Status.AvailableReplicas
	for _, m := range in.OldMachines[s.Name] {
		n -= one(m.Phase == v1alpha1.MachineRunning && m.HasNode && m.SelectedForUpdate)
	}
	return n
}

// sizesAfter are the sizes once the sets have reported on a move. In ours, sizes
// follow the machines in a pass of their own.
func sizesAfter(seen deployment.Observation, plan deployment.Decision) map[string]int32 {
	next, sizes := seen, map[string]int32{}
	next.Sets, next.Machines = slices.Clone(seen.Sets), slices.Clone(seen.Machines)
	for i, m := range next.Machines {
		next.Machines[i] = decided.After(m, plan.Actions)
	}
	for i, s := range next.Sets {
		s = decided.After(s, plan.Actions).DeepCopy()
		next.Sets[i], sizes[s.Name] = s, s.Spec.Replicas
		s.Status.Replicas, s.Status.AvailableReplicas = 0, 0
		for _, m := range next.Machines {
			if m.OwnerReferences[0].UID == s.UID {
				s.Status.Replicas++
				s.Status.AvailableReplicas += one(m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning)
			}
		}
	}
	maps.Copy(sizes, sizesOf(decide(next)))
	return sizes
}

// inPlaceSurplus is for sets that were asked for more machines than there may be,
// which comes of a smaller number of replicas during an update (DS-3). The
// reference goes on as if nothing were; ours cuts old sets first.
func inPlaceSurplus(in inPlaceStepIn, want, got moved) ([]string, error) {
	d := in.MachineDeployment.object()
	most := d.Spec.Replicas
	if in.MachineDeployment.OrchestrationType == "Auto" {
		surge, _ := boundsModel(in.MachineDeployment.surge(), in.MachineDeployment.MaxUnavailable.IntOrString, most)
		most += max(0, surge)
	}
	sum := in.NewMS.Replicas
	for _, s := range in.OldMSs {
		sum += s.Replicas
	}
	if in.NewMS.Replicas > d.Spec.Replicas {
		most = d.Spec.Replicas // no surge is left to have
	}
	if in.NewMS.Replicas == d.Spec.Replicas || sum <= most || equal(want.Replicas, got.Replicas) {
		return nil, nil
	}
	after := int32(0)
	for name, n := range got.Replicas {
		after += n
		// Sizes follow moves once the cut is done.
		behind := name == in.NewMS.Name && n < min(in.NewMS.Replicas, want.Replicas[name])
		if n > want.Replicas[name] || behind {
			return nil, same("a cut", want, got)
		}
	}
	for name, n := range got.Selected {
		if n > want.Selected[name] {
			return nil, same("more selected in a cut", want, got)
		}
	}
	if after+int32(len(got.Transferred)) < most || after >= sum {
		return nil, fmt.Errorf("cut from %d to %d, and at most %d", sum, after, most)
	}
	for _, name := range got.Transferred {
		if !slices.Contains(want.Transferred, name) {
			return nil, same("transferred", want.Transferred, got.Transferred)
		}
	}
	return []string{"DS-3"}, nil
}

// observation is a view of the vector: the machines of old sets as they are told,
// those of the new set by its status.
func (in inPlaceStepIn) observation() deployment.Observation {
	seen := world{in.MachineDeployment, in.NewMS, in.OldMSs}.observation()
	seen.Nodes = map[string]*corev1.Node{}
	seen.Machines = slices.DeleteFunc(seen.Machines, func(m *v1alpha1.Machine) bool { return m.OwnerReferences[0].Name != in.NewMS.Name })
	for _, m := range seen.Machines {
		seen.Nodes[m.Labels[v1alpha1.NodeLabelKey]] = nodeFor(m)
	}
	for _, s := range seen.Sets {
		if s.Name != in.NewMS.Name { // the step before
			s.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled] = "true"
		}
		for _, g := range in.OldMachines[s.Name] {
			m := machine{Name: g.Machine, Phase: g.Phase, Owner: s.Name, Labels: maps.Clone(s.Spec.Selector.MatchLabels), InPlaceConditionReason: g.InPlaceConditionReason}
			if g.HasNode {
				m.Node = "node-" + g.Machine
			}
			seen.Machines = append(seen.Machines, m.object())
			if g.HasNode {
				seen.Nodes[m.Node] = g.node(m.object())
			}
		}
	}
	return seen
}

func (g oldMachine) node(m *v1alpha1.Machine) *corev1.Node {
	n := nodeFor(m)
	n.Labels = map[string]string{}
	if g.CandidateForUpdate {
		n.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate] = "true"
	}
	if g.SelectedForUpdate {
		n.Labels[v1alpha1.LabelKeyNodeSelectedForUpdate] = "true"
	}
	if g.UpdateResult != "" {
		n.Labels[v1alpha1.LabelKeyNodeUpdateResult] = g.UpdateResult
	}
	if g.InPlaceConditionReason != "" {
		n.Status.Conditions = append(n.Status.Conditions, inPlaceCondition(g.InPlaceConditionReason))
	}
	return n
}

// floor is the fault of MCM that has no number: when the new set
// has its size, all old machines go, whether the new ones are available or not.
const floor = "below the floor (I-7)"

// inPlaceModel takes one step of an in-place update.
//
//	DS-5   a machine that is being updated counts once against the availability
//	DS-8   no more machines move than the new set may have
//	floor  old machines go after a surge as far as enough others are available
func inPlaceModel(in inPlaceStepIn, m mended) inPlaceStepOut {
	old := slices.Clone(in.OldMSs)
	slices.SortStableFunc(old, func(a, b *machineSet) int {
		return cmp.Or(cmp.Compare(a.CreatedOffset, b.CreatedOffset), strings.Compare(a.Name, b.Name))
	})
	t := &inPlaceStepState{in: in, old: old, size: map[string]int32{in.NewMS.Name: in.NewMS.Replicas}}
	for _, s := range old {
		t.size[s.Name] = s.Replicas
		t.spec += s.Replicas
		t.available += s.Status.AvailableReplicas
	}
	t.newSet(m)
	t.out.ReplicasAfterNew = maps.Clone(t.size)
	if !t.out.NewSetScaled {
		t.out.NewlySelectedPerSet = map[string]int{}
		t.oldSets(m)
		t.out.ReplicasAfterOld = t.size
	}
	return t.out
}

type inPlaceStepState struct {
	in              inPlaceStepIn
	old             []*machineSet
	size            map[string]int32
	spec, available int32 // of old sets
	out             inPlaceStepOut
}

func (t *inPlaceStepState) newSet(mend mended) {
	name, desired, size := t.in.NewMS.Name, t.in.MachineDeployment.Replicas, t.in.NewMS.Replicas
	switch {
	case size == desired:
	case size > desired, t.spec == 0:
		t.size[name] = desired
	case t.spec+size < desired:
		t.size[name] = desired - t.spec
	default:
		for _, s := range t.old {
			for _, m := range t.in.OldMachines[s.Name] {
				if m.HasNode && m.InPlaceConditionReason == "UpdateSuccessful" && m.UpdateResult == "successful" && m.Phase != "InPlaceUpdating" && (!mend["DS-8"] || t.size[name] < desired) {
					t.size[s.Name]--
					t.size[name]++
					t.out.TransferredMachines = append(t.out.TransferredMachines, m.Machine)
				}
			}
		}
	}
	slices.Sort(t.out.TransferredMachines)
	t.out.NewSetScaled = t.size[name] != size
}

func (t *inPlaceStepState) oldSets(m mended) {
	md, newSet := t.in.MachineDeployment, t.in.NewMS
	if t.spec == 0 {
		return
	}
	if newSet.Replicas == md.Replicas {
		spare := newSet.Status.AvailableReplicas - md.Replicas + unavailableOf(md.object())
		for _, s := range t.old {
			spare += t.in.serving(s)
		}
		for _, s := range t.old {
			keep := int32(0)
			if m[floor] {
				keep = max(0, min(t.in.serving(s), s.Replicas)-max(0, spare))
				spare -= min(t.in.serving(s), s.Replicas) - keep
			}
			t.size[s.Name] = keep
		}
		t.out.OldWorkDone = true
		return
	}
	if md.OrchestrationType == "Manual" {
		return
	}
	quota := t.quota(m)
	for _, s := range t.old {
		n := min(quota, s.Replicas)
		for _, x := range t.in.OldMachines[s.Name] {
			if n > 0 && x.HasNode && x.CandidateForUpdate && !x.SelectedForUpdate {
				t.out.NewlySelectedPerSet[s.Name]++
				n--
				quota--
			}
		}
	}
	t.out.OldWorkDone = len(t.out.NewlySelectedPerSet) > 0
}

// quota is how many machines are selected.
func (t *inPlaceStepState) quota(m mended) int32 {
	md, newSet := t.in.MachineDeployment, t.in.NewMS
	least := md.Replicas - unavailableOf(md.object())
	var selected, running, ended int32
	for _, s := range t.old {
		for _, x := range t.in.OldMachines[s.Name] {
			if x.HasNode && x.SelectedForUpdate {
				selected++
				running += one(x.Phase == "Running" || x.Phase == "Available")
				ended += one(x.UpdateResult == "failed")
			}
		}
	}
	available := t.available + newSet.Status.AvailableReplicas
	if m["DS-5"] {
		return max(0, min(available-running-least, md.Replicas-newSet.Replicas-selected+ended))
	}
	spare := t.spec + newSet.Replicas - least - max(0, newSet.Replicas-newSet.Status.AvailableReplicas) - selected
	if selected+newSet.Replicas >= md.Replicas || spare <= 0 || available-selected <= least {
		return 0
	}
	return min(available-selected-least, max(md.Replicas-newSet.Replicas, 0))
}
