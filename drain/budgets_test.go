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
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// newBudget returns a budget of the pods of newPod that allows so many disruptions of
// three healthy pods, changed by edits.
func newBudget(name string, allowed int32, edits ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: "7", Generation: 3},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(3 - allowed)),
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
		b.Spec.MinAvailable = new(intstr.FromInt32(2))
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
	b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
}

func syncFailed(b *policyv1.PodDisruptionBudget) {
	b.Status.Conditions = []metav1.Condition{{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
		Message: "found no controller\nref for pod",
	}}
}

func notReady(p *corev1.Pod) { p.Status.Conditions = nil }

func TestBudgetsOfOnePod(t *testing.T) {
	type budgets = []*policyv1.PodDisruptionBudget
	in := func(key string, op metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
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
		{"D-4 a budget that allows nothing holds, and is named with its numbers", nil, budgets{exhausted("web")}, drain.ReasonBudget, usual},
		{"a budget without selector covers nothing", nil, budgets{exhausted("web", selecting(nil))}, drain.ReasonEvict, ""},
		{"a budget with an empty selector covers all", nil, budgets{exhausted("web", selecting(&metav1.LabelSelector{}))}, drain.ReasonBudget, usual},
		{"and also a pod without labels", func(p *corev1.Pod) { p.Labels = nil }, budgets{exhausted("web", selecting(&metav1.LabelSelector{}))}, drain.ReasonBudget, usual},
		{"a budget of other pods does not hold", func(p *corev1.Pod) { p.Labels["app"] = "db" }, budgets{exhausted("web")}, drain.ReasonEvict, ""},
		{"a label with an empty value is not a missing one", nil, budgets{exhausted("web", selecting(&metav1.LabelSelector{MatchLabels: map[string]string{"tier": ""}}))}, drain.ReasonEvict, ""},
		{"a budget of another namespace does not hold", nil, budgets{exhausted("web", func(b *policyv1.PodDisruptionBudget) { b.Namespace = "shop-2" })}, drain.ReasonEvict, ""},
		{"a selector may be an expression", nil, budgets{exhausted("web", selecting(in("app", metav1.LabelSelectorOpIn, "api", "web")))}, drain.ReasonBudget, usual},
		{"that does not match", nil, budgets{exhausted("web", selecting(in("app", metav1.LabelSelectorOpDoesNotExist)))}, drain.ReasonEvict, ""},
		{"a selector that cannot be read covers nothing", nil, budgets{exhausted("web", selecting(in("app", metav1.LabelSelectorOpIn)))}, drain.ReasonEvict, ""},
		{"a pod that is not running yet is in nobody's way", inPhase(corev1.PodPending), budgets{exhausted("web")}, drain.ReasonEvict, ""},
		{"a pod that is not ready is evicted if enough others are", notReady, budgets{newBudget("web", 0)}, drain.ReasonEvict, ""},
		{
			"a pod that is not ready is held if the others do not suffice", notReady,
			budgets{exhausted("web", withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy = 1 }))}, drain.ReasonBudget,
			"budget shop/web allows 0 disruptions: 1 of 3 healthy, 2 desired; the pod is not ready, which the budget does not excuse",
		},
		{
			"a pod that is not ready is held by a budget that desires nobody and has nobody", notReady,
			budgets{exhausted("web", withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy, s.DesiredHealthy = 0, 0 }))}, drain.ReasonBudget,
			"budget shop/web allows 0 disruptions: 0 of 3 healthy, 0 desired; the pod is not ready, which the budget does not excuse",
		},
		{
			"unless the budget always allows it", notReady,
			budgets{exhausted("web", alwaysAllow, withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy = 1 }))}, drain.ReasonEvict, "",
		},
		{"a ready pod is not excused by that", nil, budgets{exhausted("web", alwaysAllow)}, drain.ReasonBudget, usual},
		{
			"a budget that was changed is waited for, whatever its numbers", nil, budgets{newBudget("web", 1, func(b *policyv1.PodDisruptionBudget) { b.Generation = 4 })},
			drain.ReasonBudget, "budget shop/web was changed, and its status is older",
		},
		{
			"a budget that cannot be worked out says why", nil, budgets{exhausted("web", syncFailed)},
			drain.ReasonBudget, "budget shop/web has no status: found no controller ref for pod",
		},
		{
			"a negative number allows nothing", nil, budgets{exhausted("web", withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.DisruptionsAllowed = -1 }))},
			drain.ReasonBudget, "budget shop/web allows 0 disruptions: 2 of 3 healthy, 2 desired",
		},
		{
			"a budget with too many evictions under way allows nothing", nil,
			budgets{newBudget("web", 1, withStatus(func(s *policyv1.PodDisruptionBudgetStatus) {
				s.DisruptedPods = map[string]metav1.Time{}
				for i := range 2001 {
					s.DisruptedPods[fmt.Sprint(i)] = metav1.Now()
				}
			}))}, drain.ReasonBudget, "budget shop/web has 2001 evictions under way",
		},
		{
			"B3 A10 DD-18 a budget of all pods never allows anything", nil, budgets{newBudget("web", 0)}, drain.ReasonBudgetNever,
			"budget shop/web never allows a disruption of so few pods, minAvailable is 3: 3 of 3 healthy, 3 desired",
		},
		{
			"DD-72 nor does one for which nobody may be unavailable", nil, budgets{exhausted("web", maxUnavailable(intstr.FromInt32(0)))}, drain.ReasonBudgetNever,
			"budget shop/web never allows a disruption, maxUnavailable is 0: 2 of 3 healthy, 2 desired",
		},
		{
			"D-6 DD-17 budgets that overlap are all named, and not asked", nil, budgets{newBudget("web", 1), newBudget("all", 1, selecting(&metav1.LabelSelector{}))},
			drain.ReasonBudgets, "budgets shop/all and shop/web cover it together, which the API server refuses",
		},
		{"two copies of a budget do not overlap", nil, budgets{newBudget("web", 1), nil, newBudget("web", 1)}, drain.ReasonEvict, ""},
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
				require.Equal(t, drain.Evict, row.Verdict)
				require.Empty(t, row.Budgets)
			} else {
				require.Equal(t, drain.Wait, row.Verdict)
				require.Equal(t, now.Add(time.Minute), row.Until)
				require.NotEmpty(t, row.Budgets)
			}
			slices.Reverse(seen.Budgets.Items)
			require.Empty(t, cmp.Diff(plan, drain.Decide(seen, drain.Policy{}, now)), "the order of budgets does not matter")

			seen.Budgets.Complete = false
			require.Equal(t, tt.reason, drain.Decide(seen, drain.Policy{}, now).Rows[0].Reason, "what is known counts though it may not be all")
			force := drain.Policy{EscalateFrom: now, Ladder: drain.Ladder{{Action: drain.IgnoreBudgets}}}
			require.Equal(t, drain.Delete, drain.Decide(seen, force, now).Rows[0].Verdict, "force asks no budget")
		})
	}
}

