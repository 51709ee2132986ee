// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/nodeops"
)

// rows returns the rows of a decision: name, action and reason.
func rows(d drain.Decision) string {
	var s []string
	for _, row := range d.Rows {
		s = append(s, row.Name+" "+string(row.Action)+" "+string(row.Reason))
	}
	return strings.Join(s, ", ")
}

// daemonSets is a list with one DaemonSet.
func daemonSets(uid types.UID) drain.List[*appsv1.DaemonSet] {
	return drain.All(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: uid}})
}

func tolerating(t ...corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = t }
}

func created(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(at) }
}

func startedAt(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: at} }
}

func labeled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{key: value} }
}

func doNotDisrupt(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": value} }
}

func owner(edit func(*metav1.OwnerReference)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { edit(&p.OwnerReferences[0]) }
}

func TestDecide_OnePod_ActionAndReason(t *testing.T) {
	const (
		evicted, stays, gone = "evict Evictable", "ignore Stays", "ignore Gone"
		lonely, data         = "block Unmanaged: no controller would create it again", "block LocalStorage: its emptyDir volumes would be lost"
	)
	force := anchored(drain.Ladder{{Action: drain.ForceDeletePods}})
	here, none := daemonSets("uid-DaemonSet"), drain.All[*appsv1.DaemonSet](nil)
	agent := ownedBy("DaemonSet")
	everything := tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})
	cordon := tolerating(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists})
	cordoned := drain.State{Started: now.Add(-time.Hour), CordonedAt: now.Add(-time.Minute)}
	const label = "cluster.x-k8s.io/drain"
	applies := drain.Policy{ClusterAPILabels: true, DoNotDisrupt: true}
	for _, tt := range []struct {
		name   string
		edit   func(*corev1.Pod)
		policy drain.Policy
		sets   drain.List[*appsv1.DaemonSet]
		state  drain.State
		want   string // a beginning
	}{
		{name: "a managed pod", want: evicted},
		{name: "an unmanaged pod blocks", edit: unmanaged, policy: drain.Policy{EvictLocalStorage: true}, want: lonely},
		{name: "an unmanaged pod that the policy evicts", edit: unmanaged, policy: drain.Policy{EvictUnmanaged: true}, want: evicted},
		{name: "a pod with local data blocks", edit: emptyDir, policy: drain.Policy{EvictUnmanaged: true}, want: data},
		{name: "a pod with local data that the policy evicts", edit: emptyDir, policy: drain.Policy{EvictLocalStorage: true}, want: evicted},
		{name: "a pod with both obstacles", edit: both(unmanaged, emptyDir), want: lonely + ", and its emptyDir volumes would be lost"},
		{name: "ignored budgets do not evict local data", edit: emptyDir, policy: anchored(drain.Ladder{{Action: drain.IgnoreBudgets}}), want: data},
		{name: "a terminating unmanaged pod", edit: both(unmanaged, terminating(20*time.Second, 30)), want: "wait Terminating"},
		{name: "a pod after its grace period", edit: both(withFinalizer, terminating(-time.Minute, 30)), want: "wait Overdue: it should have stopped by 2026-03-01T11:59:00Z and has the finalizers example.com/job-tracking"},
		{name: "a mirror pod is ignored", edit: mirror, policy: force, want: stays},
		{name: "a pod of the Node itself is ignored", edit: ownedBy("Node"), policy: force, want: stays},
		{name: "a pod that succeeded is ignored", edit: both(inPhase(corev1.PodSucceeded), unmanaged), want: gone},
		{name: "a pod that failed is ignored", edit: both(inPhase(corev1.PodFailed), both(withFinalizer, terminating(-time.Hour, 0))), want: gone},
		{name: "a deleted pod that has ended, before its kubelet deletes the object", edit: both(inPhase(corev1.PodSucceeded), terminating(time.Minute, 30)), want: "wait Terminating"},
		{name: "a deleted pod that has ended, after its kubelet deleted it", edit: both(inPhase(corev1.PodSucceeded), both(withFinalizer, terminating(time.Minute, 0))), want: gone},
		{name: "a pod of a DaemonSet that was deleted and has ended", edit: both(agent, both(inPhase(corev1.PodSucceeded), terminating(time.Minute, 30))), sets: here, want: stays},
		{name: "a pod of another Node", edit: func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }, policy: force, want: gone},
		{name: "a pod without UID, as of a fake API server", edit: func(p *corev1.Pod) { p.UID = "" }, want: evicted},
		{name: "the strongest rung is the reason", policy: anchored(drain.Ladder{{Action: drain.ForceDeletePods}, {Action: drain.IgnoreBudgets}}), want: "force-delete ForceDeletePods"},
		{name: "a pod without name", edit: func(p *corev1.Pod) { p.Name = "" }, policy: force, want: "block NotEvaluated: metadata.name is empty"},
		{name: "a pod without priority is one of priority 0", edit: func(p *corev1.Pod) { p.Spec.Priority = nil }, want: evicted},

		{name: "a pod of a DaemonSet", edit: agent, sets: here, want: stays},
		{name: "a pod of a DaemonSet, if DaemonSets are unknown", edit: agent, want: stays},
		{name: "a pod of a DaemonSet, force-deleted", edit: both(agent, emptyDir), sets: here, policy: force, want: stays},
		{name: "its DaemonSet is gone", edit: agent, sets: none, want: lonely},
		{name: "its DaemonSet is gone, and pods without controller go", edit: agent, sets: none, policy: drain.Policy{EvictUnmanaged: true}, want: evicted},
		{name: "its DaemonSet was replaced", edit: agent, sets: daemonSets("uid-new"), want: lonely},
		{name: "its DaemonSet is in another namespace", edit: both(agent, func(p *corev1.Pod) { p.Namespace = "bar" }), sets: here, want: lonely},
		{name: "its DaemonSet is gone, and it has local data", edit: both(agent, emptyDir), sets: none, want: lonely + ", and its emptyDir volumes would be lost"},
		{name: "its DaemonSet is gone, it tolerates the cordon", edit: both(agent, everything), sets: none, policy: drain.Policy{Cordon: nodeops.Cordon{Taint: "example.com/drained"}}, want: lonely},
		{name: "a DaemonSet of another project", edit: both(agent, owner(func(o *metav1.OwnerReference) { o.APIVersion = "apps.kruise.io/v1alpha1" })), sets: none, want: stays},
		{name: "a DaemonSet without UID", edit: both(agent, owner(func(o *metav1.OwnerReference) { o.UID = "" })), sets: none, want: stays},
		{name: "a finished pod of a DaemonSet", edit: both(agent, inPhase(corev1.PodFailed)), sets: none, want: gone},

		{name: "created after the cordon, which it tolerates", edit: both(cordon, created(now.Add(-time.Second))), state: cordoned, want: stays},
		{name: "and terminating", edit: both(cordon, both(created(now.Add(-time.Second)), terminating(time.Minute, 60))), state: cordoned, want: stays},
		{name: "created when the cordon was observed", edit: both(cordon, created(now.Add(-time.Minute))), state: cordoned, want: evicted},
		{name: "created after the cordon, which it does not tolerate", edit: created(now.Add(-time.Second)), state: cordoned, want: evicted},
		{name: "created after a cordon that was not observed", edit: both(cordon, created(now.Add(-time.Second))), want: evicted},
		{name: "created after the cordon, without a controller", edit: both(unmanaged, both(cordon, created(now.Add(-time.Second)))), state: cordoned, want: lonely},

		{name: "the label skip", edit: labeled(label, "SKIP"), policy: applies, want: "ignore Rule: label cluster.x-k8s.io/drain=SKIP"},
		{name: "the label skip, terminating", edit: both(labeled(label, "skip"), terminating(time.Second, 1)), policy: applies, want: "ignore Rule"},
		{name: "the label wait-completed", edit: labeled(label, "wait-completed"), policy: applies, want: "wait WaitCompleted"},
		{name: "the label WaitCompleted", edit: labeled(label, "WaitCompleted"), policy: applies, want: "wait WaitCompleted"},
		{name: "the label wait-completed, completed", edit: both(labeled(label, "wait-completed"), inPhase(corev1.PodSucceeded)), policy: applies, want: gone},
		{name: "the label wait-completed, terminating", edit: both(labeled(label, "wait-completed"), terminating(time.Second, 1)), policy: applies, want: "wait Terminating"},
		{name: "a label that is not known", edit: labeled(label, "never"), policy: applies, want: evicted + ": label cluster.x-k8s.io/drain=never is not known and ignored"},
		{name: "a label that the policy does not apply", edit: labeled(label, "skip"), want: evicted},
		{name: "do not disrupt", edit: doNotDisrupt("true"), policy: applies, want: "block DoNotDisrupt: annotation karpenter.sh/do-not-disrupt=true"},
		{name: "the annotation false", edit: doNotDisrupt("false"), policy: applies, want: evicted},
		{name: "do not disrupt for 30 minutes", edit: both(doNotDisrupt("30m"), both(created(now.Add(-time.Hour)), startedAt(now.Add(-29*time.Minute)))), policy: applies, want: "block DoNotDisrupt"},
		{name: "do not disrupt for 30 minutes, which are over", edit: both(doNotDisrupt("30m"), startedAt(now.Add(-30*time.Minute))), policy: applies, want: evicted},
		{name: "an invalid annotation", edit: doNotDisrupt("ture"), policy: applies, want: evicted + `: annotation karpenter.sh/do-not-disrupt="ture" is neither true nor a duration`},
		{name: "a negative duration", edit: doNotDisrupt("-1h"), policy: applies, want: evicted + `: annotation karpenter.sh/do-not-disrupt="-1h" is neither`},
		{name: "an annotation that the policy does not apply", edit: doNotDisrupt("true"), want: evicted},
		{name: "a pod that is not selected", policy: drain.Policy{PodSelector: "app!=web"}, want: "ignore Rule: the pod selector does not select it"},
		{name: "a pod that is selected", policy: drain.Policy{PodSelector: "app in (web,db)"}, want: evicted},
		{name: "a selected pod is protected like others", edit: unmanaged, policy: drain.Policy{PodSelector: "app=web"}, want: lonely},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := newPod("web")
			if tt.edit != nil {
				tt.edit(pod)
			}
			in := observed(pod)
			in.Node.Spec.Taints = []corev1.Taint{{Key: "example.com/drained", Effect: corev1.TaintEffectNoSchedule}}
			in.DaemonSets = tt.sets
			_, d := drain.Step(tt.state, in, tt.policy, now)
			require.Len(t, d.Rows, 1)
			row := d.Rows[0]
			got := strings.TrimSuffix(string(row.Action)+" "+string(row.Reason)+": "+row.Message, ": ")
			require.True(t, strings.HasPrefix(got, tt.want), got)
			require.Equal(t, []any{pod.Namespace, pod.Name, pod.UID}, []any{row.Namespace, row.Name, row.UID})
			require.Equal(t, row.Action == drain.Ignore, d.Outcome == drain.Drained)
		})
	}
	row := drain.Decide(observed(newPod("a", doNotDisrupt("30m"), startedAt(now))), applies, now).Rows[0]
	require.Equal(t, now.Add(30*time.Minute), row.Until, "the row has the end of the protection")
}

