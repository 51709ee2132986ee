// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
)

type budgetType = policyv1.PodDisruptionBudget

// newBudget returns a budget of the pods of newPod that allows so many disruptions of
// three healthy pods, changed by edits.
func newBudget(name string, allowed int32, edits ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
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
func exhausted(name string, edits ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	return newBudget(name, 0, append([]func(*policyv1.PodDisruptionBudget){func(b *policyv1.PodDisruptionBudget) {
		b.Spec.MinAvailable = ptr.To(intstr.FromInt32(2))
		b.Status.CurrentHealthy, b.Status.DesiredHealthy = 2, 2
	}}, edits...)...)
}

func selecting(s *metav1.LabelSelector) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = s }
}

func withStatus(edit func(*policyv1.PodDisruptionBudgetStatus)) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { edit(&b.Status) }
}

func maxUnavailable(v intstr.IntOrString) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, &v }
}

func minAvailable(v intstr.IntOrString) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = &v }
}

func alwaysAllow(b *policyv1.PodDisruptionBudget) {
	b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
}

var syncFailed = condition(metav1.ConditionFalse, policyv1.SyncFailedReason)

func notReady(p *corev1.Pod) { p.Status.Conditions = nil }

func underWay(n int) func(*policyv1.PodDisruptionBudget) {
	return withStatus(func(s *policyv1.PodDisruptionBudgetStatus) {
		s.DisruptedPods = map[string]metav1.Time{}
		for i := range n {
			s.DisruptedPods[fmt.Sprint(i)] = metav1.Time{Time: now}
		}
	})
}

func desired(n int32) func(*policyv1.PodDisruptionBudget) {
	return withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.DesiredHealthy = n })
}

func condition(status metav1.ConditionStatus, reason string) func(*policyv1.PodDisruptionBudget) {
	return func(b *policyv1.PodDisruptionBudget) {
		b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: status, Reason: reason, Message: "found no controller\nref for pod"}}
	}
}

