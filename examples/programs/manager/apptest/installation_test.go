// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// newInstalled returns a suite beside a Deployment with annotations.
func newInstalled(t *testing.T, replicas *int32, annotations map[string]string) *Suite {
	t.Helper()
	s := newSuite(t)
	s.o.Deployment = "mcm"
	_, err := s.control.AppsV1().Deployments("n").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "mcm", Annotations: annotations},
		Spec:       appsv1.DeploymentSpec{Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "mcm"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return s
}

func deploymentOf(t *testing.T, s *Suite) (replicas int32, annotations map[string]string) {
	t.Helper()
	d, err := s.control.AppsV1().Deployments("n").Get(t.Context(), "mcm", metav1.GetOptions{})
	require.NoError(t, err)
	return ptr.Deref(d.Spec.Replicas, -1), d.Annotations
}

func TestPauseDeployment_ThenRestored_AsBefore(t *testing.T) {
	for name, c := range map[string]struct {
		replicas *int32
		before   map[string]string
		want     int32
		after    map[string]string
	}{
		"two replicas":                {ptr.To(int32(2)), map[string]string{"a": "b"}, 2, map[string]string{"a": "b"}},
		"no replicas":                 {ptr.To(int32(0)), nil, 0, nil},
		"the default":                 {nil, nil, 1, nil},
		"ignored by the watchdog":     {ptr.To(int32(1)), map[string]string{ignoreAnnotation: "yes"}, 1, map[string]string{ignoreAnnotation: "yes"}},
		"paused by a test that ended": {ptr.To(int32(0)), map[string]string{replicasAnnotation: "3", ignoreAnnotation: "true"}, 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInstalled(t, c.replicas, c.before)
			require.NoError(t, s.pauseDeployment(t.Context()))
			replicas, annotations := deploymentOf(t, s)
			require.Zero(t, replicas)
			require.NotEmpty(t, annotations[ignoreAnnotation])
			require.NoError(t, s.restoreDeployment(t.Context()))
			replicas, annotations = deploymentOf(t, s)
			require.Equal(t, c.want, replicas)
			require.Len(t, annotations, len(c.after))
			for key, value := range c.after {
				require.Equal(t, value, annotations[key])
			}
			require.NoError(t, s.restoreDeployment(t.Context()), "again, it does nothing")
		})
	}
}

func TestPauseDeployment_PodStays_ErrorNamesIt(t *testing.T) {
	s := newInstalled(t, ptr.To(int32(1)), nil)
	_, err := s.control.CoreV1().Pods("n").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "mcm-0", Labels: map[string]string{"app": "mcm"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, s.pauseDeployment(t.Context()), "for the end of the pods of deployment mcm: pod mcm-0 exists\n")
}

func TestPauseDeployment_NoSuchDeployment_Error(t *testing.T) {
	s := newSuite(t)
	s.o.Deployment = "mcm"
	require.ErrorContains(t, s.pauseDeployment(t.Context()), "deployment n/mcm: ")
}

func TestRemoveDefinitions_ObjectsExist_DefinitionStays(t *testing.T) {
	kinds := map[schema.GroupVersionResource]string{definitions: "CustomResourceDefinitionList"}
	var objects []runtime.Object
	s := newSuite(t)
	for _, crd := range v1alpha1.CRDs() {
		s.installed = append(s.installed, crd.Name)
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("apiextensions.k8s.io/v1")
		o.SetKind("CustomResourceDefinition")
		o.SetName(crd.Name)
		objects = append(objects, o)
	}
	for plural, kind := range map[string]string{"machines": "Machine", "machineclasses": "MachineClass", "machinesets": "MachineSet", "machinedeployments": "MachineDeployment"} {
		kinds[v1alpha1.SchemeGroupVersion.WithResource(plural)] = kind + "List"
	}
	theirs := &unstructured.Unstructured{}
	theirs.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("Machine"))
	theirs.SetNamespace("other")
	theirs.SetName("theirs")
	s.definitions = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, append(objects, theirs)...)

	s.o.KeepDefinitions = true
	require.NoError(t, s.removeDefinitions(t.Context()))
	s.o.KeepDefinitions = false
	require.EqualError(t, s.removeDefinitions(t.Context()), "definition machines.machine.sapcloud.io stays: other/theirs exists")
	left, err := s.definitions.Resource(definitions).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, left.Items, 1)
}