// TestDecide_TaintOfTheCordon_TolerationsDecide asserts the rules of the scheduler for a taint
// without value and effect NoSchedule.
func TestDecide_TaintOfTheCordon_TolerationsDecide(t *testing.T) {
	const key = "example.com/drained"
	for _, tt := range []struct {
		toleration corev1.Toleration
		want       string
	}{
		{corev1.Toleration{Operator: corev1.TolerationOpExists}, "ignore Stays"},
		{corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, "ignore Stays"},
		{corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, "evict Evictable"},
		{corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, TolerationSeconds: ptr.To(int64(5))}, "ignore Stays"},
		{corev1.Toleration{Key: key + "x", Operator: corev1.TolerationOpExists}, "evict Evictable"},
		{corev1.Toleration{Key: key, Operator: corev1.TolerationOpEqual}, "ignore Stays"},
		{corev1.Toleration{Key: key}, "ignore Stays"},
		{corev1.Toleration{Key: key, Value: "x"}, "evict Evictable"},
		{corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectPreferNoSchedule}, "evict Evictable"},
		{corev1.Toleration{Key: key, Operator: corev1.TolerationOpGt, Value: "0"}, "evict Evictable"},
		{corev1.Toleration{Key: key, Operator: "Like"}, "evict Evictable"},
	} {
		in := observed(newPod("web", tolerating(corev1.Toleration{Key: "example.com/other"}, tt.toleration)))
		require.Equal(t, "web "+tt.want, rows(drain.Decide(in, drain.Policy{Cordon: nodeops.Cordon{Taint: key}}, now)), "%v", tt.toleration)
		require.Equal(t, "web evict Evictable", rows(drain.Decide(in, drain.Policy{}, now)), "a cordon alone is not tolerated")
	}
}

