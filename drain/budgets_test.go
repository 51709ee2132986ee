// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
)

type budgetType = policyv1.PodDisruptionBudget

// newBudget returns a budget of the pods of newPod that allows so many disruptions of
// three healthy pods, changed by edits.
func newBudget(name string, allowed int32, edits ...func(*budgetType)) *budgetType {
	b := &budgetType{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: "7", Generation: 3},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(3 - allowed)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 3, DisruptionsAllowed: allowed, CurrentHealthy: 3, DesiredHealthy: 3 - allowed, ExpectedPods: 3,
		},
	}
	for _, edit := range edits {
		edit(b)
	}
	return b
}

// exhausted is a budget that allows nothing just now: one of three pods is missing.
func exhausted(name string, edits ...func(*budgetType)) *budgetType {
	return newBudget(name, 0, append([]func(*budgetType){minAvailable(intstr.FromInt32(2)), healthy(2, 2)}, edits...)...)
}

func selecting(s *metav1.LabelSelector) func(*budgetType) {
	return func(b *budgetType) { b.Spec.Selector = s }
}

func ofVersion(version string) func(*budgetType) {
	return func(b *budgetType) { b.ResourceVersion = version }
}

// outdated gives a budget a status that is older than its spec.
func outdated(b *budgetType) { b.Generation++ }

// healthy has so many healthy pods of three, and a status that desires a number of them.
func healthy(current, desired int32) func(*budgetType) {
	return func(b *budgetType) { b.Status.CurrentHealthy, b.Status.DesiredHealthy = current, desired }
}

func maxUnavailable(v intstr.IntOrString) func(*budgetType) {
	return func(b *budgetType) { b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, &v }
}

func minAvailable(v intstr.IntOrString) func(*budgetType) {
	return func(b *budgetType) { b.Spec.MinAvailable = &v }
}

func alwaysAllow(b *budgetType) {
	b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
}

var syncFailed = condition(metav1.ConditionFalse, policyv1.SyncFailedReason)

func ready(*corev1.Pod) {}

func notReady(p *corev1.Pod) { p.Status.Conditions = nil }

func unknownReadiness(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionUnknown }

func withoutPods(b *budgetType) { b.Status.ExpectedPods = 0 }

func underWay(n int) func(*budgetType) {
	return func(b *budgetType) {
		b.Status.DisruptedPods = map[string]metav1.Time{}
		for i := range n {
			b.Status.DisruptedPods[fmt.Sprint(i)] = metav1.Time{Time: now}
		}
	}
}

func condition(status metav1.ConditionStatus, reason string) func(*budgetType) {
	return func(b *budgetType) {
		b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: status, Reason: reason, Message: "found no controller\nref for pod"}}
	}
}

