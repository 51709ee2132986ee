// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// Workload is a ReplicaSet, with a PodDisruptionBudget if Budget is set. The controllers of the
// cluster create its pods, or [Replicas] where there are none. It is for one goroutine.
type Workload struct {
	// Client is the client for the cluster.
	Client kubernetes.Interface
	// Namespace and Name are those of the ReplicaSet. Its pods have the label app=Name.
	Namespace, Name string
	// Replicas is the desired number of pods. It may be changed between steps.
	Replicas int
	// GraceSeconds is the grace period of the pods in seconds.
	GraceSeconds int64
	// Budget adds a PodDisruptionBudget with maxUnavailable 1.
	Budget bool
}

// Step creates the missing objects of the workload and sets the number of replicas. The next step
// repeats failed writes. It returns their error.
func (w *Workload) Step(ctx context.Context) error {
	if w.Budget {
		one := intstr.FromInt32(1)
		_, err := w.Client.PolicyV1().PodDisruptionBudgets(w.Namespace).Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: w.labels()}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	sets := w.Client.AppsV1().ReplicaSets(w.Namespace)
	want := w.set()
	there, err := sets.Get(ctx, w.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = sets.Create(ctx, want, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	case there.Spec.Replicas != nil && *there.Spec.Replicas == *want.Spec.Replicas:
		return nil
	}
	there.Spec.Replicas = want.Spec.Replicas
	_, err = sets.Update(ctx, there, metav1.UpdateOptions{})
	return err
}

// Stop deletes the ReplicaSet and the PodDisruptionBudget. The garbage collector deletes the pods.
// Stop can be repeated after an error.
func (w *Workload) Stop(ctx context.Context) error {
	background := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
	return errors.Join(
		ignoreNotFound(w.Client.PolicyV1().PodDisruptionBudgets(w.Namespace).Delete(ctx, w.Name, metav1.DeleteOptions{})),
		ignoreNotFound(w.Client.AppsV1().ReplicaSets(w.Namespace).Delete(ctx, w.Name, background)),
	)
}

func (w *Workload) labels() map[string]string { return map[string]string{"app": w.Name} }

// set returns the desired ReplicaSet.
func (w *Workload) set() *appsv1.ReplicaSet {
	replicas := int32(max(0, min(w.Replicas, 1<<20))) //nolint:gosec // bounded
	grace := max(0, w.GraceSeconds)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: w.labels()},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: w.labels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: w.labels()},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: ptr.To(false),
					Containers: []corev1.Container{{Name: "app", Image: "hollow"}},
				},
			},
		},
	}
}