func TestDecide_SkipTerminatingAfter_LeavesThePodBehind(t *testing.T) {
	skip := drain.Policy{SkipTerminatingAfter: time.Minute}
	force := anchored(drain.Ladder{{Action: drain.ForceDeletePods}})
	force.SkipTerminatingAfter = time.Minute
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		policy drain.Policy
		want   string
		until  time.Duration
	}{
		{"the time is over", newPod("a", terminating(-time.Minute, 30)), skip, "a ignore Abandoned", 0},
		{"a nanosecond before", newPod("a", terminating(-time.Minute+1, 30)), skip, "a wait Overdue", 1},
		{"a pod within its grace period", newPod("a", terminating(time.Second, 30)), skip, "a wait Terminating", time.Second},
		{"without the limit", newPod("a", terminating(-time.Hour, 30)), drain.Policy{}, "a wait Overdue", time.Minute},
		{"less than zero", newPod("a", terminating(-time.Hour, 30)), drain.Policy{SkipTerminatingAfter: -1}, "a wait Overdue", time.Minute},
		{"a pod is force-deleted first", newPod("a", terminating(-time.Hour, 30)), force, "a force-delete ForceDeletePods", 5 * time.Second},
		{"a force-deleted pod with a finalizer", newPod("a", withFinalizer, terminating(-time.Hour, 0)), force, "a ignore Abandoned", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := drain.Decide(observed(tt.pod), tt.policy, now)
			require.Equal(t, tt.want, rows(d))
			require.Equal(t, tt.until == 0, d.Outcome == drain.Proceeded, "a Node with pods left is not Drained")
			require.Equal(t, tt.until, max(0, d.Rows[0].Until.Sub(now)))
		})
	}
}