func TestD4WithoutBudgetsTheDrainSaysSo(t *testing.T) {
	plan := drain.Decide(observed(newPod("a")), drain.Policy{}, now)
	require.Equal(t, drain.Evict, plan.Rows[0].Verdict)
	require.Contains(t, plan.NotEvaluated, drain.SourceBudgets)
}

func TestNeverAllows(t *testing.T) {
	percent := intstr.FromString
	for _, tt := range []struct {
		name   string
		budget *policyv1.PodDisruptionBudget
		never  bool
	}{
		{"no budget", nil, false},
		{"an empty budget", &policyv1.PodDisruptionBudget{}, false},
		{"a budget that waits for a pod to become healthy", exhausted("web"), false},
		{"none may be unavailable", exhausted("web", maxUnavailable(intstr.FromInt32(0))), true},
		{"not even a share of nothing", exhausted("web", maxUnavailable(percent("0%"))), true},
		{"one may be unavailable", exhausted("web", maxUnavailable(intstr.FromInt32(1))), false},
		{"a small share is one at least", exhausted("web", maxUnavailable(percent("1%"))), false},
		{"all must be available", exhausted("web", minAvailable(percent("100%"))), true},
		{"most must be available", exhausted("web", minAvailable(percent("99%"))), false},
		{"a share that rounds up to all of them", exhausted("web", minAvailable(percent("90%")), withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.DesiredHealthy = 3 })), true},
		{"as many must be available as there are", exhausted("web", minAvailable(intstr.FromInt32(3)), withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.DesiredHealthy = 3 })), true},
		{"what cannot be read", exhausted("web", minAvailable(percent("many"))), false},
		{"A10 all are healthy, none is disrupted and still nothing is allowed", exhausted("web", withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy = 3 })), true},
		{"A10 an eviction is under way", exhausted("web", withStatus(func(s *policyv1.PodDisruptionBudgetStatus) {
			s.CurrentHealthy, s.DisruptedPods = 3, map[string]metav1.Time{"a": metav1.Now()}
		})), false},
		{"A10 a budget without pods", exhausted("web", withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.ExpectedPods = 0 })), false},
		{"A10 a budget that was changed", newBudget("web", 0, func(b *policyv1.PodDisruptionBudget) { b.Generation++ }), false},
		{"A10 a budget whose numbers are not worked out", newBudget("web", 0, syncFailed), false},
		{"a surge of pods makes room", newBudget("web", 1, maxUnavailable(intstr.FromInt32(0))), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(newPod("a"))
			in.Budgets = drain.All(tt.budget)
			require.Equal(t, tt.never, drain.Decide(in, drain.Policy{}, now).Rows[0].Reason == drain.ReasonBudgetNever)
		})
	}
}

