// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var finalizerScenarios = []scenario{
	{"finalizers-of-machines", finalizersOfMachines},
	{"finalizers-of-secrets", finalizersOfSecrets},
	{"finalizers-of-pods", finalizersOfPods},
	{"finalizers-lists-in-patches", finalizerLists},
}

var deletion = []string{"metadata/deletionTimestamp", "metadata/deletionGracePeriodSeconds", "metadata/finalizers", "metadata/generation"}

func hold(names ...string) []string {
	held := make([]string, 0, len(names))
	for _, name := range names {
		held = append(held, "example.com/"+name)
	}
	return held
}

func finalizersOfMachines(w *world) {
	api := w.machineAPI()
	m := w.machine("m", func(m *v1alpha1.Machine) { m.Finalizers = hold("a", "b") })
	w.did("delete", api.Delete(w.ctx(), "m", metav1.DeleteOptions{}))
	dying, err := api.Get(w.ctx(), "m", metav1.GetOptions{})
	w.got("get", dying, err, deletion...)
	w.version("the delete", m, dying)
	w.did("second delete", api.Delete(w.ctx(), "m", metav1.DeleteOptions{}))
	again, err := api.Get(w.ctx(), "m", metav1.GetOptions{})
	w.got("get", again, err, deletion...)
	w.version("the second delete", dying, again)
	w.did("delete with grace period 0", api.Delete(w.ctx(), "m", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	w.did("delete of another incarnation", api.Delete(w.ctx(), "m", *metav1.NewPreconditionDeleteOptions(string(otherUID))))

	more := again.DeepCopy()
	more.Finalizers = hold("a", "b", "c")
	_, err = api.Update(w.ctx(), more, metav1.UpdateOptions{})
	w.did("update with a new finalizer", err)
	_, err = api.Patch(w.ctx(), "m", types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/c"]}}`), metav1.PatchOptions{})
	w.did("patch with a new finalizer", err)
	revived := again.DeepCopy()
	revived.DeletionTimestamp = nil
	got, err := api.Update(w.ctx(), revived, metav1.UpdateOptions{})
	w.got("update without the deletion timestamp", got, err, deletion...)
	again.Labels = labeled("a", "1")
	got, err = api.Update(w.ctx(), again, metav1.UpdateOptions{})
	w.got("update of a label", got, err, "metadata/labels")
	got.Finalizers = hold("b")
	got, err = api.Update(w.ctx(), got, metav1.UpdateOptions{})
	w.got("update without the first finalizer", got, err, deletion...)
	got.Status.LastKnownState = "s"
	got, err = api.UpdateStatus(w.ctx(), got, metav1.UpdateOptions{})
	w.got("status update while being deleted", got, err, "status/lastKnownState")
	// An update without the last finalizer removes the object; the answer is what it would have become.
	before := got.DeepCopy()
	got.Finalizers, got.Labels = nil, labeled("a", "2")
	got, err = api.Update(w.ctx(), got, metav1.UpdateOptions{})
	w.got("update without the last finalizer", got, err, append(deletion, "metadata/labels")...)
	w.version("the answer to it", before, got)
	_, err = api.Get(w.ctx(), "m", metav1.GetOptions{})
	w.did("get", err)

	m = w.machine("early")
	m.DeletionTimestamp = &metav1.Time{Time: m.CreationTimestamp.Time}
	_, err = api.Update(w.ctx(), m, metav1.UpdateOptions{})
	w.did("update with a deletion timestamp", err)
	w.did("delete without finalizer", api.Delete(w.ctx(), "early", metav1.DeleteOptions{}))
	_, err = api.Get(w.ctx(), "early", metav1.GetOptions{})
	w.did("get", err)

	w.machine("empty", func(m *v1alpha1.Machine) { m.Finalizers = hold("a") })
	w.did("delete", api.Delete(w.ctx(), "empty", metav1.DeleteOptions{}))
	got, err = api.Patch(w.ctx(), "empty", types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`), metav1.PatchOptions{})
	w.got("patch without the last finalizer", got, err, deletion...)
	_, err = api.Get(w.ctx(), "empty", metav1.GetOptions{})
	w.did("get", err)

	w.machine("dry", func(m *v1alpha1.Machine) { m.Finalizers = hold("a") })
	w.did("dry delete", api.Delete(w.ctx(), "dry", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	got, err = api.Get(w.ctx(), "dry", metav1.GetOptions{})
	w.got("get", got, err, deletion...)
}

func finalizersOfSecrets(w *world) {
	w.secret("s", func(s *corev1.Secret) { s.Finalizers = hold("a") })
	w.did("delete", w.secretAPI().Delete(w.ctx(), "s", metav1.DeleteOptions{}))
	s, err := w.secretAPI().Get(w.ctx(), "s", metav1.GetOptions{})
	w.got("get", s, err, deletion...)
	s.Finalizers = hold("a", "b")
	_, err = w.secretAPI().Update(w.ctx(), s, metav1.UpdateOptions{})
	w.did("update with a new finalizer", err)
	s.Finalizers = nil
	s.Data = map[string][]byte{"k": []byte("v")}
	s, err = w.secretAPI().Update(w.ctx(), s, metav1.UpdateOptions{})
	w.got("update without the last finalizer", s, err, append(deletion, "data")...)
	_, err = w.secretAPI().Get(w.ctx(), "s", metav1.GetOptions{})
	w.did("get", err)
}

func finalizersOfPods(w *world) {
	node := w.node("n")
	w.running("p", node.Name, nil, true, func(p *corev1.Pod) { p.Finalizers = hold("a") })
	w.did("delete", w.podAPI().Delete(w.ctx(), "p", metav1.DeleteOptions{}))
	p, err := w.podAPI().Get(w.ctx(), "p", metav1.GetOptions{})
	w.got("get", p, err, deletion...)
	w.did("delete without grace", w.podAPI().Delete(w.ctx(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
	p, err = w.podAPI().Get(w.ctx(), "p", metav1.GetOptions{})
	w.got("get", p, err, deletion...)
	p, err = w.podAPI().Patch(w.ctx(), "p", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.got("patch without the last finalizer", p, err, deletion...)
	_, err = w.podAPI().Get(w.ctx(), "p", metav1.GetOptions{})
	w.did("get", err)

	w.running("q", node.Name, nil, true, func(p *corev1.Pod) { p.Finalizers = hold("a") })
	w.did("delete", w.podAPI().Delete(w.ctx(), "q", metav1.DeleteOptions{}))
	p, err = w.podAPI().Patch(w.ctx(), "q", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.got("patch without the last finalizer, in the grace period", p, err, deletion...)
	_, err = w.podAPI().Get(w.ctx(), "q", metav1.GetOptions{})
	w.did("get", err)

	w.pod("unbound", "", nil, func(p *corev1.Pod) { p.Finalizers = hold("a") })
	w.did("delete of a pod without node", w.podAPI().Delete(w.ctx(), "unbound", metav1.DeleteOptions{}))
	p, err = w.podAPI().Get(w.ctx(), "unbound", metav1.GetOptions{})
	w.got("get", p, err, deletion...)
	p, err = w.podAPI().Patch(w.ctx(), "unbound", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	w.got("patch without the last finalizer", p, err, deletion...)
	_, err = w.podAPI().Get(w.ctx(), "unbound", metav1.GetOptions{})
	w.did("get", err)
}

func finalizerLists(w *world) {
	w.machine("m", func(m *v1alpha1.Machine) { m.Finalizers = hold("a", "b") })
	patchMachine := func(t types.PatchType, body string) {
		got, err := w.machineAPI().Patch(w.ctx(), "m", t, []byte(body), metav1.PatchOptions{})
		w.got("machine: "+body, got, err, "metadata/finalizers")
	}
	patchMachine(types.MergePatchType, `{"metadata":{"finalizers":["example.com/c"]}}`)
	patchMachine(types.MergePatchType, `{"metadata":{"finalizers":["example.com/c","example.com/c"]}}`)
	patchMachine(types.MergePatchType, `{"metadata":{"finalizers":null}}`)

	w.secret("s", func(s *corev1.Secret) { s.Finalizers = hold("a", "b") })
	patchSecret := func(t types.PatchType, body string) {
		got, err := w.secretAPI().Patch(w.ctx(), "s", t, []byte(body), metav1.PatchOptions{})
		w.got("secret: "+string(t)+" "+body, got, err, "metadata/finalizers")
	}
	patchSecret(types.StrategicMergePatchType, `{"metadata":{"finalizers":["example.com/c"]}}`)
	patchSecret(types.StrategicMergePatchType, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.com/a"]}}`)
	patchSecret(types.MergePatchType, `{"metadata":{"finalizers":["example.com/c"]}}`)
	patchSecret(types.StrategicMergePatchType, `{"metadata":{"finalizers":null}}`)
}
