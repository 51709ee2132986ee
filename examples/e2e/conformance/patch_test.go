// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var patchScenarios = []scenario{
	{"patches-merge", mergePatches},
	{"patches-strategic", strategicPatches},
}

func mergePatches(w *world) {
	w.machine("m", func(m *v1alpha1.Machine) {
		m.Labels, m.Annotations = map[string]string{"a": "1", "b": "2"}, labeled("x", "1")
		m.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}, {Key: "l", Effect: corev1.TaintEffectNoSchedule}}
	})
	for _, body := range []string{
		`{"metadata":{"labels":{"a":null,"c":"3"}}}`,
		`{"metadata":{"annotations":null}}`,
		`{"spec":{"nodeTemplate":{"spec":{"taints":[{"key":"m","effect":"NoExecute"}]}}}}`,
		`{"spec":{"nodeTemplate":null}}`,
		`{"spec":null}`,
		`{"metadata":null}`,
		`{"metadata":{"labels":{"d":4}}}`,
		`{"metadata":{"labels":"x"}}`,
		`{"spec":{"unheardOf":"x"}}`,
		`{"kind":"Other"}`,
		`{"apiVersion":"v1"}`,
		`null`,
		`[]`,
		`{`,
		``,
	} {
		got, err := w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		w.got(body, got, err, "metadata/labels", "metadata/annotations", "spec/nodeTemplate", "spec/providerID")
	}
	got, err := w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType, []byte(`{"metadata":{"labels":{"dry":"run"}}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	w.got("dry run", got, err, "metadata/labels")
	got, err = w.machineAPI().Get(w.ctx(), "m", metav1.GetOptions{})
	w.got("get", got, err, "metadata/labels")
	_, err = w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}, "nothing")
	w.did("patch of an unknown subresource", err)
	_, err = w.machineAPI().Patch(w.ctx(), "m", "text/plain", []byte(`{}`), metav1.PatchOptions{})
	w.did("patch of an unknown type", err)
	w.secret("s")
	for _, body := range []string{`{"kind":"Other"}`, `{"apiVersion":"v2"}`, `{"metadata":null}`, `null`, `{"metadata":{"name":null}}`, `{"metadata":{"namespace":null}}`} {
		_, err := w.secretAPI().Patch(w.ctx(), "s", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		w.did("secret: merge "+body, err)
		_, err = w.secretAPI().Patch(w.ctx(), "s", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
		w.did("secret: strategic merge "+body, err)
		_, err = w.machineAPI().Patch(w.ctx(), "m", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		w.did("machine: merge "+body, err)
	}
}

func strategicPatches(w *world) {
	node := w.node("n", func(n *corev1.Node) {
		n.Labels = map[string]string{"a": "1", "b": "2"}
		n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}, {Key: "l", Effect: corev1.TaintEffectNoSchedule}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: "One", Status: corev1.ConditionTrue}, {Type: "Two", Status: corev1.ConditionTrue}}
	})
	for _, body := range []string{
		`{"metadata":{"labels":{"a":null,"c":"3"}}}`,
		`{"spec":{"taints":[{"key":"k","effect":"NoSchedule","value":"v"}]}}`,
		`{"spec":{"taints":[{"key":"l","effect":"NoSchedule"}]}}`,
		`{"spec":{"taints":null}}`,
		`{"spec":{"taints":[{"key":"l","effect":"NoSchedule"},{"key":"k","effect":"NoExecute"}]}}`,
		`{"metadata":{"labels":{"$patch":"replace","only":"this"}}}`,
		`{"spec":{"unschedulable":"yes"}}`,
		`null`,
		`[]`,
	} {
		got, err := w.nodeAPI().Patch(w.ctx(), node.Name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
		w.got(body, got, err, "metadata/labels/a", "metadata/labels/c", "metadata/labels/only")
		if err == nil {
			w.say("taints: %s", taintsOf(got))
		}
	}
	for _, body := range []string{
		`{"status":{"conditions":[{"type":"Two","status":"False"}]}}`,
		`{"status":{"conditions":[{"type":"Three","status":"True"}]}}`,
		`{"status":{"conditions":[{"$patch":"delete","type":"One"}]}}`,
	} {
		got, err := w.nodeAPI().Patch(w.ctx(), node.Name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status")
		w.got("status: "+body, got, err)
		if err != nil {
			continue
		}
		for _, condition := range got.Status.Conditions {
			w.say("condition %s %s", condition.Type, condition.Status)
		}
	}
	w.pod("p", "", nil)
	got, err := w.podAPI().Patch(w.ctx(), "p", types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"DisruptionTarget","status":"False","reason":"r"}]}}`), metav1.PatchOptions{}, "status")
	w.got("pod: conditions", got, err)
	got, err = w.podAPI().Patch(w.ctx(), "p", types.StrategicMergePatchType, []byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`), metav1.PatchOptions{}, "status")
	w.got("pod: one condition", got, err, "status/conditions")
}

// taintsOf renders the taints which the controllers of a real cluster have nothing to do with.
func taintsOf(n *corev1.Node) string {
	text := ""
	for _, taint := range n.Spec.Taints {
		if domain := "node.kubernetes.io/"; len(taint.Key) < len(domain) || taint.Key[:len(domain)] != domain {
			text += " " + taint.ToString()
		}
	}
	return text
}
