// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// A movesScheduler has pods on the Nodes of a world, each as large as another. As
// in the scheduler of Kubernetes, it is worth more not to have a PreferNoSchedule
// taint than to be a good fit.
type movesScheduler struct {
	w    *deploymenttest.World
	room int                // of a Node, in pods
	fit  func(load int) int // of Nodes with the same taints, the one with the least of it is taken
	rng  *rand.Rand
	pods []movesPod
}

type movesPod struct {
	node  string // empty: pending
	moves int
}

// movesFits are the two ways to fit pods on Nodes: where there is most room, as by
// default, or where there is least, to need few Nodes.
var movesFits = map[string]func(load int) int{
	"spread": func(load int) int { return load },
	"pack":   func(load int) int { return -load },
}

// welcoming returns the pods of each Node to which pods may go. Nodes of machines
// that are leaving are cordoned.
func (s *movesScheduler) welcoming() (loads map[string]int, shy map[string]int) {
	loads, shy = map[string]int{}, map[string]int{}
	for _, m := range s.w.Machines() {
		n := s.w.Node(m)
		if n == nil || machineset.Leaving(m) || n.Spec.Unschedulable {
			continue
		}
		loads[n.Name] = 0
		for _, t := range n.Spec.Taints {
			if t.Effect == corev1.TaintEffectPreferNoSchedule {
				shy[n.Name]++
			} else {
				delete(loads, n.Name)
			}
		}
	}
	for _, p := range s.pods {
		if _, ok := loads[p.node]; ok {
			loads[p.node]++
		}
	}
	return loads, shy
}

// evict takes pods off Nodes whose machines leave. Such Nodes are cordoned before
// the first pod is evicted: so of machines that leave together, none takes the pods
// of another.
func (s *movesScheduler) evict() {
	stay := map[string]bool{}
	for _, m := range s.w.Machines() {
		if n := s.w.Node(m); n != nil && !machineset.Leaving(m) {
			stay[n.Name] = true
		}
	}
	for i := range s.pods {
		if !stay[s.pods[i].node] {
			s.pods[i].node = ""
		}
	}
}

// place puts pending pods on Nodes with room, in any order.
func (s *movesScheduler) place() {
	loads, shy := s.welcoming()
	for _, i := range s.rng.Perm(len(s.pods)) {
		if s.pods[i].node != "" {
			continue
		}
		best := s.best(loads, shy)
		if best == "" {
			return // all Nodes are full
		}
		loads[best]++
		s.pods[i].node = best
		s.pods[i].moves++
	}
}

func (s *movesScheduler) best(loads, shy map[string]int) string {
	var fitting []string
	for n, load := range loads {
		if load < s.room {
			fitting = append(fitting, n)
		}
	}
	if len(fitting) == 0 {
		return ""
	}
	return slices.MinFunc(fitting, func(a, b string) int {
		return cmp.Or(cmp.Compare(shy[a], shy[b]), cmp.Compare(s.fit(loads[a]), s.fit(loads[b])), cmp.Compare(a, b))
	})
}

// fill begins with pods on any Nodes: some have been there for long, when there
// were other Nodes, so the load is not even.
func (s *movesScheduler) fill(pods int) {
	var places []string
	for _, n := range s.w.Nodes() {
		places = append(places, slices.Repeat([]string{n.Name}, s.room)...)
	}
	for _, i := range s.rng.Perm(len(places))[:pods] {
		s.pods = append(s.pods, movesPod{node: places[i]})
	}
}

// A movesCase is one roll-out.
type movesCase struct {
	replicas           int32
	surge, unavailable string
}

// movesRoom is how many pods a Node has room for; movesUsed are how many there are
// for each Node in the beginning.
const movesRoom = 8

var movesUsed = []int{2, 4, 6, 8}

