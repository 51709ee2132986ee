// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/nodeops"
)

const (
	lonely     = "no controller would create it again"
	losesData  = "its emptyDir volumes would be lost"
	losesBoth  = "no controller would create it again, and its emptyDir volumes would be lost"
	noIdentity = "it lacks a namespace, a name or a UID"
)

// podsForced is a ladder whose rungs have all been reached.
func podsForced(do ...drain.Escalation) drain.Policy {
	p := anything
	p.EscalateFrom = now.Add(-time.Hour)
	for _, what := range do {
		p.Ladder = append(p.Ladder, drain.Rung{Action: what})
	}
	return p
}

func podsDaemonSet(uid types.UID) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: uid}}
}

func podsTolerating(t ...corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = t }
}

var toleratesAll = podsTolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})

func podsCreated(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(at) }
}

// podsOwner changes the owner of a pod.
func podsOwner(edit func(*metav1.OwnerReference)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { edit(&p.OwnerReferences[0]) }
}

// podsVerdict is what a test says of a row: the rest is none of its business.
type podsVerdict struct {
	Verdict drain.Verdict
	Reason  machinist.Reason
	Message string
}

func podsVerdictOf(row drain.Row) podsVerdict {
	if row.Verdict == drain.Ignore { // its message is for people
		row.Message = ""
	}
	return podsVerdict{row.Verdict, row.Reason, row.Message}
}

func TestWhichPodsGo(t *testing.T) {
	evicted := podsVerdict{drain.Evict, drain.ReasonEvict, ""}
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		policy drain.Policy
		want   podsVerdict
	}{
		{"a managed pod is evicted", newPod("web"), drain.Policy{}, evicted},
		{"B2 an unmanaged pod blocks", newPod("web", unmanaged), drain.Policy{EvictLocalStorage: true}, podsVerdict{drain.Block, drain.ReasonUnmanaged, lonely}},
		{"B2 an unmanaged pod is evicted if that is allowed", newPod("web", unmanaged), drain.Policy{EvictUnmanaged: true}, evicted},
		{"B2 a pod with local data blocks", newPod("web", emptyDir), drain.Policy{EvictUnmanaged: true}, podsVerdict{drain.Block, drain.ReasonLocalStorage, losesData}},
		{"B2 a pod with local data is evicted if that is allowed", newPod("web", emptyDir), drain.Policy{EvictLocalStorage: true}, evicted},
		{"DD-60 of two obstacles none hides the other", newPod("web", unmanaged, emptyDir), drain.Policy{}, podsVerdict{drain.Block, drain.ReasonUnmanaged, losesBoth}},
		{
			"ignoring budgets alone does not lose local data", newPod("web", emptyDir),
			drain.Policy{Ladder: drain.Ladder{{Action: drain.IgnoreBudgets}}},
			podsVerdict{drain.Block, drain.ReasonLocalStorage, losesData},
		},
		{
			"an unmanaged pod on its way out is waited for", newPod("web", unmanaged, emptyDir, leaving(20*time.Second, 30)), drain.Policy{},
			podsVerdict{drain.Wait, drain.ReasonTerminating, ""},
		},
		{
			"D-9 a pod that was told to stop long ago is still waited for, and says what holds it",
			newPod("web", withFinalizer, leaving(-time.Minute, 30)), drain.Policy{},
			podsVerdict{drain.Wait, drain.ReasonOverdue, "it should have stopped by 2026-03-01T11:59:00Z and has the finalizers example.com/job-tracking"},
		},
		{"B2 a mirror pod is left alone", newPod("web", mirror), podsForced(drain.ForceDeletePods), podsVerdict{drain.Ignore, drain.ReasonStays, ""}},
		{"B2 a pod of the Node itself is left alone", newPod("web", ownedBy("Node")), podsForced(drain.ForceDeletePods), podsVerdict{drain.Ignore, drain.ReasonStays, ""}},
		{"B2 a pod that succeeded is left alone", newPod("web", inPhase(corev1.PodSucceeded), unmanaged), drain.Policy{}, podsVerdict{drain.Ignore, drain.ReasonGone, ""}},
		{
			"B2 a pod that failed is left alone though it waits for a finalizer",
			newPod("web", inPhase(corev1.PodFailed), withFinalizer, leaving(-time.Hour, 0)), drain.Policy{},
			podsVerdict{drain.Ignore, drain.ReasonGone, ""},
		},
		{
			"DD-13 a pod of another Node is none of the drain's business",
			newPod("web", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }), podsForced(drain.ForceDeletePods),
			podsVerdict{drain.Ignore, drain.ReasonGone, ""},
		},
		{
			"a pod without UID cannot be meant", newPod("web", func(p *corev1.Pod) { p.UID = "" }), podsForced(drain.ForceDeletePods),
			podsVerdict{drain.Block, drain.ReasonNotEvaluated, noIdentity},
		},
		{"DD-4 a pod without priority is one of priority 0", newPod("web", func(p *corev1.Pod) { p.Spec.Priority = nil }), drain.Policy{}, evicted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows := drain.Decide(observed(tt.pod), tt.policy, now).Rows
			require.Len(t, rows, 1)
			require.Equal(t, tt.want, podsVerdictOf(rows[0]))
			require.Equal(t, tt.pod.Namespace+"/"+tt.pod.Name+"/"+string(tt.pod.UID), rows[0].Namespace+"/"+rows[0].Name+"/"+string(rows[0].UID))
		})
	}
}