func budgetVerdicts(plan drain.Decision) string {
	var s []string
	for _, row := range plan.Rows {
		s = append(s, row.Name+" "+string(row.Verdict)+" "+string(row.Reason))
	}
	return strings.Join(s, ", ")
}

// withBudgets returns what is remembered of a pod that was asked under these budgets.
func withBudgets(answer drain.Answer, budgets string) drain.Answer {
	answer.Budgets = budgets
	return answer
}

func TestABudgetIsSpentOncePerRound(t *testing.T) {
	in := observed(newPod("a", withPriority(100)), newPod("b"), newPod("c"), newPod("d", withPriority(-5)), newPod("e", notReady))
	in.Budgets = drain.All(newBudget("web", 2))
	s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
	require.Equal(t, "a wait DisruptionBudget, b evict Evictable, c wait DisruptionBudget, d evict Evictable, e evict Evictable", budgetVerdicts(plan),
		"the pods of the lowest priority go first, and one that is not ready costs nothing")
	held := plan.Rows[0]
	require.Equal(t, "budget shop/web allows 2 disruptions: 3 of 3 healthy, 1 desired; other pods take that", held.Message)
	require.Equal(t, []drain.Budget{{Namespace: "shop", Name: "web", Allowed: 2, Healthy: 3, Desired: 1, Expected: 3}}, held.Budgets)
	require.Equal(t, now, held.Since)

	t.Run("what was accepted is not spent again before it is seen", func(t *testing.T) {
		for _, row := range plan.Rows {
			if row.Verdict == drain.Evict {
				in.Results = append(in.Results, drain.Result{Row: row})
			}
		}
		next, plan := drain.Step(s, in, drain.Policy{}, now.Add(time.Second))
		require.Equal(t, "a wait DisruptionBudget, b wait Terminating, c wait DisruptionBudget, d wait Terminating, e wait Terminating", budgetVerdicts(plan))
		require.Equal(t, now, plan.Rows[0].Since, "it is still the same wait")

		in.Results = nil
		seen := in
		seen.Pods = drain.All(newPod("b", leaving(time.Minute, 60)), newPod("c"))
		_, plan = drain.Step(next, seen, drain.Policy{}, now.Add(time.Second))
		require.Equal(t, "b wait Terminating, c evict Evictable", budgetVerdicts(plan), "two were allowed and one is on its way")
		seen.Budgets = drain.All(newBudget("web", 1))
		next.Answers["uid-b"] = withBudgets(next.Answers["uid-b"], "web@7")
		_, plan = drain.Step(next, seen, drain.Policy{}, now.Add(time.Second))
		require.Equal(t, "b wait Terminating, c wait DisruptionBudget", budgetVerdicts(plan), "one was allowed, and the pod is seen earlier than the budget")

		in.Budgets = drain.All(newBudget("web", 1, func(b *policyv1.PodDisruptionBudget) { b.ResourceVersion = "8" }))
		_, plan = drain.Step(next, in, drain.Policy{}, now.Add(2*time.Second))
		require.Equal(t, "a wait DisruptionBudget, b wait Terminating, c evict Evictable, d wait Terminating, e wait Terminating", budgetVerdicts(plan))
	})
	t.Run("what cost nothing takes nothing from the others", func(t *testing.T) {
		in := observed(newPod("a", notReady), newPod("b"))
		in.Budgets = drain.All(newBudget("web", 1))
		s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
		in.Results = []drain.Result{{Row: plan.Rows[0]}}
		_, plan = drain.Step(s, in, drain.Policy{}, now)
		require.Equal(t, "a wait Terminating, b evict Evictable", budgetVerdicts(plan))
	})
	t.Run("what is held keeps what else is to be said, and asks for no grace", func(t *testing.T) {
		in := observed(newPod("a", func(p *corev1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "maybe"} }))
		in.Budgets = drain.All(exhausted("web"))
		row := drain.Decide(in, drain.Policy{MaxGrace: time.Second, DoNotDisrupt: true}, now).Rows[0]
		require.Equal(t, drain.ReasonBudget, row.Reason)
		require.Contains(t, row.Message, "budget shop/web allows 0 disruptions")
		require.Contains(t, row.Message, "maybe")
		require.Nil(t, row.Grace)
	})
	t.Run("DD-18 a budget that never allows anything holds its own pods alone", func(t *testing.T) {
		in := observed(newPod("a"), newPod("b", func(p *corev1.Pod) { p.Labels["app"] = "db" }))
		in.Budgets = drain.All(newBudget("web", 0))
		require.Equal(t, "a wait BudgetNeverAllows, b evict Evictable", budgetVerdicts(drain.Decide(in, drain.Policy{}, now)))
	})
}

