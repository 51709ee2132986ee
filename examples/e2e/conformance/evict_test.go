// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var evictionScenarios = []scenario{
	{"evictions-without-budget", evictionsWithoutBudget},
	{"evictions-under-a-budget", evictionsUnderABudget},
	{"evictions-under-two-budgets", evictionsUnderTwoBudgets},
	{"evictions-that-need-no-budget", evictionsThatNeedNoBudget},
	{"evictions-with-preconditions", evictionsWithPreconditions},
	{"evictions-of-unhealthy-pods", evictionsOfUnhealthyPods},
	{"evictions-one-after-the-other", evictionsOneAfterTheOther},
}

func (w *world) evict(what, pod string, opts *metav1.DeleteOptions) error {
	err := w.podAPI().EvictV1(w.ctx(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: pod}, DeleteOptions: opts})
	w.did("eviction of "+what, err)
	return err
}

// podNow records what became of a pod.
func (w *world) podNow(name string) {
	p, err := w.podAPI().Get(w.ctx(), name, metav1.GetOptions{})
	if err != nil {
		w.did("pod "+name, err)
		return
	}
	w.say("pod %s:%s conditions %s", name, w.fields(p, "metadata/deletionTimestamp", "metadata/deletionGracePeriodSeconds", "metadata/generation", "status/phase"), conditionsOf(p))
}

// conditionsOf leaves out the conditions which only the controllers of a real cluster set.
func conditionsOf(p *corev1.Pod) string {
	seen := []string{}
	for _, c := range p.Status.Conditions {
		switch c.Type {
		case corev1.PodReady:
			seen = append(seen, fmt.Sprintf("Ready=%s", c.Status))
		case corev1.DisruptionTarget:
			seen = append(seen, fmt.Sprintf("DisruptionTarget=%s reason=%s message=%q observed=%d", c.Status, c.Reason, c.Message, c.ObservedGeneration))
		}
	}
	return "[" + strings.Join(seen, ", ") + "]"
}

// budgetSays waits until the status of a budget satisfies the test, and records the status.
func (w *world) budgetSays(name string, is func(policyv1.PodDisruptionBudgetStatus) bool) {
	w.t.Helper()
	w.eventually("budget "+name, func() (string, bool) {
		b, err := w.budgetAPI().Get(w.ctx(), name, metav1.GetOptions{})
		if err != nil {
			return outcome(err), false
		}
		return budgetStory(b), b.Status.ObservedGeneration == b.Generation && is(b.Status)
	})
}

// budgetStatus is budgetSays without the demand that the controller has seen the latest generation.
func (w *world) budgetStatus(name string, is func(policyv1.PodDisruptionBudgetStatus) bool) {
	w.t.Helper()
	w.eventually("budget "+name, func() (string, bool) {
		b, err := w.budgetAPI().Get(w.ctx(), name, metav1.GetOptions{})
		if err != nil {
			return outcome(err), false
		}
		return budgetStory(b) + fmt.Sprintf(" observed=%d", b.Status.ObservedGeneration), is(b.Status)
	})
}

func budgetStory(b *policyv1.PodDisruptionBudget) string {
	s := b.Status
	disrupted := []string{}
	for name := range s.DisruptedPods {
		disrupted = append(disrupted, name)
	}
	slices.Sort(disrupted)
	conditions := []string{}
	for _, c := range s.Conditions {
		if c.Reason == policyv1.SyncFailedReason {
			c.Message = "(why it failed)"
		}
		conditions = append(conditions, fmt.Sprintf("%s=%s(%s) message=%q observed=%d", c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration))
	}
	return fmt.Sprintf("allowed=%d healthy=%d desired=%d expected=%d generation=%d disrupted=%v conditions=%v",
		s.DisruptionsAllowed, s.CurrentHealthy, s.DesiredHealthy, s.ExpectedPods, b.Generation, disrupted, conditions)
}

func allowing(n int32) func(policyv1.PodDisruptionBudgetStatus) bool {
	return func(s policyv1.PodDisruptionBudgetStatus) bool {
		return s.DisruptionsAllowed == n && len(s.DisruptedPods) == 0
	}
}