func TestDecide_BudgetsOfOnePod_EvictOrWait(t *testing.T) {
	type budgets = []*budgetType
	const (
		evicted = "Evictable: "
		zero    = "DisruptionBudget: budget shop/web allows 0 disruptions: "
		usual   = zero + "2 of 3 healthy, 2 desired"
		never   = "BudgetNeverAllows: budget shop/web never allows a disruption"
		unready = "; the pod is not ready, and the unhealthyPodEvictionPolicy is not AlwaysAllow"
		several = "OverlappingBudgets: budgets shop/all and shop/web select the pod; the API server evicts no pod with several budgets"
	)
	stuck := func(edits ...func(*budgetType)) budgets { return budgets{exhausted("web", edits...)} }
	web, all := newBudget("web", 1), newBudget("all", 1, selecting(&metav1.LabelSelector{}))
	insufficient := condition(metav1.ConditionFalse, policyv1.InsufficientPodsReason)
	resolved := condition(metav1.ConditionTrue, policyv1.SyncFailedReason)
	percent := intstr.FromString
	for _, tt := range []struct {
		name    string
		edit    func(*corev1.Pod)
		budgets budgets
		want    string
	}{
		{"a pod that is not running yet uses no budget", inPhase(corev1.PodPending), stuck(), evicted},
		{"a pod of unknown readiness is unready", unknownReadiness, stuck(), evicted},
		{"an unready pod of a budget that desires no pod", notReady, stuck(healthy(0, 0)), zero + "0 of 3 healthy, 0 desired" + unready},
		{"an unready pod that may always be evicted", notReady, stuck(alwaysAllow, healthy(1, 2)), evicted},
		{"a ready pod is held although unready pods are not", ready, stuck(alwaysAllow), usual},
		{"several budgets hold, and the message names all", ready, budgets{web, all}, several},
		{"two copies of a budget do not overlap", ready, budgets{web, nil, web}, evicted},
		{"of two copies the newer one counts", ready, budgets{web, exhausted("web", ofVersion("10"))}, usual},
		{"as many evictions in progress as allowed", ready, budgets{newBudget("web", 1, underWay(2000))}, evicted},
		{
			"a budget with too many evictions in progress allows nothing", ready, budgets{newBudget("web", 1, underWay(2001))},
			"DisruptionBudget: budget shop/web has 2001 evictions in progress",
		},
		{"the condition InsufficientPods is no failure of the status", ready, stuck(insufficient), usual},
		{"a failure of the status that is over", ready, stuck(resolved), usual},
		{"zero percent may be unavailable", ready, stuck(maxUnavailable(percent("0%"))), never + ", maxUnavailable is 0%: 2 of 3 healthy, 2 desired"},
		{"all must be available", ready, stuck(minAvailable(percent("100%"))), never + ", minAvailable is 100%: 2 of 3 healthy, 2 desired"},
		{
			"a percentage that rounds up to all pods", ready, stuck(minAvailable(percent("90%")), healthy(2, 3)),
			never + " of so few pods, minAvailable is 90%: 2 of 3 healthy, 3 desired",
		},
		{"an invalid number", ready, stuck(minAvailable(percent("many"))), usual},
		{"all are healthy and an eviction is in progress", ready, stuck(underWay(1), healthy(3, 2)), zero + "3 of 3 healthy, 2 desired"},
		{
			"all are healthy and nothing is allowed", ready, stuck(healthy(3, 2)),
			never + " of so few pods, minAvailable is 2: 3 of 3 healthy, 2 desired",
		},
		{"a budget without pods", ready, stuck(healthy(2, 3), withoutPods), zero + "2 of 0 healthy, 3 desired"},
		{
			"a budget of all pods with an outdated status", ready, budgets{newBudget("web", 0, outdated)},
			"DisruptionBudget: budget shop/web was changed, and its status is older",
		},
		{
			"a budget of all pods without a status", ready, budgets{newBudget("web", 0, syncFailed)},
			"DisruptionBudget: budget shop/web has no status: found no controller ref for pod",
		},
		{"a surge of pods allows a disruption", ready, budgets{newBudget("web", 1, maxUnavailable(intstr.FromInt32(0)))}, evicted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(newPod("a", tt.edit))
			in.Budgets = drain.All(tt.budgets...)
			row := drain.Decide(in, drain.Policy{}, now).Rows[0]
			require.Equal(t, tt.want, string(row.Reason)+": "+row.Message)
			require.Equal(t, tt.want == evicted, row.Action == drain.Evict && row.Budgets == nil)
			in.Budgets.Complete = false
			require.Equal(t, row.Reason, drain.Decide(in, drain.Policy{}, now).Rows[0].Reason, "an incomplete list counts too")
		})
	}
}

