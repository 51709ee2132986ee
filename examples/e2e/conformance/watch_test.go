// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var watchScenarios = []scenario{
	{"watch-from-a-list", watchFromAList},
	{"watch-with-selector", watchWithSelector},
	{"watch-from-the-start", watchFromTheStart},
	{"watch-of-deletions", watchOfDeletions},
	{"watch-of-the-pods-of-a-node", watchOfANodesPods},
}

// see records the next n events of a watch.
func (w *world) see(events watch.Interface, n int) {
	w.t.Helper()
	for range n {
		select {
		case ev, open := <-events.ResultChan():
			if !open {
				w.say("the watch has ended")
				return
			}
			w.event(ev)
		case <-time.After(w.patience):
			w.say("nothing more comes")
			return
		}
	}
}

func (w *world) event(ev watch.Event) {
	if ev.Type == watch.Error {
		w.say("%s %s", ev.Type, outcome(apierrors.FromObject(ev.Object)))
		return
	}
	m, err := meta.Accessor(ev.Object)
	require.NoError(w.t, err)
	w.say("%s %s labels=%v going=%v", ev.Type, m.GetName(), m.GetLabels(), m.GetDeletionTimestamp() != nil)
}

func (w *world) watchMachines(opts metav1.ListOptions) watch.Interface {
	w.t.Helper()
	opts.TimeoutSeconds = new(int64(60))
	events, err := w.machineAPI().Watch(w.ctx(), opts)
	require.NoError(w.t, err)
	w.t.Cleanup(events.Stop)
	return events
}

func (w *world) label(name, value string) *v1alpha1.Machine {
	w.t.Helper()
	m, err := w.machineAPI().Patch(w.ctx(), name, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"l":%q}}}`, value), metav1.PatchOptions{})
	require.NoError(w.t, err)
	return m
}

func watchFromAList(w *world) {
	w.machine("before")
	list, err := w.machineAPI().List(w.ctx(), metav1.ListOptions{})
	require.NoError(w.t, err)
	w.machine("between")
	events := w.watchMachines(metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	w.label("before", "1")
	w.label("before", "1") // nothing changes
	w.label("before", "2")
	require.NoError(w.t, w.machineAPI().Delete(w.ctx(), "before", metav1.DeleteOptions{}))
	w.machine("before")
	w.see(events, 5)
}

func watchWithSelector(w *world) {
	m := w.machine("m")
	events := w.watchMachines(metav1.ListOptions{ResourceVersion: m.ResourceVersion, LabelSelector: "l=in"})
	w.label("m", "in")
	w.label("m", "out")
	w.label("m", "in")
	_, err := w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType, []byte(`{"spec":{"providerID":"p"}}`), metav1.PatchOptions{})
	require.NoError(w.t, err)
	left := w.label("m", "out")
	w.label("m", "further-out")
	require.NoError(w.t, w.machineAPI().Delete(w.ctx(), "m", metav1.DeleteOptions{}))
	w.machine("n", func(m *v1alpha1.Machine) { m.Labels = labeled("l", "in") })
	w.see(events, 4)
	ev := <-events.ResultChan()
	w.event(ev)
	gone, err := meta.Accessor(ev.Object)
	require.NoError(w.t, err)
	w.say("the event that it left has the version of the write: %v", gone.GetResourceVersion() == left.ResourceVersion)
	w.see(events, 1)
}

func watchFromTheStart(w *world) {
	w.machine("a")
	w.machine("b")
	for _, version := range []string{"", "0"} {
		w.say("version %q", version)
		events := w.watchMachines(metav1.ListOptions{ResourceVersion: version})
		seen := map[string]bool{}
		for range 2 {
			ev := <-events.ResultChan()
			m, err := meta.Accessor(ev.Object)
			require.NoError(w.t, err)
			seen[fmt.Sprint(ev.Type, " ", m.GetName())] = true
		}
		w.say("%v", seen)
		w.label("a", "after"+version)
		w.see(events, 1)
		events.Stop()
	}
}

func watchOfDeletions(w *world) {
	m := w.machine("m", func(m *v1alpha1.Machine) { m.Finalizers = hold("a") })
	events := w.watchMachines(metav1.ListOptions{ResourceVersion: m.ResourceVersion})
	require.NoError(w.t, w.machineAPI().Delete(w.ctx(), "m", metav1.DeleteOptions{}))
	require.NoError(w.t, w.machineAPI().Delete(w.ctx(), "m", metav1.DeleteOptions{}))
	w.see(events, 1)
	got, err := w.machineAPI().Get(w.ctx(), "m", metav1.GetOptions{})
	require.NoError(w.t, err)
	got.Finalizers, got.Labels = nil, labeled("l", "last")
	_, err = w.machineAPI().Update(w.ctx(), got, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	ev := <-events.ResultChan()
	w.event(ev)
	last, err := meta.Accessor(ev.Object)
	require.NoError(w.t, err)
	w.say("the deletion has a version of its own: %v, finalizers %v", last.GetResourceVersion() != got.ResourceVersion, last.GetFinalizers())
	w.machine("n")
	require.NoError(w.t, w.machineAPI().Delete(w.ctx(), "n", metav1.DeleteOptions{}))
	w.see(events, 2)

	node := w.node("n")
	p := w.running("p", node.Name, nil, true)
	pods, err := w.podAPI().Watch(w.ctx(), metav1.ListOptions{ResourceVersion: p.ResourceVersion})
	require.NoError(w.t, err)
	defer pods.Stop()
	w.say("pod deleted without grace")
	require.NoError(w.t, w.podAPI().Delete(w.ctx(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	w.see(pods, 2)
	w.say("pod without node deleted")
	w.pod("q", "", nil)
	require.NoError(w.t, w.podAPI().Delete(w.ctx(), "q", metav1.DeleteOptions{}))
	w.see(pods, 3)
	w.say("pod with grace, then without")
	w.pod("r", node.Name, nil)
	require.NoError(w.t, w.podAPI().Delete(w.ctx(), "r", metav1.DeleteOptions{}))
	require.NoError(w.t, w.podAPI().Delete(w.ctx(), "r", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	w.see(pods, 3)
	w.pod("end", "", nil)
	w.see(pods, 1)
}

func watchOfANodesPods(w *world) {
	node := w.node("n")
	events, err := w.kube.CoreV1().Pods("").Watch(w.ctx(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.Name})
	require.NoError(w.t, err)
	defer events.Stop()
	w.pod("elsewhere", w.own("other"), nil)
	w.pod("unbound", "", nil)
	w.see(events, 0)
	err = w.podAPI().Bind(w.ctx(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "unbound"}, Target: corev1.ObjectReference{Kind: "Node", Name: node.Name}}, metav1.CreateOptions{})
	w.did("binding", err)
	w.see(events, 1)
	require.NoError(w.t, w.podAPI().Delete(w.ctx(), "unbound", metav1.DeleteOptions{}))
	w.see(events, 1)
	_, err = w.machineAPI().Watch(w.ctx(), metav1.ListOptions{FieldSelector: "spec.providerID=x"})
	w.did("watch of machines by provider id", err)
	_, err = w.machineAPI().Watch(w.ctx(), metav1.ListOptions{ResourceVersion: "abc"})
	w.did("watch from a malformed version", err)
}
