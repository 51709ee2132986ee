// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/drain"
)

func TestDecideAboutOnePod(t *testing.T) {
	pod := newPod
	budget := drain.Answer{Asked: drain.Evict, Reason: drain.ReasonBudget, Message: "web needs 2", Until: now.Add(4 * time.Second)}
	later := now.Add
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		policy drain.Policy
		answer drain.Answer
		want   drain.Row
	}{
		{
			"a managed pod is evicted, and looked at again after the pause", pod("web"), drain.Policy{}, drain.Answer{},
			drain.Row{Verdict: drain.Evict, Reason: drain.ReasonEvict, Until: later(5 * time.Second)},
		},
		{
			"the pause is the policy's", pod("web"), drain.Policy{RetryEvery: time.Minute}, drain.Answer{},
			drain.Row{Verdict: drain.Evict, Reason: drain.ReasonEvict, Until: later(time.Minute)},
		},
		{
			"an unmanaged pod blocks", pod("web", unmanaged), drain.Policy{EvictLocalStorage: true}, drain.Answer{},
			drain.Row{Verdict: drain.Block, Reason: drain.ReasonUnmanaged, Message: "no controller would create it again"},
		},
		{
			"an unmanaged pod is evicted if that is allowed", pod("web", unmanaged), drain.Policy{EvictUnmanaged: true}, drain.Answer{},
			drain.Row{Verdict: drain.Evict, Reason: drain.ReasonEvict, Until: later(5 * time.Second)},
		},
		{
			"a pod with local data blocks", pod("web", emptyDir), drain.Policy{EvictUnmanaged: true}, drain.Answer{},
			drain.Row{Verdict: drain.Block, Reason: drain.ReasonLocalStorage, Message: "its emptyDir volumes would be lost"},
		},
		{
			"a pod with local data is evicted if that is allowed", pod("web", emptyDir), drain.Policy{EvictLocalStorage: true}, drain.Answer{},
			drain.Row{Verdict: drain.Evict, Reason: drain.ReasonEvict, Until: later(5 * time.Second)},
		},
		{
			"force alone does not lose local data", pod("web", emptyDir), drain.Policy{ForceAt: now}, drain.Answer{},
			drain.Row{Verdict: drain.Block, Reason: drain.ReasonLocalStorage, Message: "its emptyDir volumes would be lost"},
		},
		{
			"an unreachable Node alone does not lose an unmanaged pod", pod("web", unmanaged), drain.Policy{NodeUnreachable: true}, drain.Answer{},
			drain.Row{Verdict: drain.Block, Reason: drain.ReasonUnmanaged, Message: "no controller would create it again"},
		},
		{
			"an unmanaged pod on its way out is waited for", pod("web", unmanaged, leaving(20*time.Second, 30)), drain.Policy{}, drain.Answer{},
			drain.Row{Verdict: drain.Wait, Reason: drain.ReasonTerminating, Until: later(20 * time.Second)},
		},
		{
			"a pod that should have stopped is named with what holds it", pod("web", withFinalizer, leaving(-time.Minute, 30)), drain.Policy{}, drain.Answer{},
			drain.Row{
				Verdict: drain.Wait, Reason: drain.ReasonOverdue, Until: later(5 * time.Second),
				Message: "it should have stopped by 2026-03-01T11:59:00Z and has the finalizers example.com/job-tracking",
			},
		},
		{
			"a mirror pod is left alone", pod("web", mirror), forced(), drain.Answer{},
			drain.Row{Verdict: drain.Ignore, Reason: drain.ReasonMirror},
		},
		{
			"a pod of the Node itself is left alone", pod("web", ownedBy("Node")), unreachable(), drain.Answer{},
			drain.Row{Verdict: drain.Ignore, Reason: drain.ReasonMirror},
		},
		{
			"a pod of a DaemonSet is left alone", pod("web", ownedBy("DaemonSet")), drain.Policy{}, drain.Answer{},
			drain.Row{Verdict: drain.Ignore, Reason: drain.ReasonDaemonSet},
		},
		{
			"a pod of a DaemonSet is left alone under force", pod("web", ownedBy("DaemonSet"), emptyDir), forced(), drain.Answer{},
			drain.Row{Verdict: drain.Ignore, Reason: drain.ReasonDaemonSet},
		},
		{
			"a pod that succeeded is left alone", pod("web", inPhase(corev1.PodSucceeded), unmanaged), drain.Policy{}, drain.Answer{},
			drain.Row{Verdict: drain.Ignore, Reason: drain.ReasonFinished},
		},
		{
			"a pod that failed is left alone though it waits for a finalizer",
			pod("web", inPhase(corev1.PodFailed), withFinalizer, leaving(-time.Hour, 0)), drain.Policy{}, drain.Answer{},
			drain.Row{Verdict: drain.Ignore, Reason: drain.ReasonFinished},
		},
		{
			"a pod of another Node is left alone", pod("web", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }), forced(), drain.Answer{},
			drain.Row{Verdict: drain.Ignore, Reason: drain.ReasonElsewhere},
		},
		{
			"a pod without UID cannot be meant", pod("web", func(p *corev1.Pod) { p.UID = "" }), forced(), drain.Answer{},
			drain.Row{Verdict: drain.Block, Reason: drain.ReasonNoIdentity, Message: "it lacks a namespace, a name or a UID"},
		},
		{
			"a refusal is waited out, and says what refused", pod("web"), drain.Policy{}, budget,
			drain.Row{Verdict: drain.Wait, Reason: drain.ReasonBudget, Message: "web needs 2", Until: later(4 * time.Second)},
		},
		{
			"a refusal is over when its time is", pod("web"), drain.Policy{},
			drain.Answer{Asked: drain.Evict, Reason: drain.ReasonBudget, Until: now},
			drain.Row{Verdict: drain.Evict, Reason: drain.ReasonEvict, Until: later(5 * time.Second)},
		},
		{
			"a refusal from a future that the clock left does not hold", pod("web"), drain.Policy{},
			drain.Answer{Asked: drain.Evict, Reason: drain.ReasonBudget, Until: later(time.Hour)},
			drain.Row{Verdict: drain.Evict, Reason: drain.ReasonEvict, Until: later(5 * time.Second)},
		},
		{
			"what the pod shows counts more than an answer", pod("web", leaving(20*time.Second, 30)), drain.Policy{}, budget,
			drain.Row{Verdict: drain.Wait, Reason: drain.ReasonTerminating, Until: later(20 * time.Second)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(tt.pod)
			in.Answers = drain.Answers{tt.pod.UID: tt.answer}
			require.Equal(t, []drain.Row{withPod(tt.want, tt.pod)}, drain.Decide(in, tt.policy, now).Rows)
		})
	}
}