func TestStep_Budget_IsSpentOnce(t *testing.T) {
	in := observed(newPod("a", withPriority(100)), newPod("b"), newPod("c"), newPod("d", withPriority(-5)), newPod("e", notReady))
	in.Budgets = drain.All(newBudget("web", 2))
	s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
	const first = "a wait DisruptionBudget, b evict Evictable, c wait DisruptionBudget, d evict Evictable, e evict Evictable"
	require.Equal(t, first, rows(plan), "pods of the lowest priority are evicted first, and an unready pod uses no budget")
	require.Equal(t, []drain.Budget{{Namespace: "shop", Name: "web", Allowed: 2, Healthy: 3, Desired: 1, Expected: 3}}, plan.Rows[0].Budgets)

	for _, row := range plan.Requests() {
		in.Results = append(in.Results, drain.Result{Row: row})
	}
	s, plan = drain.Step(s, in, drain.Policy{}, now)
	const accepted = "a wait DisruptionBudget, b wait Terminating, c wait DisruptionBudget, d wait Terminating, e wait Terminating"
	require.Equal(t, accepted, rows(plan), "an accepted eviction is counted once")
	in.Results = nil
	dying := terminating(time.Minute, 60)
	s.Responses["uid-e"] = withBudgets(s.Responses["uid-e"], "web@7") // its eviction uses no budget
	in.Pods = drain.All(newPod("b", dying), newPod("c"), newPod("e", notReady, dying))
	for allowed, want := range map[int32]string{2: "c evict Evictable", 1: "c wait DisruptionBudget"} {
		in.Budgets = drain.All(newBudget("web", allowed))
		s.Responses["uid-b"] = withBudgets(s.Responses["uid-b"], "web@7")
		_, plan = drain.Step(s, in, drain.Policy{}, now)
		require.Contains(t, rows(plan), want, "one of %d is in progress", allowed)
	}
	in.Budgets = drain.All(newBudget("web", 1, ofVersion("8")))
	_, plan = drain.Step(s, in, drain.Policy{}, now)
	require.Contains(t, rows(plan), "c evict Evictable", "the budget is newer than the eviction")
}

// withBudgets returns a response with these budgets.
func withBudgets(r drain.Response, budgets string) drain.Response {
	r.Budgets = budgets
	return r
}

func TestDecide_HeldPods_NamesTheirBudgets(t *testing.T) {
	in := observed(newPod("a", doNotDisrupt("maybe")), newPod("b", goldenLabeled("db")))
	in.Budgets = drain.All(newBudget("web", 0))
	d := drain.Decide(in, drain.Policy{Grace: ptr.To(time.Second), DoNotDisrupt: true}, now)
	require.Equal(t, "a wait BudgetNeverAllows, b evict Evictable", rows(d), "a budget holds only its own pods")
	require.Regexp(t, "budget shop/web never allows.*maybe", d.Rows[0].Message, "it keeps its message")
	require.Nil(t, d.Rows[0].Grace)
	in.Budgets.Items = append(in.Budgets.Items, exhausted("web", func(b *budgetType) { b.Namespace = "shop-2" }))
	in.Pods.Items = append(in.Pods.Items, newPod("c", func(p *corev1.Pod) { p.Namespace = "shop-2" }))
	d = drain.Decide(in, drain.Policy{}, now)
	require.Contains(t, rows(d), "c wait DisruptionBudget", "budgets of one name in two namespaces")
	for i := range 1000 {
		in.Budgets.Items = append(in.Budgets.Items, newBudget(fmt.Sprintf("b%03d", i), 1))
	}
	const named = "budgets shop/b000 and shop/b001 and shop/b002 and shop/b003 and shop/b004 and 996 more select the pod; "
	require.Contains(t, drain.Decide(in, drain.Policy{}, now).Rows[0].Message, named)
}

func TestDecide_WaitOfARule_UsesNoBudget(t *testing.T) {
	waits := map[string]drain.Rule{"a": {Action: drain.Wait, Until: now.Add(time.Hour)}}
	in := observed(newPod("a"), newPod("b"))
	in.Budgets = drain.All(newBudget("web", 1))
	d := drain.Decide(in, drain.Policy{Rules: func(pod *corev1.Pod) drain.Rule { return waits[pod.Name] }}, now)
	require.Equal(t, "a wait Rule, b evict Evictable", rows(d))
}

