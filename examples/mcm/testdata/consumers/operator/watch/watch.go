// SPDX-License-Identifier: Apache-2.0

// Package watch tells of failed machines, over controller-runtime.
package watch

import (
	"context"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/nodeops"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Failed is the condition that a Node gets while its machine has failed.
const Failed corev1.NodeConditionType = "MachineFailed"

// Reconciler writes the condition [Failed].
type Reconciler struct{ client.Client }

// AddTo adds the reconciler to a manager.
func (r *Reconciler) AddTo(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).For(&v1alpha1.Machine{}).Complete(r)
}

// Reconcile writes the condition of one Node.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	m := &v1alpha1.Machine{}
	if err := r.Get(ctx, request.NamespacedName, m); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	node := &corev1.Node{}
	if err := r.Get(ctx, types.NamespacedName{Name: m.Labels[v1alpha1.NodeLabelKey]}, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	status := corev1.ConditionFalse
	if m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed {
		status = corev1.ConditionTrue
	}
	next := nodeops.AddOrUpdateCondition(node, corev1.NodeCondition{Type: Failed, Status: status, Reason: "Phase"})
	return reconcile.Result{}, r.Status().Update(ctx, next)
}