func TestB2PodsOfDaemonSets(t *testing.T) {
	agent := func(edits ...func(*corev1.Pod)) *corev1.Pod {
		return newPod("agent-x", append([]func(*corev1.Pod){ownedBy("DaemonSet")}, edits...)...)
	}
	there, none := drain.All(podsDaemonSet("uid-DaemonSet")), drain.All[*appsv1.DaemonSet](nil)
	tainted := nodeops.Fence{Taint: "example.com/drained"}
	kept := podsVerdict{drain.Ignore, drain.ReasonStays, ""}
	evicted := podsVerdict{drain.Evict, drain.ReasonEvict, ""}
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		sets   drain.List[*appsv1.DaemonSet]
		policy drain.Policy
		want   podsVerdict
	}{
		{"B2 it is left alone", agent(), there, drain.Policy{}, kept},
		{"it is left alone if nobody asked for the DaemonSets", agent(), drain.List[*appsv1.DaemonSet]{}, drain.Policy{}, kept},
		{"it is left alone under force", agent(emptyDir), there, podsForced(drain.ForceDeletePods), kept},
		{"B2 one whose DaemonSet is gone is evicted", agent(), none, drain.Policy{}, evicted},
		{"one whose DaemonSet has a successor of the same name is evicted", agent(), drain.All(podsDaemonSet("uid-new")), drain.Policy{}, evicted},
		{"one whose DaemonSet is in another namespace is evicted", agent(func(p *corev1.Pod) { p.Namespace = "bar" }), there, drain.Policy{}, evicted},
		{"one whose DaemonSet is gone still keeps its local data", agent(emptyDir), none, drain.Policy{}, podsVerdict{drain.Block, drain.ReasonLocalStorage, losesData}},
		{"one whose DaemonSet is gone does not come back though it tolerates everything", agent(toleratesAll), none, drain.Policy{Fence: tainted}, evicted},
		{"DaemonSets of other groups cannot be known to be gone", agent(podsOwner(func(o *metav1.OwnerReference) { o.APIVersion = "apps.kruise.io/v1alpha1" })), none, drain.Policy{}, kept},
		{"a DaemonSet without UID cannot be looked up", agent(podsOwner(func(o *metav1.OwnerReference) { o.UID = "" })), none, drain.Policy{}, kept},
		{"B2 a finished one is left alone for that", agent(inPhase(corev1.PodFailed)), none, drain.Policy{}, podsVerdict{drain.Ignore, drain.ReasonGone, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(tt.pod)
			in.Node.Spec.Taints = []corev1.Taint{{Key: "example.com/drained", Effect: corev1.TaintEffectNoSchedule}}
			in.DaemonSets = tt.sets
			require.Equal(t, tt.want, podsVerdictOf(drain.Decide(in, tt.policy, now).Rows[0]))
		})
	}
}

