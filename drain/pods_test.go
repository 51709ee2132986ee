// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"cmp"
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
		pod    *corev1.Pod // or a managed one
		policy drain.Policy
		sets   drain.List[*appsv1.DaemonSet]
		state  drain.State
		want   string // a beginning
	}{
		{name: "an unmanaged pod blocks", pod: newPod("web", unmanaged), policy: drain.Policy{EvictLocalStorage: true}, want: lonely},
		{name: "a pod with local data blocks", pod: newPod("web", emptyDir), policy: drain.Policy{EvictUnmanaged: true}, want: data},
		{name: "a pod with both obstacles", pod: newPod("web", unmanaged, emptyDir), want: lonely + ", and its emptyDir volumes would be lost"},
		{name: "a terminating unmanaged pod", pod: newPod("web", unmanaged, terminating(20*time.Second, 30)), want: "wait Terminating"},
		{name: "a mirror pod is ignored", pod: newPod("web", mirror), policy: force, want: stays},
		{name: "a pod of the Node itself is ignored", pod: newPod("web", ownedBy("Node")), policy: force, want: stays},
		{name: "a pod that succeeded is ignored", pod: newPod("web", inPhase(corev1.PodSucceeded), unmanaged), want: gone},
		{name: "a deleted pod that has ended, before its kubelet deletes the object", pod: newPod("web", inPhase(corev1.PodSucceeded), terminating(time.Minute, 30)), want: "wait Terminating"},
		{name: "a deleted pod that has ended, after its kubelet deleted it", pod: newPod("web", inPhase(corev1.PodSucceeded), withFinalizer, terminating(time.Minute, 0)), want: gone},
		{name: "a pod of a DaemonSet that was deleted and has ended", pod: newPod("web", agent, inPhase(corev1.PodSucceeded), terminating(time.Minute, 30)), sets: here, want: stays},
		{name: "a pod of another Node", pod: newPod("web", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }), policy: force, want: gone},
		{name: "a pod without UID, as of a fake API server", pod: newPod("web", func(p *corev1.Pod) { p.UID = "" }), want: evicted},
		{name: "the strongest rung is the reason", policy: anchored(drain.Ladder{{Action: drain.ForceDeletePods}, {Action: drain.IgnoreBudgets}}), want: "force-delete ForceDeletePods"},
		{name: "a pod without priority is one of priority 0", pod: newPod("web", func(p *corev1.Pod) { p.Spec.Priority = nil }), want: evicted},

		{name: "its DaemonSet is gone", pod: newPod("web", agent), sets: none, want: lonely},
		{name: "its DaemonSet is in another namespace", pod: newPod("web", agent, func(p *corev1.Pod) { p.Namespace = "bar" }), sets: here, want: lonely},
		{name: "its DaemonSet is gone, it tolerates the cordon", pod: newPod("web", agent, everything), sets: none, policy: drain.Policy{Cordon: nodeops.Cordon{Taint: "example.com/drained"}}, want: lonely},
		{name: "a DaemonSet of another project", pod: newPod("web", agent, owner(func(o *metav1.OwnerReference) { o.APIVersion = "apps.kruise.io/v1alpha1" })), sets: none, want: stays},
		{name: "a DaemonSet without UID", pod: newPod("web", agent, owner(func(o *metav1.OwnerReference) { o.UID = "" })), sets: none, want: stays},

		{name: "created after the cordon, which it tolerates", pod: newPod("web", cordon, created(now.Add(-time.Second))), state: cordoned, want: stays},
		{name: "created when the cordon was observed", pod: newPod("web", cordon, created(now.Add(-time.Minute))), state: cordoned, want: evicted},
		{name: "created after the cordon, which it does not tolerate", pod: newPod("web", created(now.Add(-time.Second))), state: cordoned, want: evicted},
		{name: "created after a cordon that was not observed", pod: newPod("web", cordon, created(now.Add(-time.Second))), want: evicted},
		{name: "created after the cordon, without a controller", pod: newPod("web", unmanaged, cordon, created(now.Add(-time.Second))), state: cordoned, want: lonely},

		{name: "the label skip", pod: newPod("web", labeled(label, "SKIP")), policy: applies, want: "ignore Rule: label cluster.x-k8s.io/drain=SKIP"},
		{name: "the label skip, terminating", pod: newPod("web", labeled(label, "skip"), terminating(time.Second, 1)), policy: applies, want: "ignore Rule"},
		{name: "the label wait-completed", pod: newPod("web", labeled(label, "wait-completed")), policy: applies, want: "wait WaitCompleted"},
		{name: "the label WaitCompleted", pod: newPod("web", labeled(label, "WaitCompleted")), policy: applies, want: "wait WaitCompleted"},
		{name: "the label wait-completed, completed", pod: newPod("web", labeled(label, "wait-completed"), inPhase(corev1.PodSucceeded)), policy: applies, want: gone},
		{name: "the label wait-completed, terminating", pod: newPod("web", labeled(label, "wait-completed"), terminating(time.Second, 1)), policy: applies, want: "wait Terminating"},
		{name: "a label that is not known", pod: newPod("web", labeled(label, "never")), policy: applies, want: evicted + ": label cluster.x-k8s.io/drain=never is not known and ignored"},
		{name: "a label that the policy does not apply", pod: newPod("web", labeled(label, "skip")), want: evicted},
		{name: "do not disrupt", pod: newPod("web", doNotDisrupt("true")), policy: applies, want: "block DoNotDisrupt: annotation karpenter.sh/do-not-disrupt=true"},
		{name: "the annotation false", pod: newPod("web", doNotDisrupt("false")), policy: applies, want: evicted},
		{name: "do not disrupt for 30 minutes", pod: newPod("web", doNotDisrupt("30m"), created(now.Add(-time.Hour)), startedAt(now.Add(-29*time.Minute))), policy: applies, want: "block DoNotDisrupt"},
		{name: "do not disrupt for 30 minutes, which are over", pod: newPod("web", doNotDisrupt("30m"), startedAt(now.Add(-30*time.Minute))), policy: applies, want: evicted},
		{name: "a negative duration", pod: newPod("web", doNotDisrupt("-1h")), policy: applies, want: evicted + `: annotation karpenter.sh/do-not-disrupt="-1h" is neither`},
		{name: "an annotation that the policy does not apply", pod: newPod("web", doNotDisrupt("true")), want: evicted},
		{name: "a pod that is not selected", policy: drain.Policy{PodSelector: "app!=web"}, want: "ignore Rule: the pod selector does not select it"},
		{name: "a selected pod is protected like others", pod: newPod("web", unmanaged), policy: drain.Policy{PodSelector: "app=web"}, want: lonely},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := cmp.Or(tt.pod, newPod("web"))
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
	const key, exists = "example.com/drained", corev1.TolerationOpExists
	for want, all := range map[string][]corev1.Toleration{
		"web ignore Stays": {
			{Operator: exists}, {Operator: exists, Effect: corev1.TaintEffectNoSchedule}, {Key: key},
			{Key: key, Operator: exists, TolerationSeconds: ptr.To(int64(5))}, {Key: key, Operator: corev1.TolerationOpEqual},
		},
		"web evict Evictable": {
			{Operator: exists, Effect: corev1.TaintEffectNoExecute}, {Key: key + "x", Operator: exists}, {Key: key, Value: "x"},
			{Key: key, Operator: exists, Effect: corev1.TaintEffectPreferNoSchedule},
			{Key: key, Operator: corev1.TolerationOpGt, Value: "0"}, {Key: key, Operator: "Like"},
		},
	} {
		for _, toleration := range all {
			in := observed(newPod("web", tolerating(corev1.Toleration{Key: "example.com/other"}, toleration)))
			tainted := drain.Policy{Cordon: nodeops.Cordon{Taint: key}}
			require.Equal(t, want, rows(drain.Decide(in, tainted, now)), "%v", toleration)
			require.Equal(t, "web evict Evictable", rows(drain.Decide(in, drain.Policy{}, now)), "a cordon alone is not tolerated")
		}
	}
}