func TestB3ARefusalIsOverWhenItsBudgetChanges(t *testing.T) {
	changed := func(b *policyv1.PodDisruptionBudget) { b.ResourceVersion = "8" }
	refused := func(err error) (drain.State, drain.Observation) {
		in := observed(newPod("a"))
		in.Budgets = drain.All(newBudget("web", 1))
		s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
		in.Results = []drain.Result{{Row: plan.Rows[0], Err: err}}
		s, plan = drain.Step(s, in, drain.Policy{}, now)
		require.Equal(t, drain.Wait, plan.Rows[0].Verdict)
		in.Results = nil
		return s, in
	}
	for _, tt := range []struct {
		name    string
		err     error
		budgets drain.List[*policyv1.PodDisruptionBudget]
		verdict drain.Verdict
		reason  machinist.Reason
	}{
		{"a budget that is the same refuses the same", answerRefusal("no", 0), drain.All(newBudget("web", 1)), drain.Wait, drain.ReasonBudget},
		{"a budget that changed is asked at once", answerRefusal("no", 30), drain.All(newBudget("web", 1, changed)), drain.Evict, drain.ReasonEvict},
		{"a budget that changed and allows nothing is not asked", answerRefusal("no", 0), drain.All(exhausted("web", changed)), drain.Wait, drain.ReasonBudget},
		{"a budget that is gone does not refuse", answerRefusal("no", 0), drain.All[*policyv1.PodDisruptionBudget](), drain.Evict, drain.ReasonEvict},
		{"a source that is gone tells nothing", answerRefusal("no", 0), drain.List[*policyv1.PodDisruptionBudget]{}, drain.Wait, drain.ReasonBudget},
		{"a busy server is not less busy for it", apierrors.NewTooManyRequests("busy", 7), drain.All(newBudget("web", 1, changed)), drain.Wait, drain.ReasonUnavailable},
		{"another refusal is no business of budgets", errors.New("no"), drain.All(newBudget("web", 1, changed)), drain.Wait, drain.ReasonRefused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, in := refused(tt.err)
			in.Budgets = tt.budgets
			_, plan := drain.Step(s, in, drain.Policy{}, now.Add(time.Second))
			require.Equal(t, []any{tt.verdict, tt.reason}, []any{plan.Rows[0].Verdict, plan.Rows[0].Reason})
		})
	}
	t.Run("a refusal names the budget behind it", func(t *testing.T) {
		s, in := refused(answerRefusal("The disruption budget web needs 2", 0))
		_, plan := drain.Step(s, in, drain.Policy{}, now.Add(time.Second))
		require.Equal(t, "web", plan.Rows[0].Budgets[0].Name)
		require.Equal(t, "The disruption budget web needs 2", plan.Rows[0].Message)
	})
	t.Run("D-6 an error that several budgets explain is explained", func(t *testing.T) {
		s, in := refused(errors.New("This pod has more than one PodDisruptionBudget"))
		in.Budgets = drain.All(newBudget("web", 1), newBudget("all", 1, selecting(&metav1.LabelSelector{})))
		_, plan := drain.Step(s, in, drain.Policy{}, now.Add(time.Second))
		require.Equal(t, drain.ReasonBudgets, plan.Rows[0].Reason)
		require.Len(t, plan.Rows[0].Budgets, 2)
	})
	t.Run("sources that come back are heeded at once", func(t *testing.T) {
		in := observed(newPod("a"))
		s, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
		in.Results = []drain.Result{{Row: plan.Rows[0], Err: answerRefusal("no", 0)}}
		in.Budgets = drain.All(newBudget("web", 1))
		_, plan = drain.Step(s, in, drain.Policy{}, now)
		require.Equal(t, drain.Evict, plan.Rows[0].Verdict)
	})
}