func movesGrid() []movesCase {
	var out []movesCase
	for _, replicas := range []int32{1, 2, 3, 5, 8} {
		for _, bounds := range [][2]string{{"1", "0"}, {"0", "1"}, {"1", "1"}, {"3", "0"}, {"0", "3"}, {"2", "3"}, {"25%", "50%"}, {"100%", "0"}} {
			out = append(out, movesCase{replicas, bounds[0], bounds[1]})
		}
	}
	return out
}

// movesJoin has machines join after one to six minutes, each after its own time.
func movesJoin(m *v1alpha1.Machine) (time.Duration, bool) {
	h := fnv.New32a()
	h.Write([]byte(m.Name))
	return time.Minute + time.Duration(h.Sum32()%300)*time.Second, true
}

// roll plays the roll-out once, for several schedulers that do not know of each
// other: what becomes of the machines does not depend on pods.
func (c movesCase) roll(t *testing.T, p deployment.Policy, fit func(int) int) []*movesScheduler {
	t.Helper()
	d := rollDeployment(c.replicas, kindRolling, intstr.Parse(c.surge), intstr.Parse(c.unavailable))
	w, err := deploymenttest.New(d, deploymenttest.Model{Policy: p, Join: movesJoin})
	require.NoError(t, err)
	_, rest := w.Run(time.Hour)
	require.True(t, rest)
	var all []*movesScheduler
	for seed, used := range movesUsed {
		s := &movesScheduler{w: w, room: movesRoom, fit: fit, rng: rand.New(rand.NewPCG(uint64(c.replicas), uint64(seed)))}
		s.fill(int(c.replicas) * used)
		all = append(all, s)
	}
	require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "c2" }))
	for _, ok := w.Step(); ok; _, ok = w.Step() {
		for _, s := range all {
			s.evict()
			s.place()
		}
	}
	require.Equal(t, deployment.ReasonComplete, w.Decision().Reason)
	return all
}

// movesOf returns how many pods of all roll-outs moved how often.
func movesOf(t *testing.T, p deployment.Policy, fit func(int) int, grid []movesCase) []int {
	t.Helper()
	var pods []int
	for _, c := range grid {
		for _, s := range c.roll(t, p, fit) {
			for i, pod := range s.pods {
				require.NotEmpty(t, pod.node, "pod %d of %d in %+v is pending", i, len(s.pods), c)
				require.Positive(t, pod.moves, "pod %d of %d in %+v has not left its old Node", i, len(s.pods), c)
				pods = append(pods, make([]int, max(0, pod.moves+1-len(pods)))...)
				pods[pod.moves]++
			}
		}
	}
	t.Logf("pods by their moves: %v", pods)
	return pods
}

// A pod moves at most twice in a roll-out whose old Nodes are discouraged, as they
// are by default. It may be twice and not once: if machines may be unavailable, the
// first old ones go before there is a new Node, and their pods go to old Nodes, if
// to any. It is not three times: machines that go later go for new ones that are
// available; their Nodes are preferred, and have as much room.
func TestMoves_PodsOfARollout(t *testing.T) {
	surge := slices.DeleteFunc(movesGrid(), func(c movesCase) bool { return c.unavailable != "0" })
	for name, c := range map[string]struct {
		discourage deployment.Discourage
		grid       []movesCase
		most       int
	}{
		"old Nodes are discouraged":                {"", movesGrid(), 2},
		"no machine may be unavailable":            {"", surge, 1},
		"pods may not go to old Nodes":             {deployment.DiscourageNoSchedule, movesGrid(), 1},
		"pods bounce if Nodes are not discouraged": {deployment.DiscourageNone, movesGrid(), -1},
	} {
		for how, fit := range movesFits {
			t.Run(name+"/"+how, func(t *testing.T) {
				moved := len(movesOf(t, deployment.Policy{Discourage: c.discourage}, fit, c.grid)) - 1
				require.True(t, moved == c.most || c.most < 0 && moved > 2, "a pod moves %d times", moved)
			})
		}
	}
}
