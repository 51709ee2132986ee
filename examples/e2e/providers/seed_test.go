// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/machinist-dev/machinist/examples/programs/manager/install"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// seedDeployment is the name of the Deployment of an installation.
const seedDeployment = "machine-controller-manager"

// installSeed makes an installation: the definitions, a class, and a Deployment with two pods that no Node runs.
func (w *world) installSeed() {
	w.Helper()
	client, err := dynamic.NewForConfig(plane.Config())
	require.NoError(w, err)
	require.NoError(w, install.Definitions(w.Context(), client))
	w.Cleanup(w.deleteDefinitions)
	class := w.class.DeepCopy()
	class.Name = "pool"
	_, err = w.machines.MachineV1alpha1().MachineClasses(w.namespace).Create(w.Context(), class, metav1.CreateOptions{})
	require.NoError(w, err)
	labels := map[string]string{"app": seedDeployment}
	_, err = w.client.AppsV1().Deployments(w.namespace).Create(w.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: seedDeployment, Annotations: map[string]string{"theirs": "theirs"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
	require.Eventually(w, func() bool {
		pods, err := w.client.CoreV1().Pods(w.namespace).List(w.Context(), metav1.ListOptions{})
		return err == nil && len(pods.Items) == 2
	}, time.Minute, 100*time.Millisecond, "the Deployment has pods")
}

// deleteDefinitions deletes the definitions of the machine objects, and waits until they are deleted.
func (w *world) deleteDefinitions() {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), time.Minute)
	defer cancel()
	client, err := dynamic.NewForConfig(plane.Config())
	require.NoError(w, err)
	for _, crd := range v1alpha1.CRDs() {
		require.NoError(w, client.Resource(definitions).Delete(ctx, crd.Name, metav1.DeleteOptions{}))
	}
	require.Eventually(w, func() bool {
		list, err := client.Resource(definitions).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	}, time.Minute, 100*time.Millisecond)
}

// seed reads the Deployment.
func (w *world) seed() *appsv1.Deployment {
	d, err := w.client.AppsV1().Deployments(w.namespace).Get(w.Context(), seedDeployment, metav1.GetOptions{})
	require.NoError(w, err)
	return d
}

// withoutRevision drops the annotations of the controllers of Kubernetes.
func withoutRevision(annotations map[string]string) map[string]string {
	annotations = maps.Clone(annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "deployment.kubernetes.io/") })
	return annotations
}