// The API server is the judge: with budgets as they are, it refuses nothing of what a
// plan asks for, and everything that the plan holds for a budget.
func TestPlansSpendBudgetsAsTheAPIServerDoes(t *testing.T) {
	reasons := map[machinist.Reason]int{}
	for seed := range uint64(400) {
		d := rand.New(rand.NewPCG(seed, 11))
		cluster := draintest.New(draintest.Options{Clock: clocktesting.NewFakeClock(now), ManualBudgets: true})
		require.NoError(t, cluster.Add(newNode()))
		for i := range d.IntN(5) {
			require.NoError(t, cluster.Add(randomBudget(d, fmt.Sprintf("budget-%d", i))))
		}
		for i := range d.IntN(12) {
			require.NoError(t, cluster.Add(randomBudgetPod(d, fmt.Sprintf("pod-%02d", i))))
		}
		client := cluster.Client()
		in := observedCluster(t, client)
		plan := drain.Decide(in, drain.Policy{}, now)
		executor := runner.Executor{Client: client, Parallel: 1, Clock: clocktesting.NewFakeClock(now)}
		results, err := executor.Apply(t.Context(), plan)
		require.NoError(t, err)
		for _, result := range results {
			require.NoError(t, result.Err, "seed %d: %s", seed, result.Row)
			reasons[result.Row.Reason]++
		}
		for _, row := range plan.Rows {
			if row.Verdict != drain.Wait || row.Reason == drain.ReasonTerminating {
				continue
			}
			reasons[row.Reason]++
			err := client.CoreV1().Pods(row.Namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: row.Namespace, Name: row.Name}})
			require.Error(t, err, "seed %d: %s", seed, row)
		}
	}
	for _, reason := range []machinist.Reason{drain.ReasonEvict, drain.ReasonBudget, drain.ReasonBudgets, drain.ReasonBudgetNever} {
		require.Positive(t, reasons[reason], "%s was met", reason)
	}
}

