// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	policyv1client "k8s.io/client-go/kubernetes/typed/policy/v1"

	machineclient "github.com/machinist-dev/machinist/machine/client/clientset/versioned/typed/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func (w *world) machineAPI() machineclient.MachineInterface {
	return w.machines.MachineV1alpha1().Machines(w.ns)
}
func (w *world) setAPI() machineclient.MachineSetInterface {
	return w.machines.MachineV1alpha1().MachineSets(w.ns)
}
func (w *world) podAPI() corev1client.PodInterface       { return w.kube.CoreV1().Pods(w.ns) }
func (w *world) nodeAPI() corev1client.NodeInterface     { return w.kube.CoreV1().Nodes() }
func (w *world) secretAPI() corev1client.SecretInterface { return w.kube.CoreV1().Secrets(w.ns) }
func (w *world) budgetAPI() policyv1client.PodDisruptionBudgetInterface {
	return w.kube.PolicyV1().PodDisruptionBudgets(w.ns)
}

// The following create an object that a scenario starts from; that it can be created is not part of the story.

func (w *world) machine(name string, with ...func(*v1alpha1.Machine)) *v1alpha1.Machine {
	w.t.Helper()
	in := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, change := range with {
		change(in)
	}
	m, err := w.machineAPI().Create(w.ctx(), in, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.know(m)
	return m
}

func (w *world) machineSet(name string, replicas int32) *v1alpha1.MachineSet {
	w.t.Helper()
	in := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineSetSpec{Replicas: replicas}}
	set, err := w.setAPI().Create(w.ctx(), in, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.know(set)
	return set
}

func (w *world) secret(name string, with ...func(*corev1.Secret)) *corev1.Secret {
	w.t.Helper()
	in := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, change := range with {
		change(in)
	}
	s, err := w.secretAPI().Create(w.ctx(), in, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.know(s)
	return s
}

// node creates a node; the controllers of a real cluster add taints of their own to it.
func (w *world) node(name string, with ...func(*corev1.Node)) *corev1.Node {
	w.t.Helper()
	in := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.own(name)}}
	for _, change := range with {
		change(in)
	}
	w.sweepNode(in.Name)
	n, err := w.nodeAPI().Create(w.ctx(), in, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.know(n)
	return n
}

func (w *world) sweepNode(name string) {
	w.t.Cleanup(func() { _ = w.nodeAPI().Delete(w.afterwards(), name, metav1.DeleteOptions{}) })
}

// podOf describes a pod that a server accepts; without a node it is pending for ever.
func podOf(name, node string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "registry.example/image:1"}}},
	}
}

func (w *world) pod(name, node string, labels map[string]string, with ...func(*corev1.Pod)) *corev1.Pod {
	w.t.Helper()
	in := podOf(name, node, labels)
	for _, change := range with {
		change(in)
	}
	p, err := w.podAPI().Create(w.ctx(), in, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.know(p)
	return p
}

// running makes a pod run on a node, ready or not, as its kubelet would report it.
func (w *world) running(name, node string, labels map[string]string, ready bool, with ...func(*corev1.Pod)) *corev1.Pod {
	w.t.Helper()
	p := w.pod(name, node, labels, with...)
	p.Status.Phase = corev1.PodRunning
	setReady(p, ready)
	p, err := w.podAPI().UpdateStatus(w.ctx(), p, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	return p
}

func setReady(p *corev1.Pod, ready bool) {
	condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	if ready {
		condition.Status = corev1.ConditionTrue
	}
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == condition.Type {
			p.Status.Conditions[i] = condition
			return
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, condition)
}

func (w *world) budget(name string, labels map[string]string, with ...func(*policyv1.PodDisruptionBudgetSpec)) *policyv1.PodDisruptionBudget {
	w.t.Helper()
	in := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
	}}
	for _, change := range with {
		change(&in.Spec)
	}
	b, err := w.budgetAPI().Create(w.ctx(), in, metav1.CreateOptions{})
	require.NoError(w.t, err)
	w.know(b)
	return b
}

func atLeast(n intstr.IntOrString) func(*policyv1.PodDisruptionBudgetSpec) {
	return func(spec *policyv1.PodDisruptionBudgetSpec) { spec.MinAvailable = &n }
}

func unavailable(n intstr.IntOrString) func(*policyv1.PodDisruptionBudgetSpec) {
	return func(spec *policyv1.PodDisruptionBudgetSpec) { spec.MaxUnavailable = &n }
}

func labeled(key, value string) map[string]string { return map[string]string{key: value} }

// afterwards is a context for clean-ups, when the one of the test has ended.
func (w *world) afterwards() context.Context { return context.WithoutCancel(w.ctx()) }
