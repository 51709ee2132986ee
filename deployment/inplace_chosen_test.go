// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

func deletedAt(seconds int64) *metav1.Time { return new(metav1.NewTime(time.Unix(seconds, 0))) }

// is puts a machine into a phase.
func (s *updScene) is(name string, phase v1alpha1.MachinePhase) {
	for _, m := range s.in.Machines {
		if m.Name == name {
			m.Status.CurrentStatus.Phase = phase
		}
	}
}

// older makes the machines that are added from now on those of one more old set.
func (s *updScene) older(size int32) {
	set := s.set("old").DeepCopy()
	set.Name, set.UID, set.Spec.Template, set.Spec.Replicas = "older", types.UID("older"), updTemplate("c0"), size
	set.Spec.Selector.MatchLabels["hash"] = "c0"
	set.CreationTimestamp = metav1.NewTime(time.Unix(-1, 0))
	set.Status = v1alpha1.MachineSetStatus{}
	s.in.Sets = append([]*v1alpha1.MachineSet{set}, s.in.Sets...)
}

func TestInPlaceWhichNodesAreSelected(t *testing.T) {
	const (
		running, pending, unknown = v1alpha1.MachineRunning, v1alpha1.MachinePending, v1alpha1.MachineUnknown
		failed, notUpdated        = v1alpha1.MachineFailed, v1alpha1.MachineInPlaceUpdateFailed
	)
	type machine struct {
		set, kind string
		phase     v1alpha1.MachinePhase
	}
	for name, c := range map[string]struct {
		replicas    int
		unavailable string
		machines    []machine // a, b, c and so on
		chosen      []string
	}{
		"one that works is given up for it": {2, "1", []machine{{"old", "candidate", running}, {"old", "candidate", running}}, []string{"a"}},
		"one that is broken comes first":    {2, "1", []machine{{"old", "candidate", running}, {"old", "candidate", unknown}}, []string{"b"}},
		"one that joins is waited for":      {2, "1", []machine{{"old", "candidate", pending}, {"old", "candidate", running}}, nil},
		"nor is one that is not begun with": {2, "1", []machine{{"old", "candidate", ""}, {"old", "candidate", running}}, nil},
		"one that has failed is replaced":   {2, "1", []machine{{"old", "candidate", failed}, {"old", "candidate", running}}, nil},
		"one is selected once":              {3, "2", []machine{{"old", "selected", running}, {"old", "candidate", running}, {"new", "Running", running}}, []string{"b"}},
		"machines of the new set are not":   {2, "2", []machine{{"new", "candidate", running}, {"old", "candidate", pending}}, nil},
		"broken ones only for as many places as there are": {3, "3", []machine{
			{"new", "Running", running}, {"new", "Running", running}, {"old", "candidate", unknown}, {"old", "candidate", unknown},
		}, []string{"c"}},
		"broken ones take the places of others": {3, "3", []machine{
			{"new", "Running", running}, {"old", "candidate", unknown}, {"old", "candidate", running}, {"old", "candidate", running},
		}, []string{"b", "c"}},
		"a broken one waits while another is updated":        {2, "1", []machine{{"old", "selected", running}, {"old", "candidate", unknown}}, nil},
		"a broken one waits if the update of another failed": {2, "1", []machine{{"old", "candidate", notUpdated}, {"old", "candidate", unknown}}, nil},
		"one of the new set that once failed is no reason":   {2, "1", []machine{{"new", "failed", running}, {"old", "candidate", unknown}}, []string{"b"}},
		"one of the new set that is broken is one":           {2, "1", []machine{{"new", "Running", unknown}, {"old", "candidate", unknown}}, nil},
		"bounds are for all old sets together":               {2, "1", []machine{{"old", "candidate", unknown}, {"older", "candidate", unknown}}, []string{"b"}},
		"also for machines that work":                        {3, "1", []machine{{"old", "candidate", running}, {"old", "candidate", running}, {"older", "candidate", running}}, []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			sizes := map[string]int32{}
			for _, m := range c.machines {
				sizes[m.set]++
			}
			surge := fmt.Sprint(len(c.machines) - c.replicas) // all may be there
			s := newUpdScene(updDeployment(c.replicas, surge, c.unavailable, false), "c2", sizes["old"], sizes["new"])
			for i, m := range c.machines {
				if m.set == "older" {
					s.older(1)
					m.set = "old"
				}
				name := string(rune('a' + i))
				s.machine(m.set, name, m.kind)
				s.is(name, m.phase)
				if m.kind == "failed" {
					delete(s.in.Nodes[name].Labels, v1alpha1.LabelKeyNodeCandidateForUpdate)
					s.in.Nodes[name].Labels[v1alpha1.LabelKeyNodeUpdateResult] = v1alpha1.LabelValueNodeUpdateFailed
				}
			}
			p := s.plan()
			require.Equal(t, c.chosen, p.chosen, p.dec.String())
		})
	}
}