// What the scheduler's own rules say, of a taint without value and effect NoSchedule.
func TestB2TolerationOfTheFence(t *testing.T) {
	const key = "example.com/drained"
	for _, tt := range []struct {
		name       string
		toleration corev1.Toleration
		want       bool
	}{
		{"everything", corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		{"everything of this effect", corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, true},
		{"everything of another effect", corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
		{"the key", corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}, true},
		{"another key", corev1.Toleration{Key: key + "x", Operator: corev1.TolerationOpExists}, false},
		{"the key and its value", corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual}, true},
		{"the key and its value, by default", corev1.Toleration{Key: key}, true},
		{"the key and another value", corev1.Toleration{Key: key, Value: "x"}, false},
		{"the key and another effect", corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectPreferNoSchedule}, false},
		{"a number, which the taint has not", corev1.Toleration{Key: key, Operator: corev1.TolerationOpGt, Value: "0"}, false},
		{"by an operator that nobody knows", corev1.Toleration{Key: key, Operator: "Like"}, false},
		{"the key for a time, which does not matter to what is scheduled", corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(5))}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := newPod("web", podsTolerating(corev1.Toleration{Key: "example.com/other"}, tt.toleration))
			row := drain.Decide(observed(pod), drain.Policy{Fence: nodeops.Fence{Taint: key}}, now).Rows[0]
			require.Equal(t, tt.want, row.Reason == drain.ReasonStays && row.Verdict == drain.Ignore, "%s", row)
			require.Equal(t, drain.Evict, drain.Decide(observed(pod), drain.Policy{}, now).Rows[0].Verdict, "a cordon alone is not tolerated for long")
		})
	}
}

func TestD6APodThatComesBackIsNotChased(t *testing.T) {
	unschedulable := podsTolerating(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists})
	recurring := podsVerdict{drain.Ignore, drain.ReasonStays, ""}
	evicted := podsVerdict{drain.Evict, drain.ReasonEvict, ""}
	after, before := podsCreated(now.Add(-time.Second)), podsCreated(now.Add(-time.Minute))
	s := drain.State{Started: now.Add(-time.Hour), FencedAt: now.Add(-time.Minute)}
	for _, tt := range []struct {
		name  string
		pod   *corev1.Pod
		state drain.State
		want  podsVerdict
	}{
		{"D-6 born after the fence, which it tolerates: recurring", newPod("web", unschedulable, after), s, recurring},
		{"born when the fence was first seen: it may be older", newPod("web", unschedulable, before), s, evicted},
		{"born after the fence, which it does not tolerate: bound just before", newPod("web", after), s, evicted},
		{"born after a fence that nobody has seen yet", newPod("web", unschedulable, after), drain.State{}, evicted},
		{"nobody creates it again", newPod("web", unmanaged, unschedulable, after), s, podsVerdict{drain.Block, drain.ReasonUnmanaged, lonely}},
		{"one that is on its way out is not waited for either", newPod("web", unschedulable, after, leaving(time.Minute, 60)), s, recurring},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, plan := drain.Step(tt.state, observed(tt.pod), drain.Policy{}, now)
			require.Equal(t, tt.want, podsVerdictOf(plan.Rows[0]))
			require.Equal(t, tt.want.Verdict == drain.Ignore, plan.Outcome == drain.Drained)
		})
	}
	t.Run("nothing recurs before there is a fence", func(t *testing.T) {
		in := observed(newPod("web", unschedulable, after))
		in.Node = openNode()
		require.Equal(t, evicted, podsVerdictOf(drain.Decide(in, drain.Policy{}, now).Rows[0]))
	})
}