func TestStep_RefusingBudgetChanges_EvictsAtOnce(t *testing.T) {
	type budgets = drain.List[*budgetType]
	web, changed := drain.All(newBudget("web", 1)), drain.All(newBudget("web", 1, ofVersion("8")))
	no, several := budgetRefusal("no", 30), errors.New("This pod has more than one PodDisruptionBudget")
	for _, tt := range []struct {
		name          string
		err           error
		before, after budgets
		want          string
		shown         int
	}{
		{"the same budget", no, web, web, "a wait DisruptionBudget", 1},
		{"a changed budget", no, web, changed, "a evict Evictable", 0},
		{"a changed budget that allows nothing", no, web, drain.All(exhausted("web", ofVersion("8"))), "a wait DisruptionBudget", 1},
		{"a deleted budget", no, web, budgets{Complete: true}, "a evict Evictable", 0},
		{"an incomplete list of budgets", no, web, budgets{}, "a wait DisruptionBudget", 0},
		{"a list that becomes complete", no, budgets{}, web, "a evict Evictable", 0},
		{"a second budget covers the pod", no, web, drain.All(newBudget("web", 1), newBudget("web-2", 1)), "a wait OverlappingBudgets", 2},
		{"a refusal because of several budgets", several, web, drain.All(newBudget("web", 1), newBudget("all", 1)), "a wait OverlappingBudgets", 2},
		{"a refusal of a busy API server", apierrors.NewTooManyRequests("busy", 7), web, changed, "a wait Unavailable", 0},
		{"another refusal", errors.New("no"), web, changed, "a wait Refused", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(newPod("a"))
			in.Budgets = tt.before
			s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
			in.Results = []drain.Result{{Row: plan.Rows[0], Err: tt.err}}
			s, plan = drain.Step(s, in, drain.Policy{}, now)
			require.Equal(t, drain.Wait, plan.Rows[0].Action)
			in.Results, in.Budgets = nil, tt.after
			_, plan = drain.Step(s, in, drain.Policy{}, now.Add(time.Second))
			require.Equal(t, tt.want, rows(plan))
			require.Len(t, plan.Rows[0].Budgets, tt.shown)
		})
	}
}

// TestDecide_AnySelectors_FindsTheBudgetsThatCover asserts that a pod is covered by the budgets
// whose selectors the API server matches.
func TestDecide_AnySelectors_FindsTheBudgetsThatCover(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a seed
	texts := []string{"a", "b", "ab", "a1", "1a", "1"}
	text := func() string { return texts[r.IntN(len(texts))] }
	for range 1500 {
		in := observed()
		in.Budgets.Complete = true
		for i := range r.IntN(8) {
			b := newBudget(fmt.Sprint(i), 1, selecting(nil), func(b *budgetType) { b.Namespace = []string{"shop", "shop-2"}[r.IntN(2)] })
			if r.IntN(8) > 0 {
				b.Spec.Selector = &metav1.LabelSelector{}
				for range r.IntN(3) * min(1, r.IntN(8)) {
					metav1.AddLabelToSelector(b.Spec.Selector, text(), text())
				}
				if r.IntN(2) == 0 {
					e := metav1.LabelSelectorRequirement{Key: text(), Operator: []metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist", "Bogus"}[r.IntN(5)]}
					if e.Operator == "In" || e.Operator == "NotIn" {
						e.Values = []string{text(), "b"}[:1+r.IntN(2)]
					}
					b.Spec.Selector.MatchExpressions = append(b.Spec.Selector.MatchExpressions, e)
				}
			}
			in.Budgets.Items = append(in.Budgets.Items, b)
		}
		for i := range 8 {
			in.Pods.Items = append(in.Pods.Items, newPod(fmt.Sprint(i), func(p *corev1.Pod) {
				p.Namespace, p.Labels = []string{"shop", "shop-2"}[r.IntN(2)], map[string]string{}
				for range r.IntN(4) {
					p.Labels[text()] = text()
				}
			}))
		}
		pods := map[string]*corev1.Pod{}
		for _, pod := range in.Pods.Items {
			pods[pod.Name] = pod
		}
		for _, row := range drain.Decide(in, drain.Policy{}, now).Rows {
			var want []string
			for _, b := range in.Budgets.Items {
				selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
				if err == nil && b.Namespace == row.Namespace && selector.Matches(labels.Set(pods[row.Name].Labels)) {
					want = append(want, b.Name+"@7")
				}
			}
			require.Equal(t, strings.Join(want, ","), row.Versions, "%v of %v", pods[row.Name].Labels, in.Budgets.Items)
		}
	}
}
