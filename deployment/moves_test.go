// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"cmp"
	"fmt"
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
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// movesRoom is how many pods a Node has room for; movesUsed are how many there are for each
// Node in the beginning.
const movesRoom = 8

var movesUsed = []int{2, 4, 6, 8}

// A movesScheduler has pods on the Nodes of a rollout, each as large as another. As in the
// scheduler of Kubernetes, it is worth more not to have a PreferNoSchedule taint than to be
// a good fit.
type movesScheduler struct {
	*rollout
	pack bool // pods go where there is least room, and not where there is most
	rng  *rand.Rand
	pods []movesPod
}

type movesPod struct {
	node  string // empty: pending
	moves int
}

// A movesNode is one to which pods may go.
type movesNode struct {
	name   string
	taint  int  // pods should go elsewhere
	load   int  // pods
	closed bool // no pod may come
}

// nodes returns the Nodes of machines that stay, by name. The others are cordoned before
// their first pod is evicted, so that no pod goes from one of them to another.
func (s *movesScheduler) nodes() map[string]*movesNode {
	nodes := map[string]*movesNode{}
	for _, m := range s.Machines() {
		n := s.Node(m)
		if n == nil || members.Leaving(m) {
			continue
		}
		nodes[n.Name] = &movesNode{n.Name, len(n.Spec.Taints), 0, taintOf(n) == corev1.TaintEffectNoSchedule}
	}
	return nodes
}

// schedule takes pods off the Nodes whose machines leave, and puts pending pods on Nodes
// with room, in any order.
func (s *movesScheduler) schedule() {
	nodes := s.nodes()
	for i, p := range s.pods {
		if n := nodes[p.node]; n != nil {
			n.load++
		} else {
			s.pods[i].node = ""
		}
	}
	for _, i := range s.rng.Perm(len(s.pods)) {
		if s.pods[i].node != "" {
			continue
		}
		var fitting []*movesNode
		for _, n := range nodes {
			if n.load < movesRoom && !n.closed {
				fitting = append(fitting, n)
			}
		}
		if len(fitting) == 0 {
			return // all Nodes are full
		}
		best := slices.MinFunc(fitting, func(a, b *movesNode) int {
			more := cmp.Compare(a.load, b.load)
			if s.pack {
				more = -more
			}
			return cmp.Or(cmp.Compare(a.taint, b.taint), more, cmp.Compare(a.name, b.name))
		})
		best.load++
		s.pods[i] = movesPod{best.name, s.pods[i].moves + 1}
	}
}

// fill begins with pods on any Nodes: some have been there for long, when there were other
// Nodes, so the load is not even.
func (s *movesScheduler) fill(pods int) {
	var places []movesPod
	for _, n := range s.Nodes() {
		places = append(places, slices.Repeat([]movesPod{{node: n.Name}}, movesRoom)...)
	}
	s.rng.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	s.pods = places[:pods]
}

// movesJoin has machines join after one to six minutes, each after its own time.
func movesJoin(m *v1alpha1.Machine) (time.Duration, bool) {
	h := fnv.New32a()
	h.Write([]byte(m.Name))
	return time.Minute + time.Duration(h.Sum32()%300)*time.Second, true
}

// mostMoves plays a rollout once, for several schedulers that do not know of each other:
// what becomes of the machines does not depend on pods. It returns how often a pod moved
// at most.
func mostMoves(t *testing.T, d *v1alpha1.MachineDeployment, p deployment.Policy, pack bool) int {
	t.Helper()
	r := newRollout(t, d, deploymenttest.Model{Policy: p, Join: movesJoin})
	var all []*movesScheduler
	for seed, used := range movesUsed {
		s := &movesScheduler{rollout: r, pack: pack, rng: rand.New(rand.NewPCG(uint64(d.Spec.Replicas), uint64(seed)))}
		s.fill(int(d.Spec.Replicas) * used)
		all = append(all, s)
	}
	r.class("c2")
	for _, ok := r.Step(); ok; _, ok = r.Step() {
		for _, s := range all {
			s.schedule()
		}
	}
	r.complete()
	most := 0
	for _, s := range all {
		for _, pod := range s.pods {
			require.NotEmpty(t, pod.node, "a pod is pending")
			require.Positive(t, pod.moves, "a pod has not left its old Node")
			most = max(most, pod.moves)
		}
	}
	return most
}

// TestMoves_PodsOfARollout asserts that a pod moves at most twice in a rollout whose old Nodes are
// discouraged, the default. It moves twice if machines may be unavailable: the first old machines
// are deleted before there is a new Node, and their pods move to old Nodes. It does not move three
// times: later machines are replaced by available ones, whose Nodes are preferred and have as much
// room.
func TestMoves_PodsOfARollout(t *testing.T) {
	surge := [][2]string{{"1", "0"}, {"3", "0"}, {"100%", "0"}}
	bounds := append(slices.Clip(surge), [][2]string{{"0", "1"}, {"1", "1"}, {"0", "3"}, {"2", "3"}, {"25%", "50%"}}...)
	for name, c := range map[string]struct {
		discourage deployment.Discourage
		bounds     [][2]string
		most       int
	}{
		"old Nodes are discouraged":                {"", bounds, 2},
		"no machine may be unavailable":            {"", surge, 1},
		"pods may not go to old Nodes":             {deployment.DiscourageNoSchedule, bounds, 1},
		"pods bounce if Nodes are not discouraged": {deployment.DiscourageNone, bounds, -1},
	} {
		for _, pack := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", packed: ", pack), func(t *testing.T) {
				most := 0
				for _, replicas := range []int32{1, 2, 3, 5, 8} {
					for _, b := range c.bounds {
						d := rollDeployment(replicas, kindRolling, intstr.Parse(b[0]), intstr.Parse(b[1]))
						most = max(most, mostMoves(t, d, deployment.Policy{Discourage: c.discourage}, pack))
					}
				}
				require.True(t, most == c.most || c.most < 0 && most > 2, "a pod moves %d times", most)
			})
		}
	}
}