func TestForce(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		policy drain.Policy
		answer drain.Answer
		want   drain.Verdict
		reason drain.Reason
		until  time.Duration // negative for none
	}{
		{"at its time a pod gets a second to stop", newPod("a"), drain.Policy{ForceAt: now}, drain.Answer{}, drain.Delete, drain.ReasonForced, 5 * time.Second},
		{"one moment before its time it does nothing", newPod("a"), drain.Policy{ForceAt: now.Add(1)}, drain.Answer{}, drain.Evict, drain.ReasonEvict, 5 * time.Second},
		{"it does not wait for the refusal of an eviction", newPod("a"), forced(), drain.Answer{Asked: drain.Evict, Until: now.Add(time.Second)}, drain.Delete, drain.ReasonForced, 5 * time.Second},
		{"it waits for the refusal of a deletion", newPod("a"), forced(), drain.Answer{Asked: drain.Delete, Reason: drain.ReasonThrottled, Until: now.Add(time.Second)}, drain.Wait, drain.ReasonThrottled, time.Second},
		{"it shortens the grace of a pod on its way out", newPod("a", leaving(time.Hour, 3600)), forced(), drain.Answer{}, drain.Delete, drain.ReasonForced, 5 * time.Second},
		{"it does not ask twice for the same", newPod("a", leaving(time.Second, 1)), forced(), drain.Answer{}, drain.Wait, drain.ReasonTerminating, time.Second},
		{"it waits a little for a pod that should have stopped", newPod("a", leaving(-58*time.Second, 1)), forced(), drain.Answer{}, drain.Wait, drain.ReasonOverdue, 2 * time.Second},
		{"it gives up a pod that does not stop", newPod("a", leaving(-time.Minute, 1)), forced(), drain.Answer{}, drain.Ignore, drain.ReasonAbandoned, -1},
		{"it does not give up before the pause after its own request", newPod("a", leaving(-time.Hour, 1)), forced(), drain.Answer{Asked: drain.Delete, Reason: drain.ReasonTerminating, Until: now.Add(2 * time.Second)}, drain.Wait, drain.ReasonOverdue, 2 * time.Second},
		{"it gives up a minute after its own time at the earliest", newPod("a", leaving(-time.Hour, 1)), drain.Policy{ForceAt: now.Add(-57 * time.Second)}, drain.Answer{}, drain.Wait, drain.ReasonOverdue, 3 * time.Second},
		{"it gives up a pod that only finalizers hold", newPod("a", withFinalizer, leaving(-time.Minute, 0)), forced(), drain.Answer{}, drain.Ignore, drain.ReasonAbandoned, -1},
		{"without it nothing is given up", newPod("a", leaving(-time.Hour, 0)), anything, drain.Answer{}, drain.Wait, drain.ReasonOverdue, 5 * time.Second},
		{"nobody stops a pod on an unreachable Node", newPod("a"), unreachable(), drain.Answer{}, drain.ForceDelete, drain.ReasonUnreachable, 5 * time.Second},
		{"nor one that was told to stop", newPod("a", leaving(-time.Hour, 1)), unreachable(), drain.Answer{}, drain.ForceDelete, drain.ReasonUnreachable, 5 * time.Second},
		{"and that does not wait for a refused deletion with grace", newPod("a"), unreachable(), drain.Answer{Asked: drain.Delete, Until: now.Add(time.Second)}, drain.ForceDelete, drain.ReasonUnreachable, 5 * time.Second},
		{"but gives up what finalizers hold there", newPod("a", withFinalizer, leaving(-time.Minute, 0)), unreachable(), drain.Answer{}, drain.Ignore, drain.ReasonAbandoned, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(tt.pod)
			in.Answers = drain.Answers{tt.pod.UID: tt.answer}
			row := drain.Decide(in, tt.policy, now).Rows[0]
			var until time.Time
			if tt.until >= 0 {
				until = now.Add(tt.until)
			}
			require.Equal(t, []any{tt.want, tt.reason, until}, []any{row.Verdict, row.Reason, row.Until})
		})
	}
}

