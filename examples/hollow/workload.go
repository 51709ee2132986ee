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
)

// Workload is a ReplicaSet, with a disruption budget if it has one, as any API
// server accepts them. Its pods are made by the controllers of the cluster, or by
// [Replicas] where there are none. It is for one goroutine.
type Workload struct {
	// Client of the cluster.
	Client kubernetes.Interface
	// Namespace and Name of the workload; its pods have the label app with the name.
	Namespace, Name string
	// Replicas is how many pods are wanted. It may be changed between steps.
	Replicas int
	// GraceSeconds is how long a pod may take to stop.
	GraceSeconds int64
	// Budget says that a disruption budget lets one pod be down at a time.
	Budget bool
}

// Step makes what is missing of the workload and corrects the number of replicas.
// What fails is tried again at the next step; the error is returned for the
// record.
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

// Stop takes the workload off the cluster, budget and all; its pods are deleted
// with it by the garbage collector. What fails is to be tried again.
func (w *Workload) Stop(ctx context.Context) error {
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	return errors.Join(
		ignoreNotFound(w.Client.PolicyV1().PodDisruptionBudgets(w.Namespace).Delete(ctx, w.Name, metav1.DeleteOptions{})),
		ignoreNotFound(w.Client.AppsV1().ReplicaSets(w.Namespace).Delete(ctx, w.Name, background)),
	)
}

func (w *Workload) labels() map[string]string { return map[string]string{"app": w.Name} }

// set returns the ReplicaSet that is wanted.
func (w *Workload) set() *appsv1.ReplicaSet {
	replicas := int32(max(0, min(w.Replicas, 1<<20))) //nolint:gosec // bounded just here
	grace := max(0, w.GraceSeconds)
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: w.labels()},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: w.labels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: w.labels()},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: new(false),
					Containers: []corev1.Container{{Name: "app", Image: "hollow"}},
				},
			},
		},
	}
}
