// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var budgetScenarios = []scenario{
	{"budgets-for-bare-pods", budgetsForBarePods},
	{"budgets-for-a-replica-set", budgetsForAReplicaSet},
	{"budgets-that-select", budgetsThatSelect},
	{"budgets-for-owners-without-replicas", budgetsForOwnersWithoutReplicas},
	{"budgets-written-by-hand", budgetsWrittenByHand},
}

func budgetsForBarePods(w *world) {
	node := w.node("n")
	app := labeled("app", "a")
	w.budget("early", app, atLeast(intstr.FromInt32(1)))
	w.budgetSays("early", allowing(0))
	w.running("p", node.Name, app, true)
	w.budgetSays("early", func(s policyv1.PodDisruptionBudgetStatus) bool { return s.CurrentHealthy == 1 })
	w.running("q", node.Name, app, true)
	w.budgetSays("early", allowing(1))
	w.did("delete", w.budgetAPI().Delete(w.ctx(), "early", metav1.DeleteOptions{}))
	w.budget("neither", app)
	w.budgetSays("neither", func(s policyv1.PodDisruptionBudgetStatus) bool { return len(s.Conditions) > 0 })
	w.budget("zero", app, atLeast(intstr.FromInt32(0)))
	w.budgetSays("zero", allowing(2))
}

// budgetsForAReplicaSet shows that percentages and maxima refer to the replicas of the owners.
func budgetsForAReplicaSet(w *world) {
	node := w.node("n")
	app := labeled("app", "a")
	// The set adopts the pods, which it has to select and which it does not have to make: there are as many as it wants.
	for i := range 4 {
		w.running(fmt.Sprintf("p-%d", i), node.Name, app, i > 0)
	}
	set, err := w.kube.AppsV1().ReplicaSets(w.ns).Create(w.ctx(), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "rs"}, Spec: appsv1.ReplicaSetSpec{
		Replicas: new(int32(4)), Selector: &metav1.LabelSelector{MatchLabels: app},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: podOf("", "", nil).Spec},
	}}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.know(set)
	for i := range 4 {
		ref := fmt.Appendf(nil, `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"rs","uid":%q,"controller":true,"blockOwnerDeletion":true}]}}`, set.UID)
		p, err := w.podAPI().Patch(w.ctx(), fmt.Sprintf("p-%d", i), types.StrategicMergePatchType, ref, metav1.PatchOptions{})
		require.NoError(w.t, err)
		w.say("owners of %s: %s", p.Name, ownerNames(p))
	}
	for _, b := range []struct {
		name  string
		with  func(*policyv1.PodDisruptionBudgetSpec)
		wants int32
	}{
		{"max-one", unavailable(intstr.FromInt32(1)), 0},
		{"max-two", unavailable(intstr.FromInt32(2)), 1},
		{"max-half", unavailable(intstr.FromString("50%")), 1},
		{"max-third", unavailable(intstr.FromString("30%")), 1},
		{"min-half", atLeast(intstr.FromString("50%")), 1},
		{"min-third", atLeast(intstr.FromString("30%")), 1},
		{"min-two", atLeast(intstr.FromInt32(2)), 1},
		{"max-nine", unavailable(intstr.FromInt32(9)), 3},
		{"max-all", unavailable(intstr.FromString("100%")), 3},
	} {
		w.budget(b.name, app, b.with)
		w.budgetSays(b.name, allowing(b.wants))
		require.NoError(w.t, w.budgetAPI().Delete(w.ctx(), b.name, metav1.DeleteOptions{}))
	}
}