func TestDecideAboutTheNode(t *testing.T) {
	open := newNode()
	open.Spec.Unschedulable = false
	nameless := newNode()
	nameless.Name = ""
	pod := newPod("a")
	for _, tt := range []struct {
		name   string
		in     drain.Observation
		policy drain.Policy
		want   drain.Plan
	}{
		{
			"a cordoned Node without pods is drained",
			observed(), drain.Policy{}, drain.Plan{Done: true},
		},
		{
			"a Node is cordoned, and is not drained before that is seen",
			drain.Observation{Looked: true, Node: open, PodsComplete: true}, drain.Policy{},
			drain.Plan{Cordon: "node-1", CordonUID: "uid-node-1", NextCheck: now.Add(5 * time.Second)},
		},
		{
			"force does not wait for the cordon",
			drain.Observation{Looked: true, Node: open, PodsComplete: true}, forced(),
			drain.Plan{Cordon: "node-1", CordonUID: "uid-node-1", NextCheck: now.Add(5 * time.Second), Done: true},
		},
		{
			"a Node that is to stay schedulable is not cordoned, and not waited for",
			drain.Observation{Looked: true, Node: open, PodsComplete: true}, drain.Policy{KeepSchedulable: true}, drain.Plan{Done: true},
		},
		{
			"a Node that is gone needs no cordon and is drained",
			drain.Observation{Looked: true, PodsComplete: true}, drain.Policy{}, drain.Plan{Done: true},
		},
		{
			"pods that name a Node which is gone are evicted like others",
			drain.Observation{Looked: true, PodsComplete: true, Pods: []*corev1.Pod{pod}}, drain.Policy{},
			drain.Plan{NextCheck: now.Add(5 * time.Second), Rows: []drain.Row{
				withPod(drain.Row{Verdict: drain.Evict, Reason: drain.ReasonEvict, Until: now.Add(5 * time.Second)}, pod),
			}},
		},
		{
			"nothing is done about pods that are not all known",
			drain.Observation{Looked: true, Node: open, Pods: []*corev1.Pod{pod}}, forced(),
			drain.Plan{Reason: drain.ReasonNotObserved, NextCheck: now.Add(5 * time.Second)},
		},
		{
			"nothing is done about a Node that nobody looked for",
			drain.Observation{PodsComplete: true, Pods: []*corev1.Pod{pod}}, forced(),
			drain.Plan{Reason: drain.ReasonNotObserved, NextCheck: now.Add(5 * time.Second)},
		},
		{
			"nothing is done about a Node without name",
			drain.Observation{Looked: true, Node: nameless, PodsComplete: true}, forced(),
			drain.Plan{Reason: drain.ReasonNotObserved, NextCheck: now.Add(5 * time.Second)},
		},
		{
			"a blocked drain waits for a change, or for the time of force",
			observed(newPod("a", unmanaged)), drain.Policy{ForceAt: now.Add(time.Hour)},
			drain.Plan{NextCheck: now.Add(time.Hour), Rows: []drain.Row{
				withPod(drain.Row{Verdict: drain.Block, Reason: drain.ReasonUnmanaged, Message: "no controller would create it again"}, pod),
			}},
		},
		{
			"the time of force comes before the next look",
			observed(pod), drain.Policy{ForceAt: now.Add(time.Second)},
			drain.Plan{NextCheck: now.Add(time.Second), Rows: []drain.Row{
				withPod(drain.Row{Verdict: drain.Evict, Reason: drain.ReasonEvict, Until: now.Add(5 * time.Second)}, pod),
			}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, drain.Decide(tt.in, tt.policy, now))
		})
	}
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
	t.Run("of two that claim to be the same the cautious one counts", func(t *testing.T) {
		lonely := newPod("a", unmanaged)
		require.Equal(t,
			drain.Decide(observed(newPod("a"), lonely), drain.Policy{}, now),
			drain.Decide(observed(lonely, newPod("a")), drain.Policy{}, now))
		require.Equal(t, drain.Block, drain.Decide(observed(newPod("a"), lonely), drain.Policy{}, now).Rows[0].Verdict)
	})
	t.Run("a successor of the same name is another pod", func(t *testing.T) {
		successor := newPod("a", func(p *corev1.Pod) { p.UID = "uid-successor" })
		in := observed(successor)
		in.Answers = drain.Answers{"uid-a": {Asked: drain.Evict, Reason: drain.ReasonBudget, Until: now.Add(time.Second)}}
		require.Equal(t, drain.Evict, drain.Decide(in, drain.Policy{}, now).Rows[0].Verdict)
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

func withPod(r drain.Row, pod *corev1.Pod) drain.Row {
	r.Namespace, r.Name, r.UID = pod.Namespace, pod.Name, pod.UID
	return r
}