func randomBudget(d *rand.Rand, name string) *policyv1.PodDisruptionBudget {
	b := newBudget(name, d.Int32N(4))
	b.ResourceVersion = ""
	b.Spec.Selector = []*metav1.LabelSelector{
		nil, {}, {MatchLabels: map[string]string{"app": "web"}}, {MatchLabels: map[string]string{"app": "db"}}, {MatchLabels: map[string]string{"app": "api"}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web", "db", "api"}}}},
	}[d.IntN(6)]
	if b.Spec.Selector != nil && len(b.Spec.Selector.MatchLabels)+len(b.Spec.Selector.MatchExpressions) == 0 && d.IntN(4) > 0 {
		b.Spec.Selector = nil
	}
	if d.IntN(3) == 0 {
		alwaysAllow(b)
	}
	b.Status.CurrentHealthy, b.Status.DesiredHealthy = d.Int32N(4), d.Int32N(4)
	b.Generation = 1
	b.Status.ObservedGeneration = int64(min(1, d.IntN(8)))
	b.Namespace = []string{"shop", "bar"}[d.IntN(2)]
	return b
}

func randomBudgetPod(d *rand.Rand, name string) *corev1.Pod {
	pod := newPod(name, withPriority(d.Int32N(3)))
	pod.ResourceVersion = ""
	pod.Labels["app"] = []string{"web", "db", "api", "cache"}[d.IntN(4)]
	pod.Namespace = []string{"shop", "bar"}[d.IntN(2)]
	if d.IntN(4) == 0 {
		notReady(pod)
	}
	if d.IntN(8) == 0 {
		pod.Status.Phase = corev1.PodPending
	}
	if d.IntN(8) == 0 {
		pod.Labels = nil
	}
	return pod
}

// observedCluster reads the pods of node-1 and all budgets.
func observedCluster(t *testing.T, client kubernetes.Interface) drain.Observation {
	t.Helper()
	pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"})
	require.NoError(t, err)
	budgets, err := client.PolicyV1().PodDisruptionBudgets("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	in := observed()
	in.Budgets = drain.All[*policyv1.PodDisruptionBudget]()
	for i := range pods.Items {
		in.Pods.Items = append(in.Pods.Items, &pods.Items[i])
	}
	for i := range budgets.Items {
		in.Budgets.Items = append(in.Budgets.Items, &budgets.Items[i])
	}
	return in
}

// inNamespace moves a pod to another namespace.
func inNamespace(namespace string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Namespace = namespace }
}

func TestBudgetsOfTheSameNameInSeveralNamespacesAllHold(t *testing.T) {
	in := observed(newPod("a"), newPod("b", inNamespace("shop-2")), newPod("c", inNamespace("shop-3")))
	in.Budgets = drain.All(newBudget("web", 1), exhausted("web", func(b *policyv1.PodDisruptionBudget) { b.Namespace = "shop-2" }))
	require.Equal(t, "a evict Evictable, b wait DisruptionBudget, c evict Evictable", budgetVerdicts(drain.Decide(in, drain.Policy{}, now)))
}

func TestBudgetsAtTheirLimits(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason string) func(*policyv1.PodDisruptionBudget) {
		return func(b *policyv1.PodDisruptionBudget) {
			b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: status, Reason: reason, Message: "why"}}
		}
	}
	underWay := func(n int) func(*policyv1.PodDisruptionBudget) {
		return withStatus(func(s *policyv1.PodDisruptionBudgetStatus) {
			s.DisruptedPods = map[string]metav1.Time{}
			for i := range n {
				s.DisruptedPods[fmt.Sprint(i)] = metav1.Time{Time: now}
			}
		})
	}
	nobodyKnows := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionUnknown }
	fewHealthy := withStatus(func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy = 1 })
	ifHealthy := func(b *policyv1.PodDisruptionBudget) {
		b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.IfHealthyBudget)
	}
	const usual = "budget shop/web allows 0 disruptions: 2 of 3 healthy, 2 desired"
	for _, tt := range []struct {
		name    string
		pod     *corev1.Pod
		budgets []*policyv1.PodDisruptionBudget
		reason  machinist.Reason
		message string
	}{
		{"as many evictions under way as the API server knows", newPod("a"), []*policyv1.PodDisruptionBudget{newBudget("web", 1, underWay(2000))}, drain.ReasonEvict, ""},
		{"too few pods are no failure to count them", newPod("a"), []*policyv1.PodDisruptionBudget{exhausted("web", condition(metav1.ConditionFalse, policyv1.InsufficientPodsReason))}, drain.ReasonBudget, usual},
		{"nor is a failure that is over", newPod("a"), []*policyv1.PodDisruptionBudget{exhausted("web", condition(metav1.ConditionTrue, policyv1.SyncFailedReason))}, drain.ReasonBudget, usual},
		{"a pod of which nobody knows whether it is ready is not", newPod("a", nobodyKnows), []*policyv1.PodDisruptionBudget{exhausted("web")}, drain.ReasonEvict, ""},
		{
			"a pod that is not ready is not excused by a budget that must be healthy", newPod("a", notReady),
			[]*policyv1.PodDisruptionBudget{exhausted("web", ifHealthy, fewHealthy)}, drain.ReasonBudget,
			"budget shop/web allows 0 disruptions: 1 of 3 healthy, 2 desired; the pod is not ready, which the budget does not excuse",
		},
		{
			"of two versions that are as long the later one counts", newPod("a"),
			[]*policyv1.PodDisruptionBudget{exhausted("web"), newBudget("web", 1, func(b *policyv1.PodDisruptionBudget) { b.ResourceVersion = "8" })}, drain.ReasonEvict, "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := observed(tt.pod)
			in.Budgets = drain.All(tt.budgets...)
			row := drain.Decide(in, drain.Policy{}, now).Rows[0]
			require.Equal(t, []any{tt.reason, tt.message}, []any{row.Reason, row.Message})
		})
	}
}

func TestARefusalIsOverWhenAnotherBudgetCoversThePod(t *testing.T) {
	in := observed(newPod("a"))
	in.Budgets = drain.All(newBudget("web", 1), newBudget("web-2", 1))
	in.Results = []drain.Result{{Row: drain.Row{UID: "uid-a", Verdict: drain.Evict, Versions: "web@7"}, Err: answerRefusal("no", 0)}}
	_, plan := drain.Step(drain.State{}, in, drain.Policy{}, now)
	require.Equal(t, "a wait OverlappingBudgets", budgetVerdicts(plan))
}