func TestB2SkipTerminatingAfter(t *testing.T) {
	policy := drain.Policy{SkipTerminatingAfter: time.Minute}
	for _, tt := range []struct {
		name    string
		pod     *corev1.Pod
		policy  drain.Policy
		want    machinist.Reason
		until   time.Duration
		outcome drain.Outcome
	}{
		{"B2 a pod that should have stopped long ago is not waited for", newPod("a", leaving(-time.Minute, 30)), policy, drain.ReasonAbandoned, 0, drain.Proceeded},
		{"one moment before it is, and then looked at again", newPod("a", leaving(-time.Minute+1, 30)), policy, drain.ReasonOverdue, 1, drain.Draining},
		{"a pod that has yet to stop is waited for", newPod("a", leaving(time.Second, 30)), policy, drain.ReasonTerminating, time.Second, drain.Draining},
		{"without it a pod is waited for until it has gone", newPod("a", leaving(-time.Hour, 30)), drain.Policy{}, drain.ReasonOverdue, time.Minute, drain.Draining},
		{"less than zero is none", newPod("a", leaving(-time.Hour, 30)), drain.Policy{SkipTerminatingAfter: -1}, drain.ReasonOverdue, time.Minute, drain.Draining},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := drain.Decide(observed(tt.pod), tt.policy, now)
			row := plan.Rows[0]
			require.Equal(t, tt.want, row.Reason)
			require.Equal(t, tt.outcome, plan.Outcome, "what was left is not drained")
			if tt.until > 0 {
				require.Equal(t, now.Add(tt.until), row.Until)
			}
		})
	}
	t.Run("what may be taken off the API is, before it is left", func(t *testing.T) {
		p := podsForced(drain.ForceDeletePods)
		p.SkipTerminatingAfter = time.Minute
		require.Equal(t, drain.ForceDelete, drain.Decide(observed(newPod("a", leaving(-time.Hour, 30))), p, now).Rows[0].Verdict)
		held := newPod("a", withFinalizer, leaving(-time.Hour, 0))
		require.Equal(t, drain.ReasonAbandoned, drain.Decide(observed(held), p, now).Rows[0].Reason)
	})
}

func TestCopiesOfAPod(t *testing.T) {
	old := newPod("a", func(p *corev1.Pod) { p.ResourceVersion = "9" })
	current := newPod("a", leaving(time.Minute, 60), func(p *corev1.Pod) { p.ResourceVersion = "10" })
	t.Run("only the newest counts", func(t *testing.T) {
		plan := drain.Decide(observed(old, nil, current, old, nil), drain.Policy{}, now)
		require.Len(t, plan.Rows, 1)
		require.Equal(t, drain.ReasonTerminating, plan.Rows[0].Reason)
	})
	t.Run("an older one does not count for its caution", func(t *testing.T) {
		orphan := newPod("a", unmanaged, func(p *corev1.Pod) { p.ResourceVersion = "9" })
		plan := drain.Decide(observed(orphan, newPod("a"), orphan), drain.Policy{}, now)
		require.Equal(t, drain.Evict, plan.Rows[0].Verdict)
		require.Len(t, plan.Rows, 1)
	})
	t.Run("D-6 a successor of the same name is another pod", func(t *testing.T) {
		successor := newPod("a", func(p *corev1.Pod) { p.UID = "uid-successor" })
		require.Len(t, drain.Decide(observed(current, successor), drain.Policy{}, now).Rows, 2)
	})
}

func TestRowsAreSortedByPod(t *testing.T) {
	other := func(p *corev1.Pod) { p.Namespace = "bar" }
	plan := drain.Decide(observed(newPod("c"), newPod("b", unmanaged), newPod("z", other), newPod("a", mirror)), drain.Policy{}, now)
	var names []string
	for _, r := range plan.Rows {
		names = append(names, r.Namespace+"/"+r.Name)
	}
	require.Equal(t, []string{"bar/z", "shop/a", "shop/b", "shop/c"}, names)
	require.Len(t, plan.Holds(), 3)
	require.Len(t, plan.Rows, 4, "Holds does not change the plan")
}

func TestD3TheZeroPolicyKillsNothing(t *testing.T) {
	pods := []*corev1.Pod{newPod("b", unmanaged), newPod("c", emptyDir), newPod("d", leaving(time.Minute, 60)), newPod("e", mirror)}
	for i := range 50 {
		pods = append(pods, newPod("web-"+strconv.Itoa(i), withPriority(int32(i))))
	}
	evicted := 0
	for _, row := range drain.Decide(observed(pods...), drain.Policy{}, now).Rows {
		require.NotContains(t, []drain.Verdict{drain.Delete, drain.ForceDelete}, row.Verdict)
		require.Nil(t, row.Grace, "pods keep their own grace")
		if row.Verdict == drain.Evict {
			evicted++
		}
	}
	require.Equal(t, 50, evicted)
}