func TestDecide_BudgetsOfOnePod_EvictOrWait(t *testing.T) {
	type budgets = []*policyv1.PodDisruptionBudget
	const usual = "budget shop/web allows 0 disruptions: 2 of 3 healthy, 2 desired"
	for _, tt := range []struct {
		name    string
		edit    func(*corev1.Pod)
		budgets budgets
		reason  machinist.Reason
		message string
	}{
		{"no budget allows everything", nil, nil, drain.ReasonEvict, ""},
		{"a budget that allows a disruption does not hold", nil, budgets{newBudget("web", 1)}, drain.ReasonEvict, ""},
		{"a budget that allows nothing holds, with its numbers", nil, budgets{exhausted("web")}, drain.ReasonBudget, usual},
		{"a pod that is not running yet uses no budget", inPhase(corev1.PodPending), budgets{exhausted("web")}, drain.ReasonEvict, ""},
		{"an unready pod is evicted if the budget has enough healthy pods", notReady, budgets{newBudget("web", 0)}, drain.ReasonEvict, ""},
		{
			"an unready pod is held if the budget has too few healthy pods", notReady,
			budgets{exhausted("web", withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy = 1 }))}, drain.ReasonBudget,
			"budget shop/web allows 0 disruptions: 1 of 3 healthy, 2 desired; the pod is not ready, and the unhealthyPodEvictionPolicy is not AlwaysAllow",
		},
		{
			"an unready pod is held by a budget that desires no pod and has none", notReady,
			budgets{exhausted("web", withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy, s.DesiredHealthy = 0, 0 }))}, drain.ReasonBudget,
			"budget shop/web allows 0 disruptions: 0 of 3 healthy, 0 desired; the pod is not ready, and the unhealthyPodEvictionPolicy is not AlwaysAllow",
		},
		{
			"an unready pod is evicted if the budget always allows it", notReady,
			budgets{exhausted("web", alwaysAllow, withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy = 1 }))}, drain.ReasonEvict, "",
		},
		{"a ready pod is held although the budget always allows unready pods", nil, budgets{exhausted("web", alwaysAllow)}, drain.ReasonBudget, usual},
		{
			"a budget with an outdated status holds", nil, budgets{newBudget("web", 1, func(b *policyv1.PodDisruptionBudget) { b.Generation = 4 })},
			drain.ReasonBudget, "budget shop/web was changed, and its status is older",
		},
		{
			"a budget without a status has the reason", nil, budgets{exhausted("web", syncFailed)},
			drain.ReasonBudget, "budget shop/web has no status: found no controller ref for pod",
		},
		{
			"a negative number allows nothing", nil, budgets{exhausted("web", withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.DisruptionsAllowed = -1 }))},
			drain.ReasonBudget, "budget shop/web allows 0 disruptions: 2 of 3 healthy, 2 desired",
		},
		{
			"a budget of all pods never allows anything", nil, budgets{newBudget("web", 0)}, drain.ReasonBudgetNever,
			"budget shop/web never allows a disruption of so few pods, minAvailable is 3: 3 of 3 healthy, 3 desired",
		},
		{
			"a budget that allows no unavailable pod never allows a disruption", nil, budgets{exhausted("web", maxUnavailable(intstr.FromInt32(0)))}, drain.ReasonBudgetNever,
			"budget shop/web never allows a disruption, maxUnavailable is 0: 2 of 3 healthy, 2 desired",
		},
		{
			"several budgets hold, and the message names all", nil, budgets{newBudget("web", 1), newBudget("all", 1, selecting(&metav1.LabelSelector{}))},
			drain.ReasonBudgets, "budgets shop/all and shop/web select the pod; the API server evicts no pod with several budgets",
		},
		{"two copies of a budget do not overlap", nil, budgets{newBudget("web", 1), nil, newBudget("web", 1)}, drain.ReasonEvict, ""},
		{"as many evictions in progress as the API server allows", nil, budgets{newBudget("web", 1, underWay(2000))}, drain.ReasonEvict, ""},
		{"a budget with too many evictions in progress allows nothing", nil, budgets{newBudget("web", 1, underWay(2001))}, drain.ReasonBudget, "budget shop/web has 2001 evictions in progress"},
		{"the condition InsufficientPods is no failure of the status", nil, budgets{exhausted("web", condition(metav1.ConditionFalse, policyv1.InsufficientPodsReason))}, drain.ReasonBudget, usual},
		{"a failure of the status that is over", nil, budgets{exhausted("web", condition(metav1.ConditionTrue, policyv1.SyncFailedReason))}, drain.ReasonBudget, usual},
		{"a pod of unknown readiness is unready", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionUnknown }, budgets{exhausted("web")}, drain.ReasonEvict, ""},
		{"one percent may be unavailable", nil, budgets{exhausted("web", maxUnavailable(intstr.FromString("1%")))}, drain.ReasonBudget, usual},
		{"zero percent may be unavailable", nil, budgets{exhausted("web", maxUnavailable(intstr.FromString("0%")))}, drain.ReasonBudgetNever, "budget shop/web never allows a disruption, maxUnavailable is 0%: 2 of 3 healthy, 2 desired"},
		{"all must be available", nil, budgets{exhausted("web", minAvailable(intstr.FromString("100%")))}, drain.ReasonBudgetNever, "budget shop/web never allows a disruption, minAvailable is 100%: 2 of 3 healthy, 2 desired"},
		{"most must be available", nil, budgets{exhausted("web", minAvailable(intstr.FromString("99%")))}, drain.ReasonBudget, usual},
		{"a percentage that rounds up to all pods", nil, budgets{exhausted("web", minAvailable(intstr.FromString("90%")), desired(3))}, drain.ReasonBudgetNever, "budget shop/web never allows a disruption of so few pods, minAvailable is 90%: 2 of 3 healthy, 3 desired"},
		{"an invalid number", nil, budgets{exhausted("web", minAvailable(intstr.FromString("many")))}, drain.ReasonBudget, usual},
		{"all are healthy and an eviction is in progress", nil, budgets{exhausted("web", underWay(1), withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy = 3 }))}, drain.ReasonBudget, "budget shop/web allows 0 disruptions: 3 of 3 healthy, 2 desired"},
		{"all are healthy and nothing is allowed", nil, budgets{exhausted("web", withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy = 3 }))}, drain.ReasonBudgetNever, "budget shop/web never allows a disruption of so few pods, minAvailable is 2: 3 of 3 healthy, 2 desired"},
		{"a budget without pods", nil, budgets{exhausted("web", desired(3), withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.ExpectedPods = 0 }))}, drain.ReasonBudget, "budget shop/web allows 0 disruptions: 2 of 0 healthy, 3 desired"},
		{"a budget of all pods with an outdated status", nil, budgets{newBudget("web", 0, func(b *policyv1.PodDisruptionBudget) { b.Generation++ })}, drain.ReasonBudget, "budget shop/web was changed, and its status is older"},
		{"a budget of all pods without a status", nil, budgets{newBudget("web", 0, syncFailed)}, drain.ReasonBudget, "budget shop/web has no status: found no controller ref for pod"},
		{"a surge of pods allows a disruption", nil, budgets{newBudget("web", 1, maxUnavailable(intstr.FromInt32(0)))}, drain.ReasonEvict, ""},
		{
			"of two copies the newer one counts", nil, budgets{newBudget("web", 1), exhausted("web", func(b *policyv1.PodDisruptionBudget) { b.ResourceVersion = "10" })},
			drain.ReasonBudget, usual,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := newPod("a")
			if tt.edit != nil {
				tt.edit(pod)
			}
			seen := observed(pod)
			seen.Budgets = drain.All(tt.budgets...)
			plan := drain.Decide(seen, drain.Policy{}, now)
			row := plan.Rows[0]
			require.Equal(t, []any{tt.reason, tt.message}, []any{row.Reason, row.Message})
			require.NotContains(t, plan.NotEvaluated, drain.SourceBudgets)
			if tt.reason == drain.ReasonEvict {
				require.Equal(t, drain.Evict, row.Action)
				require.Empty(t, row.Budgets)
			} else {
				require.Equal(t, drain.Wait, row.Action)
				require.Equal(t, now.Add(time.Minute), row.Until)
				require.NotEmpty(t, row.Budgets)
			}
			slices.Reverse(seen.Budgets.Items)
			require.Empty(t, cmp.Diff(plan, drain.Decide(seen, drain.Policy{}, now)), "the order of budgets does not matter")

			seen.Budgets.Complete = false
			require.Equal(t, tt.reason, drain.Decide(seen, drain.Policy{}, now).Rows[0].Reason, "an incomplete list counts too")
			force := drain.Policy{EscalateFrom: now, Ladder: drain.Ladder{{Action: drain.IgnoreBudgets}}}
			require.Equal(t, drain.Delete, drain.Decide(seen, force, now).Rows[0].Action, "a deletion ignores budgets")
		})
	}
}