func TestDecide_SkipTerminatingAfter_LeavesThePodBehind(t *testing.T) {
	const m = time.Minute
	force := anchored(drain.Ladder{{Action: drain.ForceDeletePods}})
	for _, tt := range []struct {
		name   string
		pod    *corev1.Pod
		policy drain.Policy
		skip   time.Duration
		want   string
		until  time.Duration
	}{
		{"the time is over", newPod("a", terminating(-m, 30)), drain.Policy{}, m, "a ignore Abandoned", 0},
		{"a nanosecond before", newPod("a", terminating(-m+1, 30)), drain.Policy{}, m, "a wait Overdue", 1},
		{"less than zero", newPod("a", terminating(-m, 30)), drain.Policy{}, -1, "a wait Overdue", m},
		{"a pod is force-deleted first", newPod("a", terminating(-m, 30)), force, m, "a force-delete ForceDeletePods", 5 * time.Second},
		{"a force-deleted pod", newPod("a", withFinalizer, terminating(-m, 0)), force, m, "a ignore Abandoned", 0},
	} {
		tt.policy.SkipTerminatingAfter = tt.skip
		d := drain.Decide(observed(tt.pod), tt.policy, now)
		require.Equal(t, []any{tt.want, tt.until}, []any{rows(d), max(0, d.Rows[0].Until.Sub(now))}, tt.name)
		require.Equal(t, tt.until == 0, d.Outcome == drain.Proceeded, "a Node with pods left is not Drained")
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

// TestDecide_CriticalPods_EvictedLast has the rows that waves.golden has not.
func TestDecide_CriticalPods_EvictedLast(t *testing.T) {
	dns, web := newPod("dns", withPriority(2000000000)), newPod("web")
	for want, p := range map[string]drain.Policy{
		"dns evict Evictable, web evict Evictable":           {AllAtOnce: true},
		"dns delete IgnoreBudgets, web delete IgnoreBudgets": anchored(drain.Ladder{{Action: drain.IgnoreBudgets}}),
	} {
		require.Equal(t, want, rows(drain.Decide(observed(dns, web), p, now)))
	}
	in := observed(dns, newPod("web", inPhase(corev1.PodSucceeded)))
	require.Equal(t, "dns evict Evictable, web ignore Gone", rows(drain.Decide(in, drain.Policy{}, now)))
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