func evictionsWithoutBudget(w *world) {
	node := w.node("n")
	w.running("p", node.Name, labeled("app", "p"), true)
	_ = w.evict("a pod that is not there", "missing", nil)
	_ = w.evict("a pod, dry", "p", &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	w.podNow("p")
	_ = w.evict("a pod", "p", nil)
	w.podNow("p")
	_ = w.evict("a pod that is going", "p", nil)
	w.podNow("p")
	_ = w.evict("a pod that is going, with less grace", "p", &metav1.DeleteOptions{GracePeriodSeconds: new(int64(3))})
	w.podNow("p")
	w.running("q", node.Name, nil, true)
	_ = w.evict("a pod with its grace", "q", &metav1.DeleteOptions{GracePeriodSeconds: new(int64(7))})
	w.podNow("q")
	w.running("r", node.Name, nil, true)
	_ = w.evict("a pod without grace", "r", &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	w.podNow("r")
	w.running("f", node.Name, nil, true, func(p *corev1.Pod) { p.Finalizers = hold("a") })
	_ = w.evict("a pod with finalizer, without grace", "f", &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	w.podNow("f")
	_, err := w.podAPI().Patch(w.ctx(), "f", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(w.t, err)
	w.podNow("f")
	err = w.podAPI().EvictV1(w.ctx(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "q"}})
	w.did("eviction in another namespace", err)
}

func evictionsUnderABudget(w *world) {
	node := w.node("n")
	app := labeled("app", "a")
	for i := range 3 {
		w.running(fmt.Sprintf("p-%d", i), node.Name, app, true)
	}
	w.budget("b", app, atLeast(intstr.FromInt32(2)))
	w.budgetSays("b", allowing(1))
	_ = w.evict("a pod, dry", "p-0", &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	w.budgetSays("b", allowing(1))
	w.podNow("p-0")
	_ = w.evict("a pod that may go", "p-0", nil)
	w.podNow("p-0")
	w.budgetSays("b", allowing(0))
	_ = w.evict("a pod that must stay", "p-1", nil)
	_ = w.evict("a pod that must stay, dry", "p-1", &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	w.podNow("p-1")
	_ = w.evict("the pod that is going", "p-0", nil)
	w.did("its end", w.podAPI().Delete(w.ctx(), "p-0", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	w.budgetSays("b", func(s policyv1.PodDisruptionBudgetStatus) bool { return s.ExpectedPods == 2 })
	w.running("p-3", node.Name, app, true)
	w.budgetSays("b", allowing(1))
	w.did("delete of a pod, which no budget forbids", w.podAPI().Delete(w.ctx(), "p-1", metav1.DeleteOptions{}))
	w.budgetSays("b", allowing(0))
}

func evictionsUnderTwoBudgets(w *world) {
	node := w.node("n")
	labels := map[string]string{"app": "a", "tier": "t"}
	w.running("p", node.Name, labels, true)
	w.running("q", node.Name, labels, true)
	w.budget("b", labeled("app", "a"), atLeast(intstr.FromInt32(0)))
	w.budget("c", labeled("tier", "t"), atLeast(intstr.FromInt32(0)))
	w.budgetSays("b", allowing(2))
	w.budgetSays("c", allowing(2))
	_ = w.evict("a pod of two budgets", "p", nil)
	_ = w.evict("a pod of two budgets, dry", "p", &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	w.podNow("p")
	w.budgetSays("b", allowing(2))
	w.did("delete of a budget", w.budgetAPI().Delete(w.ctx(), "c", metav1.DeleteOptions{}))
	_ = w.evict("a pod of one budget", "p", nil)
	w.podNow("p")
}

func evictionsThatNeedNoBudget(w *world) {
	node := w.node("n")
	app := labeled("app", "a")
	w.budget("b", app, atLeast(intstr.FromInt32(9)))
	w.pod("pending", node.Name, app)
	w.pod("unbound", "", app)
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		p := w.running(strings.ToLower(string(phase)), node.Name, app, false)
		p.Status.Phase = phase
		_, err := w.podAPI().UpdateStatus(w.ctx(), p, metav1.UpdateOptions{})
		require.NoError(w.t, err)
	}
	w.running("running", node.Name, app, true)
	w.budgetSays("b", func(s policyv1.PodDisruptionBudgetStatus) bool { return s.ExpectedPods == 5 && s.CurrentHealthy == 1 })
	for _, name := range []string{"pending", "unbound", "succeeded", "failed", "running"} {
		_ = w.evict("the "+name+" pod", name, nil)
		w.podNow(name)
	}
	w.budgetSays("b", func(s policyv1.PodDisruptionBudgetStatus) bool { return s.ExpectedPods == 2 })
	_ = w.evict("the pending pod of another incarnation", "pending", metav1.NewPreconditionDeleteOptions(string(otherUID)))
}

func evictionsWithPreconditions(w *world) {
	node := w.node("n")
	app := labeled("app", "a")
	p := w.running("p", node.Name, app, true)
	w.running("q", node.Name, app, true)
	w.budget("b", app, atLeast(intstr.FromInt32(1)))
	w.budgetSays("b", allowing(1))
	_ = w.evict("another incarnation", "p", metav1.NewPreconditionDeleteOptions(string(otherUID)))
	w.budgetSays("b", func(s policyv1.PodDisruptionBudgetStatus) bool {
		return s.DisruptionsAllowed == 0 && s.CurrentHealthy == 1
	})
	w.podNow("p")
	_ = w.evict("this incarnation, after the budget was charged in vain", "p", metav1.NewPreconditionDeleteOptions(string(p.UID)))
	w.podNow("p")

	other := labeled("app", "o")
	o := w.running("o", node.Name, other, true)
	w.running("r", node.Name, other, true)
	w.budget("c", other, atLeast(intstr.FromInt32(1)))
	w.budgetSays("c", allowing(1))
	_ = w.evict("this incarnation and this version, dry", "o", &metav1.DeleteOptions{
		DryRun: []string{metav1.DryRunAll}, Preconditions: &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion},
	})
	_ = w.evict("another incarnation, dry", "o", &metav1.DeleteOptions{
		DryRun: []string{metav1.DryRunAll}, Preconditions: &metav1.Preconditions{UID: new(otherUID)},
	})
	w.budgetSays("c", allowing(1))
	_ = w.evict("this incarnation and this version", "o", &metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion},
	})
	w.podNow("o")

	w.running("s", node.Name, nil, true)
	_ = w.evict("another version of a pod without budget", "s", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}})
	w.podNow("s")
}

func evictionsOfUnhealthyPods(w *world) {
	node := w.node("n")
	play := func(app string, policy *policyv1.UnhealthyPodEvictionPolicyType, atLeastHealthy int32, healthy, unhealthy int) {
		labels := labeled("app", app)
		for i := range healthy {
			w.running(fmt.Sprintf("%s-up-%d", app, i), node.Name, labels, true)
		}
		for i := range unhealthy {
			w.running(fmt.Sprintf("%s-down-%d", app, i), node.Name, labels, false)
		}
		w.budget(app, labels, atLeast(intstr.FromInt32(atLeastHealthy)), func(spec *policyv1.PodDisruptionBudgetSpec) { spec.UnhealthyPodEvictionPolicy = policy })
		w.budgetSays(app, func(s policyv1.PodDisruptionBudgetStatus) bool {
			return int(s.CurrentHealthy) == healthy && int(s.ExpectedPods) == healthy+unhealthy
		})
		_ = w.evict(app+": an unhealthy pod", app+"-down-0", nil)
		w.podNow(app + "-down-0")
		w.budgetSays(app, func(s policyv1.PodDisruptionBudgetStatus) bool { return len(s.DisruptedPods) == 0 })
	}
	play("default-enough", nil, 2, 2, 1)
	play("default-too-few", nil, 2, 1, 1)
	play("default-none-wanted", nil, 0, 0, 1)
	healthyBudget, always := policyv1.IfHealthyBudget, policyv1.AlwaysAllow
	play("ifhealthy-enough", &healthyBudget, 1, 1, 1)
	play("ifhealthy-too-few", &healthyBudget, 2, 1, 1)
	play("always-too-few", &always, 2, 1, 1)
}

// evictionsOneAfterTheOther shows that each eviction decreases the allowance, also before the controller has seen it.
func evictionsOneAfterTheOther(w *world) {
	node := w.node("n")
	app := labeled("app", "a")
	for i := range 5 {
		w.running(fmt.Sprintf("p-%d", i), node.Name, app, true)
	}
	w.budget("b", app, atLeast(intstr.FromInt32(3)))
	w.budgetSays("b", allowing(2))
	for i := range 4 {
		_ = w.evict(fmt.Sprintf("pod %d", i), fmt.Sprintf("p-%d", i), nil)
	}
	w.budgetSays("b", allowing(0))
}
