// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var generationScenarios = []scenario{
	{"generations", generations},
}

func generations(w *world) {
	set := w.machineSet("set", 1)
	w.got("machine set: created", set, nil, "metadata/generation")
	for _, body := range []string{
		`{"spec":{"replicas":2}}`, `{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"annotations":{"a":"1"}}}`, `{"metadata":{"finalizers":["example.com/f"]}}`,
		`{"spec":{"replicas":2}}`, `{"metadata":{"generation":99}}`, `{"spec":{"template":{"metadata":{"labels":{"a":"1"}}}}}`,
	} {
		got, err := w.setAPI().Patch(w.ctx(), "set", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		w.got("machine set: "+body, got, err, "metadata/generation")
	}
	got, err := w.setAPI().Patch(w.ctx(), "set", types.MergePatchType, []byte(`{"status":{"replicas":1,"observedGeneration":3}}`), metav1.PatchOptions{}, "status")
	w.got("machine set: status", got, err, "metadata/generation")
	w.did("machine set: delete", w.setAPI().Delete(w.ctx(), "set", metav1.DeleteOptions{}))
	got, err = w.setAPI().Get(w.ctx(), "set", metav1.GetOptions{})
	w.got("machine set: being deleted", got, err, "metadata/generation", "metadata/deletionGracePeriodSeconds")
	w.did("machine set: delete", w.setAPI().Delete(w.ctx(), "set", metav1.DeleteOptions{}))
	got, err = w.setAPI().Get(w.ctx(), "set", metav1.GetOptions{})
	w.got("machine set: being deleted", got, err, "metadata/generation")
	got, err = w.setAPI().Patch(w.ctx(), "set", types.MergePatchType, []byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{})
	w.got("machine set: scaled while being deleted", got, err, "metadata/generation", "spec/replicas")

	class := &v1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	class.ProviderSpec.Raw = []byte(`{}`)
	class, err = w.machines.MachineV1alpha1().MachineClasses(w.ns).Create(w.ctx(), class, metav1.CreateOptions{})
	w.got("class: created", class, err, "metadata/generation")
	class, err = w.machines.MachineV1alpha1().MachineClasses(w.ns).Patch(w.ctx(), "c", types.MergePatchType, []byte(`{"provider":"p"}`), metav1.PatchOptions{})
	w.got("class: provider", class, err, "metadata/generation")
	class, err = w.machines.MachineV1alpha1().MachineClasses(w.ns).Patch(w.ctx(), "c", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"1"}}}`), metav1.PatchOptions{})
	w.got("class: label", class, err, "metadata/generation")

	w.generationsOfBuiltInKinds()
}

func (w *world) generationsOfBuiltInKinds() {
	w.got("secret: created", w.secret("s"), nil, "metadata/generation")
	secret, err := w.secretAPI().Patch(w.ctx(), "s", types.MergePatchType, []byte(`{"stringData":{"a":"1"}}`), metav1.PatchOptions{})
	w.got("secret: data", secret, err, "metadata/generation")
	node := w.node("n")
	w.got("node: created", node, nil, "metadata/generation")
	node, err = w.nodeAPI().Patch(w.ctx(), node.Name, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	w.got("node: spec", node, err, "metadata/generation")

	pod := w.pod("p", node.Name, nil)
	w.got("pod: created", pod, nil, "metadata/generation")
	pod, err = w.podAPI().Patch(w.ctx(), "p", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"1"}}}`), metav1.PatchOptions{})
	w.got("pod: label", pod, err, "metadata/generation")
	pod, err = w.podAPI().Patch(w.ctx(), "p", types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"c","image":"registry.example/image:2"}]}}`), metav1.PatchOptions{})
	w.got("pod: image", pod, err, "metadata/generation")
	pod, err = w.podAPI().Patch(w.ctx(), "p", types.MergePatchType, []byte(`{"status":{"message":"m"}}`), metav1.PatchOptions{}, "status")
	w.got("pod: status", pod, err, "metadata/generation")
	w.did("pod: delete", w.podAPI().Delete(w.ctx(), "p", metav1.DeleteOptions{}))
	pod, err = w.podAPI().Get(w.ctx(), "p", metav1.GetOptions{})
	w.got("pod: being deleted", pod, err, "metadata/generation")
	w.did("pod: delete with less grace", w.podAPI().Delete(w.ctx(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64(5))}))
	pod, err = w.podAPI().Get(w.ctx(), "p", metav1.GetOptions{})
	w.got("pod: being deleted", pod, err, "metadata/generation", "metadata/deletionGracePeriodSeconds")

	budget := w.budget("b", labeled("a", "1"), atLeast(intstr.FromInt32(1)))
	w.got("budget: created", budget, nil, "metadata/generation")
	budget, err = w.budgetAPI().Patch(w.ctx(), "b", types.MergePatchType, []byte(`{"spec":{"minAvailable":2}}`), metav1.PatchOptions{})
	w.got("budget: spec", budget, err, "metadata/generation")

	selector := &metav1.LabelSelector{MatchLabels: labeled("app", "d")}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labeled("app", "d")}, Spec: podOf("", "", nil).Spec}
	deployments := w.kube.AppsV1().Deployments(w.ns)
	d, err := deployments.Create(w.ctx(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: selector, Template: template, Paused: true},
	}, metav1.CreateOptions{})
	w.got("deployment: created", d, err, "metadata/generation")
	for _, body := range []string{`{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"annotations":{"a":"1"}}}`, `{"spec":{"minReadySeconds":3}}`} {
		d, err = deployments.Patch(w.ctx(), "d", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		w.got("deployment: "+body, d, err, "metadata/generation")
	}
	sets := w.kube.AppsV1().ReplicaSets(w.ns)
	rs, err := sets.Create(w.ctx(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "rs"}, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	w.got("replica set: created", rs, err, "metadata/generation")
	for _, body := range []string{`{"metadata":{"annotations":{"a":"1"}}}`, `{"spec":{"minReadySeconds":3}}`} {
		rs, err = sets.Patch(w.ctx(), "rs", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		w.got("replica set: "+body, rs, err, "metadata/generation")
	}
}