// withBudgets returns a response with these budgets.
func withBudgets(r drain.Response, budgets string) drain.Response {
	r.Budgets = budgets
	return r
}

func TestStep_Budget_IsSpentOnce(t *testing.T) {
	in := observed(newPod("a", withPriority(100)), newPod("b"), newPod("c"), newPod("d", withPriority(-5)), newPod("e", notReady))
	in.Budgets = drain.All(newBudget("web", 2))
	s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
	require.Equal(t, "a wait DisruptionBudget, b evict Evictable, c wait DisruptionBudget, d evict Evictable, e evict Evictable", rows(plan),
		"pods of the lowest priority are evicted first, and an unready pod uses no budget")
	held := plan.Rows[0]
	require.Equal(t, "budget shop/web allows 2 disruptions: 3 of 3 healthy, 1 desired; already used for other pods", held.Message)
	require.Equal(t, []drain.Budget{{Namespace: "shop", Name: "web", Allowed: 2, Healthy: 3, Desired: 1, Expected: 3}}, held.Budgets)
	require.Equal(t, now, held.Since)

	t.Run("an accepted eviction is counted once", func(t *testing.T) {
		for _, row := range plan.Rows {
			if row.Action == drain.Evict {
				in.Results = append(in.Results, drain.Result{Row: row})
			}
		}
		next, plan := drain.Step(s, in, drain.Policy{}, now.Add(time.Second))
		require.Equal(t, "a wait DisruptionBudget, b wait Terminating, c wait DisruptionBudget, d wait Terminating, e wait Terminating", rows(plan))
		require.Equal(t, now, plan.Rows[0].Since, "the wait continues")

		in.Results = nil
		seen := in
		seen.Pods = drain.All(newPod("b", terminating(time.Minute, 60)), newPod("c"))
		_, plan = drain.Step(next, seen, drain.Policy{}, now.Add(time.Second))
		require.Equal(t, "b wait Terminating, c evict Evictable", rows(plan), "two are allowed and one is in progress")
		seen.Budgets = drain.All(newBudget("web", 1))
		next.Responses["uid-b"] = withBudgets(next.Responses["uid-b"], "web@7")
		_, plan = drain.Step(next, seen, drain.Policy{}, now.Add(time.Second))
		require.Equal(t, "b wait Terminating, c wait DisruptionBudget", rows(plan), "one is allowed, and the pod is newer than the budget")

		in.Budgets = drain.All(newBudget("web", 1, func(b *policyv1.PodDisruptionBudget) { b.ResourceVersion = "8" }))
		_, plan = drain.Step(next, in, drain.Policy{}, now.Add(2*time.Second))
		require.Equal(t, "a wait DisruptionBudget, b wait Terminating, c evict Evictable, d wait Terminating, e wait Terminating", rows(plan))
	})
	t.Run("an eviction that uses no budget is not counted", func(t *testing.T) {
		in := observed(newPod("a", notReady), newPod("b"))
		in.Budgets = drain.All(newBudget("web", 1))
		s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
		in.Results = []drain.Result{{Row: plan.Rows[0]}}
		_, plan = drain.Step(s, in, drain.Policy{}, now)
		require.Equal(t, "a wait Terminating, b evict Evictable", rows(plan))
	})
	t.Run("a held row keeps its message and has no grace period", func(t *testing.T) {
		in := observed(newPod("a", func(p *corev1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "maybe"} }))
		in.Budgets = drain.All(exhausted("web"))
		row := drain.Decide(in, drain.Policy{Grace: ptr.To(time.Second), DoNotDisrupt: true}, now).Rows[0]
		require.Equal(t, drain.ReasonBudget, row.Reason)
		require.Contains(t, row.Message, "budget shop/web allows 0 disruptions")
		require.Contains(t, row.Message, "maybe")
		require.Nil(t, row.Grace)
	})
	t.Run("a message names some of many budgets", func(t *testing.T) {
		in := observed(newPod("a"))
		for i := range 1000 {
			in.Budgets.Items = append(in.Budgets.Items, newBudget(fmt.Sprintf("b%03d", i), 1))
		}
		require.Equal(t, "budgets shop/b000 and shop/b001 and shop/b002 and shop/b003 and shop/b004 and 995 more select the pod; the API server evicts no pod with several budgets",
			drain.Decide(in, drain.Policy{}, now).Rows[0].Message)
	})
	t.Run("budgets of the same name in several namespaces", func(t *testing.T) {
		in := observed(newPod("a"), newPod("b", func(p *corev1.Pod) { p.Namespace = "shop-2" }))
		in.Budgets = drain.All(newBudget("web", 1), exhausted("web", func(b *policyv1.PodDisruptionBudget) { b.Namespace = "shop-2" }))
		require.Equal(t, "a evict Evictable, b wait DisruptionBudget", rows(drain.Decide(in, drain.Policy{}, now)))
	})
	t.Run("a budget that never allows a disruption holds only its own pods", func(t *testing.T) {
		in := observed(newPod("a"), newPod("b", func(p *corev1.Pod) { p.Labels["app"] = "db" }))
		in.Budgets = drain.All(newBudget("web", 0))
		require.Equal(t, "a wait BudgetNeverAllows, b evict Evictable", rows(drain.Decide(in, drain.Policy{}, now)))
	})
}

