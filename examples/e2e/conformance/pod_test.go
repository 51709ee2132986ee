// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stretchr/testify/require"
)

var podScenarios = []scenario{
	{"pods-and-grace", podsAndGrace},
	{"pods-and-bindings", podsAndBindings},
}

func graceful(seconds int64) metav1.DeleteOptions {
	return metav1.DeleteOptions{GracePeriodSeconds: &seconds}
}

func podsAndGrace(w *world) {
	node := w.node("n")
	remove := func(name, what string, opts metav1.DeleteOptions) {
		w.did("pod "+name+": delete "+what, w.podAPI().Delete(w.ctx(), name, opts))
		w.podNow(name)
	}
	p := w.running("p", node.Name, nil, true)
	remove("p", "with its own grace", metav1.DeleteOptions{})
	first, err := w.podAPI().Get(w.ctx(), "p", metav1.GetOptions{})
	require.NoError(w.t, err)
	w.version("the delete", p, first)
	w.say("its end is the grace away: %v", first.DeletionTimestamp.Sub(first.CreationTimestamp.Time).Seconds() >= 30)
	remove("p", "again", metav1.DeleteOptions{})
	remove("p", "with more grace", graceful(60))
	remove("p", "with the same grace", graceful(30))
	same, err := w.podAPI().Get(w.ctx(), "p", metav1.GetOptions{})
	require.NoError(w.t, err)
	w.version("the deletes which changed nothing", first, same)
	remove("p", "with less grace", graceful(10))
	less, err := w.podAPI().Get(w.ctx(), "p", metav1.GetOptions{})
	require.NoError(w.t, err)
	w.say("its end is 20 s earlier: %v", first.DeletionTimestamp.Sub(less.DeletionTimestamp.Time).Seconds() == 20)
	remove("p", "with negative grace", graceful(-1))
	remove("p", "without grace", graceful(0))

	w.running("own", node.Name, nil, true, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(5)) })
	remove("own", "with its own grace", metav1.DeleteOptions{})
	w.running("more", node.Name, nil, true)
	remove("more", "with more grace than its own", graceful(100))
	w.running("none", node.Name, nil, true, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(0)) })
	remove("none", "with its own grace of 0", metav1.DeleteOptions{})
	w.running("negative", node.Name, nil, true, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(-7)) })
	remove("negative", "with its own grace of -7", metav1.DeleteOptions{})
	w.running("asked", node.Name, nil, true)
	remove("asked", "with a grace of -7", graceful(-7))
	w.running("now", node.Name, nil, true)
	remove("now", "without grace", graceful(0))
	w.pod("pending", node.Name, nil)
	remove("pending", "while pending", metav1.DeleteOptions{})
	w.pod("unbound", "", nil)
	remove("unbound", "without node", metav1.DeleteOptions{})
	w.pod("gated", "", nil)
	remove("gated", "without node, with grace", graceful(20))
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		p := w.running("ended", node.Name, nil, false)
		p.Status.Phase = phase
		_, err := w.podAPI().UpdateStatus(w.ctx(), p, metav1.UpdateOptions{})
		require.NoError(w.t, err)
		remove("ended", "when "+string(phase), metav1.DeleteOptions{})
	}
	w.running("dry", node.Name, nil, true)
	remove("dry", "dry", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	w.running("updated", node.Name, nil, true)
	remove("updated", "with its own grace", metav1.DeleteOptions{})
	got, err := w.podAPI().Get(w.ctx(), "updated", metav1.GetOptions{})
	require.NoError(w.t, err)
	got.Labels = labeled("a", "1")
	hasty := got.DeepCopy()
	hasty.DeletionGracePeriodSeconds = new(int64(1))
	_, err = w.podAPI().Update(w.ctx(), hasty, metav1.UpdateOptions{})
	w.did("update of the grace", err)
	got, err = w.podAPI().Update(w.ctx(), got, metav1.UpdateOptions{})
	w.got("update while going", got, err, "metadata/labels", "metadata/deletionGracePeriodSeconds")
	got.Status.Phase = corev1.PodSucceeded
	got, err = w.podAPI().UpdateStatus(w.ctx(), got, metav1.UpdateOptions{})
	w.got("status update while going", got, err, "status/phase")
	remove("updated", "when it has ended", metav1.DeleteOptions{})
}

func podsAndBindings(w *world) {
	node := w.node("n")
	bind := func(what, pod, to string, with ...func(*corev1.Binding)) {
		b := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: pod}, Target: corev1.ObjectReference{Kind: "Node", Name: to}}
		for _, change := range with {
			change(b)
		}
		w.did("binding of "+what, w.podAPI().Bind(w.ctx(), b, metav1.CreateOptions{}))
	}
	p := w.pod("p", "", nil)
	bind("a pod that is not there", "missing", node.Name)
	bind("another incarnation", "p", node.Name, func(b *corev1.Binding) { b.UID = otherUID })
	bind("a pod to nothing", "p", "")
	bind("a pod", "p", node.Name, func(b *corev1.Binding) { b.UID = p.UID })
	got, err := w.podAPI().Get(w.ctx(), "p", metav1.GetOptions{})
	w.say("bound: %s", outcome(err)+w.fields(got, "metadata/generation"))
	w.say("to the node: %v, phase %s", got.Spec.NodeName == node.Name, got.Status.Phase)
	for _, c := range got.Status.Conditions {
		w.say("condition %s=%s reason=%q observed=%d", c.Type, c.Status, c.Reason, c.ObservedGeneration)
	}
	bind("a pod that is bound", "p", node.Name)
	bind("a pod that is bound, elsewhere", "p", w.own("other"))
	w.pod("going", "", nil, func(p *corev1.Pod) { p.Finalizers = hold("a") })
	w.did("delete", w.podAPI().Delete(w.ctx(), "going", metav1.DeleteOptions{}))
	bind("a pod that is going", "going", node.Name)
}
