// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Label is on the Nodes of an environment; its value is the namespace.
const Label = "example.com/stage"

const mergePatch = types.MergePatchType

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Class makes a class for the cloud, and its Secret, both of that name.
func (s *Env) Class(ctx context.Context, name string) error {
	secret := s.Cloud.Secret(s.Namespace, name)
	if s.options.Kubelets {
		userData, err := BootstrapKubeconfig(s.Cluster.ControlPlane.Config())
		if err != nil {
			return err
		}
		secret.Data[machine.UserDataKey] = userData
	}
	if _, err := s.Client.CoreV1().Secrets(s.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := s.Machines.MachineV1alpha1().MachineClasses(s.Namespace).Create(ctx, s.Cloud.MachineClass(s.Namespace, name), metav1.CreateOptions{})
	return err
}

// Credential is what the Secrets of the classes hold, and nothing else may.
func (s *Env) Credential() string { return s.credential }

// spec is that of a machine whose Node belongs to the environment.
func (s *Env) spec(class string) v1alpha1.MachineSpec {
	return v1alpha1.MachineSpec{
		Class:            v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: class},
		NodeTemplateSpec: v1alpha1.NodeTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{Label: s.Namespace}}},
	}
}

// Machine returns a machine without an owner, to be created.
func (s *Env) Machine(name, class string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Spec: s.spec(class)}
}

// Deployment returns a rolling deployment, to be created. Its machines have the
// label name with its name.
func (s *Env) Deployment(name, class string, replicas, surge, unavailable int32) *v1alpha1.MachineDeployment {
	labels := map[string]string{"name": name}
	maxSurge, maxUnavailable := intstr.FromInt32(surge), intstr.FromInt32(unavailable)
	return &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: v1alpha1.RollingUpdateMachineDeploymentStrategyType,
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &maxSurge, MaxUnavailable: &maxUnavailable},
				},
			},
			Template: v1alpha1.MachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: s.spec(class)},
		},
	}
}

// ReplicaSet returns pods that run on the Nodes of the environment only, to be created.
// They have the label app with the name, and take a second to stop.
func (s *Env) ReplicaSet(name string, replicas int32) *appsv1.ReplicaSet {
	labels := map[string]string{"app": name}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(1)), AutomountServiceAccountToken: new(false),
					NodeSelector: map[string]string{Label: s.Namespace},
					Containers:   []corev1.Container{{Name: "app", Image: "hollow"}},
				},
			},
		},
	}
}

// Budget returns a disruption budget for the pods with the label app, to be
// created.
func (s *Env) Budget(app string, minAvailable int32) *policyv1.PodDisruptionBudget {
	least := intstr.FromInt32(minAvailable)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: app},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}
}