func TestInPlaceOnlyNodesWhoseMachinesAreToBeUpdatedAreCandidates(t *testing.T) {
	for name, c := range map[string]struct {
		set   string
		phase v1alpha1.MachinePhase
		is    bool
	}{
		"one of an old set":                  {"old", v1alpha1.MachineRunning, true},
		"one that joins":                     {"old", v1alpha1.MachinePending, true},
		"one that fails is replaced instead": {"old", v1alpha1.MachineFailed, false},
		"one of the new set is new already":  {"new", v1alpha1.MachineRunning, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newUpdScene(updDeployment(2, "0", "1", true), "c2", 1, 1)
			s.machine(c.set, "m", "Running")
			s.is("m", c.phase)
			n := s.plan().written("m")
			require.Equal(t, c.is, n != nil && n.Labels[v1alpha1.LabelKeyNodeCandidateForUpdate] == "true")
		})
	}
}

func TestInPlaceAPassMakesOnlyAsManyCandidatesAsItMayWrite(t *testing.T) {
	s := newUpdScene(updDeployment(3, "0", "1", true), "c2", 3, 0)
	for _, name := range []string{"a", "b", "c"} {
		s.machine("old", name, "Running")
	}
	dec := deployment.Plan(s.in, deployment.Policy{Burst: 2, Discourage: deployment.DiscourageNone}, time.Unix(1000, 0))
	written := 0
	for _, a := range dec.Actions {
		if _, ok := a.(deployment.WriteNode); ok {
			written++
		}
	}
	require.Equal(t, 2, written)
	require.NotContains(t, rollReasons(dec), deployment.ReasonBurst, dec.String())
}

func TestInPlaceSetsThatHaveNothingAreNotKeptFromGrowing(t *testing.T) {
	s := newUpdScene(updDeployment(1, "0", "1", false), "c2", 0, 1)
	s.machine("new", "m", "Running")
	s.set("old").Labels = nil
	for _, a := range s.plan().dec.Actions {
		a, ok := a.(deployment.WriteSet)
		require.False(t, ok && machineset.ScaleUpDisabled(a.Set))
	}
}

func TestInPlaceASetWithoutLabelsIsKeptFromGrowing(t *testing.T) {
	s := newUpdScene(updDeployment(1, "0", "1", false), "c2", 1, 0)
	s.machine("old", "m", "Running")
	s.set("old").Labels = nil
	for _, a := range s.plan().dec.Actions {
		if a, ok := a.(deployment.WriteSet); ok && a.Set.Name == "old" {
			require.Equal(t, "true", a.Set.Labels[v1alpha1.LabelKeyMachineSetScaleUpDisabled])
			return
		}
	}
	t.Fatal("it is not written")
}

func TestInPlaceOnlyOldMachinesWaitForTheirNodesToBeKnown(t *testing.T) {
	for set, held := range map[string]bool{"old": true, "new": false} {
		s := newUpdScene(updDeployment(2, "0", "1", false), "c2", 1, 1)
		s.machine("old", "a", "candidate")
		s.machine("new", "b", "Running")
		delete(s.in.Nodes, map[string]string{"old": "a", "new": "b"}[set])
		p := s.plan()
		require.Equal(t, held, slices.Contains(rollReasons(p.dec), deployment.ReasonNodeUnknown), p.dec.String())
	}
}

func TestTheStageOfAnUpdateFollowsFromWhatIsKnownOfIt(t *testing.T) {
	const running = v1alpha1.MachineRunning
	for name, c := range map[string]struct {
		step  string // of the machine
		node  *corev1.Node
		stage deployment.UpdateStage
	}{
		"an agent is done, and the machine does not say so":  {"", updNode("", v1alpha1.LabelKeyNodeUpdateResult, "successful"), deployment.UpdateStarted},
		"an agent has failed, and the machine is not told":   {"", updNode("", v1alpha1.LabelKeyNodeUpdateResult, "failed"), deployment.UpdateFailed},
		"a Node is selected that was no candidate":           {"", updNode("", v1alpha1.LabelKeyNodeSelectedForUpdate, "true"), deployment.UpdateCandidate},
		"a Node is about to be drained":                      {"", updNode(v1alpha1.SelectedForUpdate), deployment.UpdateStarted},
		"a Node was drained":                                 {"", updNode(v1alpha1.DrainSuccessful), deployment.UpdateStarted},
		"a Node waits for its agent":                         {"", updNode(v1alpha1.ReadyForUpdate), deployment.UpdateStarted},
		"a machine that was updated before, its Node is not": {v1alpha1.ReadyForUpdate, updNode(""), deployment.NotUpdating},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.stage, deployment.StageOf(updMachine(running, c.step), c.node)) })
	}
}
