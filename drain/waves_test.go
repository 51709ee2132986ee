// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/drain"
)

// waveOfName puts pods into the wave that the end of their names says.
func waveOfName(pod *corev1.Pod) int32 { return int32(pod.Name[len(pod.Name)-1] - '0') }

// wavesAsked returns the names of the pods that are asked to go.
func wavesAsked(plan drain.Decision) string {
	var names []string
	for _, row := range plan.Rows {
		if row.Verdict == drain.Evict || row.Verdict == drain.Delete || row.Verdict == drain.ForceDelete {
			names = append(names, row.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestB2Waves(t *testing.T) {
	critical, node := withPriority(2000000000), withPriority(2000001000)
	byName := drain.Policy{Waves: waveOfName}
	skipped := func(p *corev1.Pod) { p.Labels = map[string]string{"cluster.x-k8s.io/drain": "skip"} }
	for _, tt := range []struct {
		name   string
		pods   []*corev1.Pod
		policy drain.Policy
		want   string
	}{
		{"B2 critical pods go last", []*corev1.Pod{newPod("a", critical), newPod("b"), newPod("c", node)}, drain.Policy{}, "b"},
		{"critical pods go when all others have gone", []*corev1.Pod{newPod("a", critical), newPod("c", node)}, drain.Policy{}, "a c"},
		{"the greatest priority of a user is not critical", []*corev1.Pod{newPod("a", withPriority(1000000000)), newPod("b")}, drain.Policy{}, "a b"},
		{"DD-4 no priority is no obstacle", []*corev1.Pod{newPod("a", critical), newPod("b", func(p *corev1.Pod) { p.Spec.Priority = nil })}, drain.Policy{}, "b"},
		{"all at once", []*corev1.Pod{newPod("a", critical), newPod("b")}, drain.Policy{Waves: drain.AllAtOnce}, "a b"},
		{"B2 ordered groups: the earliest of three", []*corev1.Pod{newPod("a-2"), newPod("b-1"), newPod("c-1"), newPod("d-5")}, byName, "b-1 c-1"},
		{"what is on its way out holds the next wave", []*corev1.Pod{newPod("a-0", leaving(time.Minute, 60)), newPod("b-1")}, byName, ""},
		{"DD-72 what blocks holds the next wave", []*corev1.Pod{newPod("a-0", unmanaged), newPod("b-1")}, byName, ""},
		{"what is left alone holds nothing", []*corev1.Pod{newPod("a-0", mirror), newPod("b-0", inPhase(corev1.PodFailed)), newPod("c-0", skipped), newPod("d-1")}, drain.Policy{Waves: waveOfName, Rules: []drain.Rule{drain.ClusterAPILabels()}}, "d-1"},
		{"waves below zero come first", []*corev1.Pod{newPod("a"), newPod("b", critical)}, drain.Policy{Waves: func(p *corev1.Pod) int32 { return -drain.CriticalLast(p) }}, "b"},
		{"the extremes are waves like others", []*corev1.Pod{newPod("a"), newPod("b", critical)}, drain.Policy{Waves: func(p *corev1.Pod) int32 { return math.MaxInt32 - drain.CriticalLast(p)*math.MaxInt32 }}, "b"},
		{"whoever ignores budgets does not wait for waves", []*corev1.Pod{newPod("a-0"), newPod("b-1")}, drain.Policy{Waves: waveOfName, Ladder: drain.Ladder{{Action: drain.IgnoreBudgets}}}, "a-0 b-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, wavesAsked(drain.Decide(observed(tt.pods...), tt.policy, now)))
		})
	}
}

func TestAHeldPodSaysWhatItWaitsFor(t *testing.T) {
	p := drain.Policy{Waves: waveOfName, WaveTimeout: time.Hour, MaxGrace: time.Second, Rules: []drain.Rule{drain.DoNotDisrupt()}}
	noted := newPod("d-2", func(p *corev1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "maybe"} })
	s, plan := drain.Step(drain.State{}, observed(newPod("a-1"), newPod("b-1", leaving(time.Hour, 3600)), newPod("c-7"), noted), p, now)
	held := plan.Rows[2]
	require.Equal(t, podsVerdict{drain.Wait, drain.ReasonWave, "wave 1 has 2 pods left"}, podsVerdictOf(held))
	require.Equal(t, int32(7), held.Wave)
	require.Nil(t, held.Grace)
	require.Equal(t, now.Add(time.Hour), held.Until)
	require.Contains(t, plan.Rows[3].Message, "wave 1 has 2 pods left; annotation karpenter.sh/do-not-disrupt=\"maybe\" is neither")

	_, plan = drain.Step(s, observed(newPod("a-1"), newPod("c-7")), p, now.Add(time.Minute))
	require.Equal(t, "wave 1 has 1 pod left", plan.Rows[1].Message)
	require.Equal(t, now.Add(time.Hour), plan.Rows[1].Until, "the time of a wave does not begin anew")

	p.WaveTimeout = 0
	_, plan = drain.Step(s, observed(newPod("a-1", unmanaged), newPod("c-7")), p, now)
	require.Zero(t, plan.Rows[1].Until, "only a change helps")
	require.False(t, plan.NextCheck.IsZero())
}

func TestD11AStuckWaveHoldsTheNextUntilItsDeadline(t *testing.T) {
	const limit = 10 * time.Minute
	p := drain.Policy{Waves: waveOfName, WaveTimeout: limit}
	stuck, second, third := newPod("a-0", leaving(time.Hour, 7200)), newPod("b-1"), newPod("c-2")
	step := func(s drain.State, at time.Time, pods ...*corev1.Pod) (drain.State, drain.Decision) {
		text, err := json.Marshal(s)
		require.NoError(t, err)
		var stored drain.State
		require.NoError(t, json.Unmarshal(text, &stored))
		return drain.Step(stored, observed(pods...), p, at)
	}
	s, plan := step(drain.State{}, now, stuck, second, third)
	require.Empty(t, wavesAsked(plan))
	require.Equal(t, now.Add(limit), plan.NextCheck, "somebody looks when the time is over")

	s, plan = step(s, now.Add(limit-1), stuck, second, third)
	require.Empty(t, wavesAsked(plan), "not before the deadline")

	late := now.Add(limit + time.Minute)
	s, plan = step(s, late, stuck, second, third)
	require.Equal(t, "b-1", wavesAsked(plan), "and not never")
	require.Equal(t, "wave 1 has 1 pod left", plan.Rows[2].Message)
	require.Equal(t, late.Add(limit), plan.Rows[2].Until, "the next wave has all of its own time")

	s, plan = step(s, late.Add(time.Minute), stuck, third)
	require.Equal(t, "c-2", wavesAsked(plan), "the third begins when the second is gone, though the first is stuck")

	alone, plan := step(s, late.Add(time.Minute), stuck)
	require.Empty(t, wavesAsked(plan))
	_, plan = step(alone, late.Add(time.Hour), newPod("d-0"), stuck, newPod("e-3"))
	require.Equal(t, "d-0 e-3", wavesAsked(plan), "what is stuck does not hold those that come late")

	_, plan = step(s, late.Add(time.Minute), stuck, newPod("e-3"), newPod("d-0"), newPod("d-1"))
	require.Equal(t, "d-0 d-1 e-3", wavesAsked(plan), "a wave that had its time holds nobody any more")

	none, plan := step(s, late.Add(time.Minute))
	require.Equal(t, drain.Drained, plan.Outcome)
	_, plan = step(none, late.Add(2*time.Minute), newPod("d-0"), newPod("d-1"))
	require.Equal(t, "d-0", wavesAsked(plan), "once all have gone the waves begin anew")

	s, plan = step(s, late.Add(2*time.Minute), third)
	require.Equal(t, "c-2", wavesAsked(plan))
	_, plan = step(s, late.Add(3*time.Minute), newPod("d-0"), third)
	require.Equal(t, "d-0", wavesAsked(plan), "once the stuck ones have gone, an earlier wave holds again")
}

func TestWavesWithoutMemoryOnlyTakeLonger(t *testing.T) {
	p := drain.Policy{Waves: waveOfName, WaveTimeout: time.Minute}
	in := observed(newPod("a-0", leaving(time.Hour, 7200)), newPod("b-1"))
	for i := range 10 {
		require.Empty(t, wavesAsked(drain.Decide(in, p, now.Add(time.Duration(i)*time.Hour))), "nothing is known of any time that went by")
	}
	s, _ := drain.Step(drain.State{}, in, p, now.Add(24*time.Hour))
	s, plan := drain.Step(s, in, p, now)
	require.Equal(t, now.Add(time.Minute), plan.Rows[1].Until, "a time that the clock left does not count")
	_, plan = drain.Step(s, in, p, now.Add(time.Minute))
	require.Equal(t, "b-1", wavesAsked(plan))
}

// A wave of which nobody could be asked did not have its time.
func TestTheTimeOfAWaveDoesNotPassWhileAGateIsClosed(t *testing.T) {
	p := drain.Policy{Waves: waveOfName, WaveTimeout: time.Minute, Reassert: true}
	in := observed(newPod("a-0"), newPod("b-1"))
	in.Hooks = []drain.Hook{{Name: "backup", Owner: "db"}}
	s := drain.State{}
	var plan drain.Decision
	for i := range 5 {
		s, plan = drain.Step(s, in, p, now.Add(time.Duration(i)*time.Hour))
		require.Empty(t, wavesAsked(plan))
	}
	in.Hooks, in.Node = nil, openNode()
	for i := range 5 {
		s, plan = drain.Step(s, in, p, now.Add(time.Duration(5+i)*time.Hour))
		require.Equal(t, "a-0", wavesAsked(plan), "before the fence stands")
	}
	in.Node = newNode()
	_, plan = drain.Step(s, in, p, now.Add(9*time.Hour+time.Minute-1))
	require.Equal(t, "a-0", wavesAsked(plan))
	_, plan = drain.Step(s, in, p, now.Add(9*time.Hour+time.Minute))
	require.Equal(t, "a-0 b-1", wavesAsked(plan))
}

func TestB2DaemonSetsGoInTheLastWave(t *testing.T) {
	p := drain.Policy{EvictDaemonSets: true, Waves: func(*corev1.Pod) int32 { return math.MaxInt32 - 1 }}
	in := observed(newPod("a", ownedBy("DaemonSet")), newPod("b"), newPod("c", ownedBy("DaemonSet"), withPriority(5)))
	in.DaemonSets = drain.All(podsDaemonSet("uid-DaemonSet"))
	require.Equal(t, "b", wavesAsked(drain.Decide(in, p, now)))
	in.Pods.Items = in.Pods.Items[:1]
	require.Equal(t, "a", wavesAsked(drain.Decide(in, p, now)))
	in.DaemonSets = drain.All[*appsv1.DaemonSet]()
	require.Equal(t, drain.LastWave, drain.Decide(in, p, now).Rows[0].Wave, "an orphan as well")
}

func TestNothingComesAfterTheLastWave(t *testing.T) {
	p := drain.Policy{WaveTimeout: time.Minute, Waves: func(pod *corev1.Pod) int32 { return drain.CriticalLast(pod) * drain.LastWave }}
	in := observed(newPod("a", leaving(time.Hour, 7200)), newPod("b", withPriority(2000000000)))
	var s drain.State
	for i, want := range []string{"", "b", "b", "b"} {
		var plan drain.Decision
		s, plan = drain.Step(s, in, p, now.Add(time.Duration(i)*time.Minute))
		require.Equal(t, want, wavesAsked(plan), "minute %d", i)
	}
}

func TestB3LowerPrioritiesAreAskedFirst(t *testing.T) {
	other := func(p *corev1.Pod) { p.Namespace = "bar" }
	plan := drain.Decide(observed(
		newPod("a", withPriority(2000000000)), newPod("b", withPriority(100)), newPod("c"), newPod("d", withPriority(-1)),
		newPod("e", other), newPod("f", withPriority(100)),
	), drain.Policy{}, now)
	require.True(t, slices.IsSortedFunc(plan.Rows, func(a, b drain.Row) int {
		return strings.Compare(a.Namespace+a.Name, b.Namespace+b.Name)
	}), "rows are found by name")
	slices.SortFunc(plan.Rows, drain.RequestOrder)
	var names []string
	for _, row := range plan.Rows {
		names = append(names, row.Name)
	}
	require.Equal(t, []string{"d", "e", "c", "b", "f", "a"}, names)
	require.Zero(t, drain.RequestOrder(plan.Rows[0], plan.Rows[0]))
	require.Negative(t, drain.RequestOrder(drain.Row{UID: "a"}, drain.Row{UID: "b"}), "the UID is what tells pods apart")
}

// Pods of random waves go, or are stuck for ever.
func TestLawsOfWaves(t *testing.T) {
	overdue := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := drain.Policy{Waves: waveOfName, WaveTimeout: time.Duration(r.IntN(3)) * 10 * time.Minute}
		pods := map[string]*corev1.Pod{}
		stuck := map[string]bool{}
		for i := range 1 + r.IntN(8) {
			name := fmt.Sprintf("%c-%d", 'a'+i, r.IntN(4))
			pods[name], stuck[name] = newPod(name), r.IntN(5) == 0
		}
		asked := map[string]bool{}
		first := map[int32]time.Time{} // when a pod of the wave was first asked
		var s drain.State
		at := now
		for range 60 {
			var plan drain.Decision
			s, plan = drain.Step(s, observed(slices.Collect(maps.Values(pods))...), p, at)
			for _, row := range plan.Rows {
				if row.Verdict != drain.Evict {
					continue
				}
				asked[row.Name] = true
				for _, earlier := range plan.Rows {
					if earlier.Wave < row.Wave {
						overdue++
						require.Positive(t, p.WaveTimeout, "seed %d: %s goes before %s", seed, row, earlier)
						require.LessOrEqual(t, p.WaveTimeout, at.Sub(first[earlier.Wave]), "seed %d: %s goes before %s", seed, row, earlier)
					}
				}
				if _, known := first[row.Wave]; !known {
					first[row.Wave] = at
				}
			}
			for name := range asked {
				if !stuck[name] && r.IntN(3) == 0 {
					delete(pods, name)
				}
			}
			at = at.Add(time.Duration(1+r.IntN(600)) * time.Second)
		}
		for name := range pods {
			require.True(t, stuck[name] || p.WaveTimeout == 0, "seed %d: %s was never asked, or has not gone", seed, name)
		}
	}
	require.Greater(t, overdue, 100, "waves had their time")
}

func TestNoPodHasAWave(t *testing.T) {
	require.Zero(t, drain.CriticalLast(nil))
	require.Zero(t, drain.AllAtOnce(nil))
}