func TestStep_RefusingBudgetChanges_EvictsAtOnce(t *testing.T) {
	changed := func(b *policyv1.PodDisruptionBudget) { b.ResourceVersion = "8" }
	refused := func(err error) (drain.State, drain.Observation) {
		in := observed(newPod("a"))
		in.Budgets = drain.All(newBudget("web", 1))
		s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
		in.Results = []drain.Result{{Row: plan.Rows[0], Err: err}}
		s, plan = drain.Step(s, in, drain.Policy{}, now)
		require.Equal(t, drain.Wait, plan.Rows[0].Action)
		in.Results = nil
		return s, in
	}
	for _, tt := range []struct {
		name    string
		err     error
		budgets drain.List[*policyv1.PodDisruptionBudget]
		action  drain.Action
		reason  machinist.Reason
	}{
		{"the same budget", budgetRefusal("no", 0), drain.All(newBudget("web", 1)), drain.Wait, drain.ReasonBudget},
		{"a changed budget", budgetRefusal("no", 30), drain.All(newBudget("web", 1, changed)), drain.Evict, drain.ReasonEvict},
		{"a changed budget that allows nothing", budgetRefusal("no", 0), drain.All(exhausted("web", changed)), drain.Wait, drain.ReasonBudget},
		{"a deleted budget", budgetRefusal("no", 0), drain.All[*policyv1.PodDisruptionBudget](), drain.Evict, drain.ReasonEvict},
		{"an incomplete list of budgets", budgetRefusal("no", 0), drain.List[*policyv1.PodDisruptionBudget]{}, drain.Wait, drain.ReasonBudget},
		{"a refusal of a busy API server", apierrors.NewTooManyRequests("busy", 7), drain.All(newBudget("web", 1, changed)), drain.Wait, "Unavailable"},
		{"another refusal", errors.New("no"), drain.All(newBudget("web", 1, changed)), drain.Wait, "Refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, in := refused(tt.err)
			in.Budgets = tt.budgets
			_, plan := drain.Step(s, in, drain.Policy{}, now.Add(time.Second))
			require.Equal(t, []any{tt.action, tt.reason}, []any{plan.Rows[0].Action, plan.Rows[0].Reason})
		})
	}
	t.Run("a refusal of a budget has the budget", func(t *testing.T) {
		s, in := refused(budgetRefusal("The disruption budget web needs 2", 0))
		_, plan := drain.Step(s, in, drain.Policy{}, now.Add(time.Second))
		require.Equal(t, "web", plan.Rows[0].Budgets[0].Name)
		require.Equal(t, "The disruption budget web needs 2", plan.Rows[0].Message)
	})
	t.Run("an error because of several budgets has the budgets", func(t *testing.T) {
		s, in := refused(errors.New("This pod has more than one PodDisruptionBudget"))
		in.Budgets = drain.All(newBudget("web", 1), newBudget("all", 1, selecting(&metav1.LabelSelector{})))
		_, plan := drain.Step(s, in, drain.Policy{}, now.Add(time.Second))
		require.Equal(t, drain.ReasonBudgets, plan.Rows[0].Reason)
		require.Len(t, plan.Rows[0].Budgets, 2)
	})
	t.Run("a second budget covers the pod", func(t *testing.T) {
		s, in := refused(budgetRefusal("no", 0))
		in.Budgets = drain.All(newBudget("web", 1), newBudget("web-2", 1))
		_, plan := drain.Step(s, in, drain.Policy{}, now)
		require.Equal(t, "a wait OverlappingBudgets", rows(plan))
	})
	t.Run("a list that becomes complete counts at once", func(t *testing.T) {
		in := observed(newPod("a"))
		s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
		in.Results = []drain.Result{{Row: plan.Rows[0], Err: budgetRefusal("no", 0)}}
		in.Budgets = drain.All(newBudget("web", 1))
		_, plan = drain.Step(s, in, drain.Policy{}, now)
		require.Equal(t, drain.Evict, plan.Rows[0].Action)
	})
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