func TestD9AcceptedIsNotGone(t *testing.T) {
	s, plan := drain.Step(drain.State{}, observed(newPod("web")), drain.Policy{}, now)
	in := observed(newPod("web"))
	in.Results = []drain.Result{{Row: plan.Rows[0], At: now}}
	at := now.Add(time.Second)
	s, plan = drain.Step(s, in, drain.Policy{}, at)
	require.Equal(t, drain.Draining, plan.Outcome, "the eviction was accepted, and the cache does not show it yet")
	require.Equal(t, drain.Wait, plan.Rows[0].Verdict, "it is not asked twice")
	s, plan = drain.Step(s, observed(newPod("web", leaving(time.Hour, 3600))), drain.Policy{}, at.Add(time.Minute))
	require.Equal(t, drain.Draining, plan.Outcome, "it is on its way out")
	_, plan = drain.Step(s, observed(), drain.Policy{}, at.Add(time.Hour))
	require.Equal(t, drain.Drained, plan.Outcome)
	require.Equal(t, 1, plan.GoneSoFar)
}

// What is on its way out is asked for nothing, so that there is nothing to add and
// remove again while it goes.
func TestDD70TerminatingPodsAreNotAskedAgain(t *testing.T) {
	s, in := drain.State{}, observed(newPod("web", leaving(30*time.Second, 30)))
	for at := now; at.Before(now.Add(20 * time.Second)); {
		var plan drain.Decision
		s, plan = drain.Step(s, in, anything, at)
		require.Equal(t, drain.Wait, plan.Rows[0].Verdict)
		require.Equal(t, now.Add(30*time.Second), plan.NextCheck, "nobody looks every second")
		at = at.Add(5 * time.Second)
	}
}

func podsFull(n int) drain.Observation {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = newPod("web-"+strconv.Itoa(i), withPriority(int32(i%7)))
	}
	return observed(pods...)
}

func TestDD14PodsAreNotCopied(t *testing.T) {
	in := podsFull(110)
	in.DaemonSets = drain.All(podsDaemonSet("uid-DaemonSet"))
	for name, p := range map[string]drain.Policy{
		"zero":       {},
		"with rules": {ClusterAPILabels: true, DoNotDisrupt: true, PodSelector: "app=web"},
	} {
		per := testing.AllocsPerRun(20, func() { drain.Decide(in, p, now) }) / 110
		require.LessOrEqual(t, per, 3.0, name)
		t.Logf("%s: %.2f allocations per pod", name, per)
	}
}

// podsRandom returns random pods, some of them copies of others.
func podsRandom(r *rand.Rand) []*corev1.Pod {
	edits := []func(*corev1.Pod){
		unmanaged, emptyDir, mirror, ownedBy("DaemonSet"), ownedBy("Node"), inPhase(corev1.PodFailed), withFinalizer, toleratesAll,
		podsCreated(now.Add(-time.Second)), leaving(-time.Hour, 30), leaving(time.Minute, 60), leaving(-time.Second, 0),
		withPriority(2000000000), withPriority(-5), withPriority(7),
		func(p *corev1.Pod) { p.UID = "" },
		func(p *corev1.Pod) { p.Spec.NodeName = "node-2" },
		func(p *corev1.Pod) { p.Namespace = "bar" },
		func(p *corev1.Pod) { p.Labels = map[string]string{"cluster.x-k8s.io/drain": "skip"} },
		func(p *corev1.Pod) { p.Labels = map[string]string{"cluster.x-k8s.io/drain": "wait-completed"} },
		func(p *corev1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"} },
		func(p *corev1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "1h"} },
	}
	var pods []*corev1.Pod
	for i := range r.IntN(9) {
		pod := newPod(string(rune('a'+r.IntN(7))), func(p *corev1.Pod) { p.ResourceVersion = strconv.Itoa(i + 10) })
		for range r.IntN(3) {
			edits[r.IntN(len(edits))](pod)
		}
		pods = append(pods, pod)
	}
	return pods
}