func budgetsThatSelect(w *world) {
	node := w.node("n")
	w.running("a", node.Name, labeled("app", "a"), true)
	w.running("b", node.Name, labeled("app", "b"), true)
	w.running("bare", node.Name, nil, true)
	b := w.budget("everything", nil, atLeast(intstr.FromInt32(3)))
	w.got("budget everything", b, nil, "spec/selector")
	w.budgetSays("everything", func(s policyv1.PodDisruptionBudgetStatus) bool { return s.CurrentHealthy == 3 })
	_ = w.evict("a labelled pod", "a", nil)
	_ = w.evict("a pod without labels", "bare", nil)
	w.did("delete", w.budgetAPI().Delete(w.ctx(), "everything", metav1.DeleteOptions{}))

	b, err := w.budgetAPI().Create(w.ctx(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "nothing"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.FromInt32(3)),
	}}, metav1.CreateOptions{})
	w.got("budget without selector", b, err, "spec/selector")
	w.budgetSays("nothing", func(s policyv1.PodDisruptionBudgetStatus) bool { return len(s.Conditions) > 0 })
	_ = w.evict("a pod that it does not cover", "a", nil)

	w.budget("by-label", labeled("app", "b"), atLeast(intstr.FromInt32(1)))
	w.budgetSays("by-label", func(s policyv1.PodDisruptionBudgetStatus) bool { return s.CurrentHealthy == 1 })
	_, err = w.podAPI().Patch(w.ctx(), "b", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"c"}}}`), metav1.PatchOptions{})
	require.NoError(w.t, err)
	// The budget that the pod left is not asked: the controller counts it again later, at a time that depends on its queue.
	w.running("other", node.Name, labeled("app", "c"), true)
	w.budget("of-the-other", labeled("app", "c"), atLeast(intstr.FromInt32(1)))
	w.budgetSays("of-the-other", func(s policyv1.PodDisruptionBudgetStatus) bool { return s.CurrentHealthy == 2 })
	require.NoError(w.t, w.budgetAPI().Delete(w.ctx(), "of-the-other", metav1.DeleteOptions{}))
	_, err = w.budgetAPI().Patch(w.ctx(), "by-label", types.MergePatchType, []byte(`{"spec":{"selector":{"matchLabels":{"app":"c"}}}}`), metav1.PatchOptions{})
	w.did("another selector", err)
	w.budgetSays("by-label", func(s policyv1.PodDisruptionBudgetStatus) bool { return s.ExpectedPods == 2 })
}

// budgetsWrittenByHand shows that the controller corrects a status that another client writes, and keeps unknown fields.
func budgetsWrittenByHand(w *world) {
	node := w.node("n")
	app := labeled("app", "a")
	w.running("p", node.Name, app, true)
	w.budget("b", app, atLeast(intstr.FromInt32(1)))
	w.budgetSays("b", func(s policyv1.PodDisruptionBudgetStatus) bool { return s.CurrentHealthy == 1 })
	b, err := w.budgetAPI().Patch(w.ctx(), "b", types.MergePatchType, []byte(`{"status":{"disruptionsAllowed":5}}`), metav1.PatchOptions{}, "status")
	w.did("status written by hand", err)
	require.NoError(w.t, err)
	w.say("generation %d", b.Generation)
	w.budgetSays("b", allowing(0))
	_ = w.evict("the pod", "p", nil)
	b, err = w.budgetAPI().Patch(w.ctx(), "b", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"1"}},"spec":{"minAvailable":0},"status":{"disruptionsAllowed":5}}`), metav1.PatchOptions{}, "status")
	w.got("status patch of everything", b, err, "metadata/labels", "spec/minAvailable", "metadata/generation")
	b, err = w.budgetAPI().Patch(w.ctx(), "b", types.MergePatchType, []byte(`{"spec":{"minAvailable":0},"status":{"disruptionsAllowed":5}}`), metav1.PatchOptions{})
	w.got("plain patch of everything", b, err, "spec/minAvailable", "metadata/generation")
	w.budgetSays("b", allowing(1))
	_ = w.evict("the pod", "p", nil)
	w.budgetSays("b", func(s policyv1.PodDisruptionBudgetStatus) bool {
		return s.CurrentHealthy == 0 && len(s.DisruptedPods) == 0
	})
}

// budgetsForOwnersWithoutReplicas shows that a budget which needs the number of desired pods fails if an owner has none. A pod without owner does not count.
func budgetsForOwnersWithoutReplicas(w *world) {
	node, owner := w.node("n"), w.secret("owner")
	app := labeled("app", "a")
	w.running("bare", node.Name, app, true)
	w.budget("max", app, unavailable(intstr.FromInt32(1)))
	w.budgetStatus("max", func(s policyv1.PodDisruptionBudgetStatus) bool { return len(s.Conditions) > 0 && s.CurrentHealthy == 1 })
	_ = w.evict("a pod without owner", "bare", nil)
	w.running("owned", node.Name, app, true, func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{ownerOf("v1", "Secret", owner)} })
	failed := func(s policyv1.PodDisruptionBudgetStatus) bool {
		return len(s.Conditions) > 0 && s.Conditions[0].Reason == policyv1.SyncFailedReason
	}
	w.budgetStatus("max", failed)
	_ = w.evict("a pod without replicas", "owned", nil)
	w.budget("min", app, atLeast(intstr.FromInt32(1)))
	w.budgetStatus("min", allowing(1))
	w.did("delete", w.budgetAPI().Delete(w.ctx(), "min", metav1.DeleteOptions{}))
	w.budget("percent", app, atLeast(intstr.FromString("50%")))
	w.budgetStatus("percent", failed)
	w.did("delete", w.budgetAPI().Delete(w.ctx(), "percent", metav1.DeleteOptions{}))
	w.did("end of the pod", w.podAPI().Delete(w.ctx(), "owned", graceful(0)))
	w.budgetStatus("max", func(s policyv1.PodDisruptionBudgetStatus) bool { return !failed(s) && s.CurrentHealthy == 1 })
}