func TestDecide_CopiesOfAPod_NewestCountsAndRowsAreSorted(t *testing.T) {
	version := func(v string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.ResourceVersion = v } }
	old, current := newPod("a", unmanaged, version("9")), newPod("a", terminating(time.Minute, 60), version("10"))
	successor := newPod("a", func(p *corev1.Pod) { p.UID = "uid-successor" })
	first := newPod("z", func(p *corev1.Pod) { p.Namespace = "bar" })
	d := drain.Decide(observed(newPod("c", mirror), old, nil, current, old, nil, first, successor), drain.Policy{}, now)
	require.Equal(t, "z evict Evictable, a wait Terminating, a evict Evictable, c ignore Stays", rows(d))
	require.Len(t, d.Holds(), 3)
}

// TestDecide_CriticalPods_EvictedLast asserts that critical pods wait until all others are gone, unless
// the policy says all at once.
func TestDecide_CriticalPods_EvictedLast(t *testing.T) {
	dns, web := newPod("dns", withPriority(2000000000)), newPod("web")
	for _, tt := range []struct {
		policy drain.Policy
		web    *corev1.Pod
		want   string
	}{
		{drain.Policy{}, web, "dns wait Wave, web evict Evictable"},
		{drain.Policy{AllAtOnce: true}, web, "dns evict Evictable, web evict Evictable"},
		{drain.Policy{}, newPod("web", terminating(time.Second, 1)), "dns wait Wave, web wait Terminating"},
		{drain.Policy{}, newPod("web", inPhase(corev1.PodSucceeded)), "dns evict Evictable, web ignore Gone"},
		{drain.Policy{}, nil, "dns evict Evictable"},
		{anchored(drain.Ladder{{Action: drain.IgnoreBudgets}}), web, "dns delete IgnoreBudgets, web delete IgnoreBudgets"},
	} {
		require.Equal(t, tt.want, rows(drain.Decide(observed(dns, tt.web), tt.policy, now)))
	}
	require.Equal(t, "wave 0 has 2 pods left", drain.Decide(observed(dns, web, newPod("web-2")), drain.Policy{}, now).Rows[0].Message)
}

func TestStep_EvictionIsAccepted_WaitsUntilThePodIsGone(t *testing.T) {
	s, d := drain.Step(drain.State{}, observed(newPod("web")), drain.Policy{}, now)
	in := observed(newPod("web"))
	in.Results = []drain.Result{{Row: d.Rows[0], At: now}}
	s, d = drain.Step(s, in, drain.Policy{}, now.Add(time.Second))
	require.Equal(t, "web wait Terminating", rows(d), "it is not evicted twice while the cache is older")
	s, d = drain.Step(s, observed(newPod("web", terminating(time.Hour, 3600))), anything, now.Add(time.Minute))
	require.Equal(t, "web wait Terminating", rows(d))
	require.Equal(t, now.Add(time.Hour), d.NextCheck, "it is not looked at every second")
	_, d = drain.Step(s, observed(), drain.Policy{}, now.Add(time.Hour))
	require.Equal(t, []any{drain.Drained, 1}, []any{d.Outcome, d.GoneSoFar})
}

func FuzzDoNotDisrupt(f *testing.F) {
	for _, value := range []string{"true", "false", "30m", "", "-1h", "9999999h", "ture"} {
		f.Add(value, int64(0))
	}
	f.Fuzz(func(t *testing.T, value string, started int64) {
		pod := newPod("a", doNotDisrupt(value), startedAt(now.Add(time.Duration(started))))
		row := drain.Decide(observed(pod), drain.Policy{DoNotDisrupt: true}, now).Rows[0]
		if row.Action == drain.Block {
			require.True(t, row.Until.IsZero() && value == "true" || row.Until.After(now), "it has an end, or protects always")
			return
		}
		require.Equal(t, drain.Evict, row.Action)
	})
}