func podsRandomPolicy(r *rand.Rand) drain.Policy {
	p := drain.Policy{
		EvictUnmanaged: r.IntN(2) == 0, EvictLocalStorage: r.IntN(2) == 0, AllAtOnce: r.IntN(2) == 0,
		SkipTerminatingAfter: time.Duration(r.IntN(3)) * time.Minute,
		Fence:                []nodeops.Fence{{}, {Taint: "example.com/drained"}}[r.IntN(2)],
		EscalateFrom:         now.Add(-time.Hour),
	}
	p.Ladder = []drain.Ladder{nil, nil, {{Action: drain.IgnoreBudgets}}, {{Action: drain.ForceDeletePods}}, {{Action: drain.Proceed}}}[r.IntN(5)]
	p.ClusterAPILabels = r.IntN(2) == 0
	p.DoNotDisrupt = p.ClusterAPILabels
	return p
}

func TestLawsOfPods(t *testing.T) {
	reasons := map[machinist.Reason]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		pods, p := podsRandom(r), podsRandomPolicy(r)
		in := observed(pods...)
		in.DaemonSets = drain.List[*appsv1.DaemonSet]{Items: []*appsv1.DaemonSet{nil, podsDaemonSet("uid-DaemonSet")}[r.IntN(2):], Complete: r.IntN(2) == 0}
		s := drain.State{Started: now.Add(-time.Hour), FencedAt: now.Add(-time.Minute)}
		_, plan := drain.Step(s, in, p, now)

		shuffled := in
		shuffled.Pods.Items = slices.Clone(pods)
		r.Shuffle(len(pods), func(i, j int) {
			shuffled.Pods.Items[i], shuffled.Pods.Items[j] = shuffled.Pods.Items[j], shuffled.Pods.Items[i]
		})
		_, again := drain.Step(s, shuffled, p, now)
		require.Empty(t, cmp.Diff(plan, again), "seed %d: the order of pods does not matter", seed)

		for _, row := range plan.Rows {
			reasons[row.Reason]++
			podsCheckRow(t, seed, in, p, plan, row)
		}
	}
	for _, reason := range []machinist.Reason{
		drain.ReasonGone, drain.ReasonStays, machinist.Reason(drain.IgnoreBudgets),
		drain.ReasonAbandoned, drain.ReasonNotEvaluated, drain.ReasonRule, drain.ReasonWaitCompleted, drain.ReasonDoNotDisrupt, drain.ReasonWave,
		drain.ReasonUnmanaged, drain.ReasonLocalStorage, drain.ReasonEvict, drain.ReasonTerminating, drain.ReasonOverdue,
	} {
		require.Positive(t, reasons[reason], reason)
	}
}

func podsCheckRow(t *testing.T, seed uint64, in drain.Observation, p drain.Policy, plan drain.Decision, row drain.Row) {
	t.Helper()
	require.False(t, !row.Until.IsZero() && !row.Until.After(now), "seed %d: %s looks back", seed, row)
	asks := row.Verdict == drain.Evict || row.Verdict == drain.Delete || row.Verdict == drain.ForceDelete
	if !asks {
		return
	}
	i := slices.IndexFunc(in.Pods.Items, func(pod *corev1.Pod) bool {
		return pod.Namespace == row.Namespace && pod.Name == row.Name && pod.UID == row.UID
	})
	for j, pod := range in.Pods.Items { // the newest copy counts
		if pod.Namespace == row.Namespace && pod.Name == row.Name && pod.UID == row.UID {
			i = j
		}
	}
	pod := in.Pods.Items[i]
	_, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	require.False(t, isMirror, "seed %d: a mirror pod is asked: %s", seed, row)
	require.NotEqual(t, corev1.PodFailed, pod.Status.Phase, "seed %d: a finished pod is asked: %s", seed, row)
	require.Equal(t, "node-1", pod.Spec.NodeName)
	require.NotEmpty(t, pod.UID)
	if p.ClusterAPILabels {
		require.NotEqual(t, "skip", pod.Labels["cluster.x-k8s.io/drain"], "seed %d: a pod is asked that is to be skipped: %s", seed, row)
	}
	if row.Verdict != drain.Evict {
		return
	}
	for _, other := range plan.Rows {
		require.False(t, other.Verdict != drain.Ignore && other.Wave < row.Wave, "seed %d: %s goes before %s", seed, row, other)
	}
}
