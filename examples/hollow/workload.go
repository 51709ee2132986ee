// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"cmp"
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// Workload keeps a number of pods running on the Nodes, as a ReplicaSet and a
// scheduler would: a pod that goes is replaced, and goes where fewest pods are.
// It is for one goroutine.
type Workload struct {
	// Client of the cluster.
	Client kubernetes.Interface
	// Namespace and Name of the workload.
	Namespace, Name string
	// Replicas is how many pods are wanted.
	Replicas int
	// GraceSeconds is how long a pod takes to stop.
	GraceSeconds int64
	// Budget says that a disruption budget lets one pod be down at a time.
	Budget bool

	owner *metav1.OwnerReference
}

// Step brings the workload one step on. What fails is tried again at the next
// step; the errors are returned for the record.
func (w *Workload) Step(ctx context.Context) error {
	if w.owner == nil {
		if err := w.setUp(ctx); err != nil {
			return err
		}
	}
	pods, err := w.Client.CoreV1().Pods(w.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + w.Name})
	if err != nil {
		return err
	}
	nodes, err := w.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	load := schedulable(nodes.Items)
	alive := 0
	for _, p := range pods.Items {
		if p.DeletionTimestamp != nil {
			continue
		}
		if slices.IndexFunc(nodes.Items, func(n corev1.Node) bool { return n.Name == p.Spec.NodeName }) < 0 {
			err = errors.Join(err, w.Client.CoreV1().Pods(w.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})) // its node is gone
			continue
		}
		alive++
		if _, ok := load[p.Spec.NodeName]; ok {
			load[p.Spec.NodeName]++
		}
	}
	for ; alive < w.Replicas && len(load) > 0; alive++ {
		node := leastLoaded(load)
		load[node]++
		_, createErr := w.Client.CoreV1().Pods(w.Namespace).Create(ctx, w.pod(node), metav1.CreateOptions{})
		err = errors.Join(err, createErr)
	}
	return err
}

// setUp makes the ReplicaSet, and the budget if there is one.
func (w *Workload) setUp(ctx context.Context) error {
	labels, one := map[string]string{"app": w.Name}, intstr.FromInt32(1)
	replicas := int32(min(w.Replicas, 1<<20)) //nolint:gosec // bounded just here
	set, err := w.Client.AppsV1().ReplicaSets(w.Namespace).Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: labels},
		Spec:       appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		set, err = w.Client.AppsV1().ReplicaSets(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	if w.Budget {
		_, err = w.Client.PolicyV1().PodDisruptionBudgets(w.Namespace).Create(ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	w.owner = metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	return nil
}

// Stop takes the workload off the cluster, budget and all. What fails is to be
// tried again.
func (w *Workload) Stop(ctx context.Context) error {
	ofApp := metav1.ListOptions{LabelSelector: "app=" + w.Name}
	return errors.Join(
		ignoreNotFound(w.Client.PolicyV1().PodDisruptionBudgets(w.Namespace).Delete(ctx, w.Name, metav1.DeleteOptions{})),
		ignoreNotFound(w.Client.AppsV1().ReplicaSets(w.Namespace).Delete(ctx, w.Name, metav1.DeleteOptions{})),
		w.Client.CoreV1().Pods(w.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, ofApp),
	)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (w *Workload) pod(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace, GenerateName: w.Name + "-",
			Labels: map[string]string{"app": w.Name}, OwnerReferences: []metav1.OwnerReference{*w.owner},
		},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: &w.GraceSeconds,
			Containers: []corev1.Container{{Name: "app", Image: "app"}},
		},
	}
}

// schedulable returns the Nodes that take pods, with no pods on them.
func schedulable(nodes []corev1.Node) map[string]int {
	load := map[string]int{}
	for _, n := range nodes {
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if ready && !n.Spec.Unschedulable && n.DeletionTimestamp == nil {
			load[n.Name] = 0
		}
	}
	return load
}

func leastLoaded(load map[string]int) string {
	names := make([]string, 0, len(load))
	for name := range load {
		names = append(names, name)
	}
	return slices.MinFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(load[a], load[b]), cmp.Compare(a, b)) })
}
