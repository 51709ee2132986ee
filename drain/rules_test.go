// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

func labeled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{key: value} }
}

func doNotDisrupt(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": value} }
}

func startedAt(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: at} }
}

// Pods say by labels and annotations how they want to be treated, if the policy heeds that.
func TestRules_LabelsAndAnnotations(t *testing.T) {
	const capi = "cluster.x-k8s.io/drain"
	heeds := drain.Policy{ClusterAPILabels: true, DoNotDisrupt: true}
	for _, tt := range []struct {
		name    string
		pod     *corev1.Pod
		policy  drain.Policy
		verdict drain.Verdict
		reason  machinist.Reason
		message string
	}{
		{"skip leaves it alone", newPod("a", labeled(capi, "skip")), heeds, drain.Ignore, drain.ReasonRule, "label cluster.x-k8s.io/drain=skip"},
		{"in any case", newPod("a", labeled(capi, "SKIP")), heeds, drain.Ignore, drain.ReasonRule, "SKIP"},
		{"also a pod that is terminating", newPod("a", labeled(capi, "skip"), leaving(time.Second, 1)), heeds, drain.Ignore, drain.ReasonRule, ""},
		{"wait-completed waits", newPod("a", labeled(capi, "wait-completed")), heeds, drain.Wait, drain.ReasonWaitCompleted, ""},
		{"WaitCompleted as well", newPod("a", labeled(capi, "WaitCompleted")), heeds, drain.Wait, drain.ReasonWaitCompleted, ""},
		{"a pod that is terminating is not waited for by its label", newPod("a", labeled(capi, "wait-completed"), leaving(time.Second, 1)), heeds, drain.Wait, drain.ReasonTerminating, ""},
		{"other values are noted", newPod("a", labeled(capi, "never")), heeds, drain.Evict, drain.ReasonEvict, "never is not known and ignored"},
		{"without the policy the label says nothing", newPod("a", labeled(capi, "skip")), drain.Policy{}, drain.Evict, drain.ReasonEvict, ""},
		{"true blocks", newPod("a", doNotDisrupt("true")), heeds, drain.Block, drain.ReasonDoNotDisrupt, "do-not-disrupt=true"},
		{"false is none", newPod("a", doNotDisrupt("false")), heeds, drain.Evict, drain.ReasonEvict, ""},
		{"a duration blocks until then", newPod("a", doNotDisrupt("30m"), startedAt(now.Add(-29*time.Minute))), heeds, drain.Block, drain.ReasonDoNotDisrupt, "30m"},
		{"and no longer", newPod("a", doNotDisrupt("30m"), startedAt(now.Add(-30*time.Minute))), heeds, drain.Evict, drain.ReasonEvict, ""},
		{"what makes no sense is said", newPod("a", doNotDisrupt("ture")), heeds, drain.Evict, drain.ReasonEvict, `"ture" is neither true nor a duration`},
		{"so is a negative duration", newPod("a", doNotDisrupt("-1h")), heeds, drain.Evict, drain.ReasonEvict, "ignored"},
		{"without the policy the annotation says nothing", newPod("a", doNotDisrupt("true")), drain.Policy{}, drain.Evict, drain.ReasonEvict, ""},
		{"a pod that is not selected is left alone", newPod("a"), drain.Policy{PodSelector: "app!=web"}, drain.Ignore, drain.ReasonRule, "not among the pods that are selected"},
		{"one that is selected goes", newPod("a"), drain.Policy{PodSelector: "app in (web,db)"}, drain.Evict, drain.ReasonEvict, ""},
		{"the policy protects what is selected", newPod("a", unmanaged), drain.Policy{PodSelector: "app=web"}, drain.Block, drain.ReasonUnmanaged, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			row := drain.Decide(observed(tt.pod), tt.policy, now).Rows[0]
			require.Equal(t, tt.verdict, row.Verdict)
			require.Equal(t, tt.reason, row.Reason)
			require.Contains(t, row.Message, tt.message)
		})
	}
	row := drain.Decide(observed(newPod("a", doNotDisrupt("30m"), startedAt(now))), heeds, now).Rows[0]
	require.Equal(t, now.Add(30*time.Minute), row.Until, "it says when to look again")
	invalid := drain.Decide(observed(newPod("a")), drain.Policy{PodSelector: "!!"}, now)
	require.Equal(t, drain.ReasonInvalidPolicy, invalid.Gates[0].Reason)
	require.Equal(t, drain.Wait, invalid.Rows[0].Verdict)
}

func FuzzDoNotDisrupt(f *testing.F) {
	for _, value := range []string{"true", "false", "30m", "", "-1h", "9999999h", "ture"} {
		f.Add(value, int64(0))
	}
	f.Fuzz(func(t *testing.T, value string, started int64) {
		pod := newPod("a", doNotDisrupt(value), startedAt(now.Add(time.Duration(started))))
		row := drain.Decide(observed(pod), drain.Policy{DoNotDisrupt: true}, now).Rows[0]
		switch row.Verdict {
		case drain.Block:
			require.True(t, row.Until.IsZero() && value == "true" || row.Until.After(now), "it has an end, or is for ever")
		default:
			require.Equal(t, drain.Evict, row.Verdict)
		}
	})
}

// Critical pods wait until all others have gone, unless the policy says all at once. Within a
// wave the lowest priority goes first.
func TestWaves_CriticalPodsGoLast(t *testing.T) {
	dns := newPod("dns", withPriority(2000000000))
	asked := func(p drain.Policy, pods ...*corev1.Pod) string {
		var names string
		for _, row := range drain.Decide(observed(pods...), p, now).Rows {
			if row.Verdict == drain.Evict {
				names += row.Name + " "
			}
		}
		return names
	}
	web := newPod("web")
	require.Equal(t, "web ", asked(drain.Policy{}, dns, web))
	require.Equal(t, "dns web ", asked(drain.Policy{AllAtOnce: true}, dns, web))
	require.Empty(t, asked(drain.Policy{}, dns, newPod("web", leaving(time.Second, 1))), "a pod that is terminating is waited for")
	require.Equal(t, "dns ", asked(drain.Policy{}, dns, newPod("web", inPhase(corev1.PodSucceeded))))
	require.Equal(t, "dns ", asked(drain.Policy{}, dns))
	row := drain.Decide(observed(dns, web, newPod("web-2")), drain.Policy{}, now).Rows[0]
	require.Equal(t, []any{drain.ReasonWave, "wave 0 has 2 pods left"}, []any{row.Reason, row.Message})
	forced := drain.Decide(observed(dns, web), anchored(drain.Ladder{{Action: drain.IgnoreBudgets}}), now)
	require.Equal(t, drain.Delete, forced.Rows[0].Verdict, "force does not wait")

	in := observed(newPod("a", withPriority(5)), newPod("b", withPriority(-5)), newPod("c"))
	in.Budgets = drain.All(newBudget("web", 2))
	require.Equal(t, "a wait DisruptionBudget, b evict Evictable, c evict Evictable", budgetVerdicts(drain.Decide(in, drain.Policy{}, now)))
}
