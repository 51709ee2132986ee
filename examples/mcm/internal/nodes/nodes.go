// SPDX-License-Identifier: Apache-2.0

// Package nodes has the functions of MCM that edit one Node in the cluster. Package nodeops of the SDK
// decides what they store.
package nodes

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/machinist-dev/machinist/nodeops"
	"github.com/machinist-dev/machinist/nodeops/runner"
)

// Backoff is the back-off after conflicts.
var Backoff = wait.Backoff{Steps: 5, Duration: 100 * time.Millisecond, Jitter: 1}

// AddOrUpdateConditionsOnNode stores condition in the status of the Node, and reads the Node again
// after a conflict. It writes nothing if the Node has the condition already. It returns the stored Node.
//
// A zero LastHeartbeatTime keeps the stored one. LastTransitionTime changes when the status or the
// reason changes: to the given time, or to the present time if the given one is zero or not after
// the stored one. No zero time is stored.
func AddOrUpdateConditionsOnNode(ctx context.Context, c kubernetes.Interface, nodeName string, condition corev1.NodeCondition) (*corev1.Node, error) {
	var stored *corev1.Node
	err := retry.RetryOnConflict(Backoff, func() error {
		node, err := c.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		next := node.DeepCopy()
		next.Status.Conditions = withCondition(node.Status.Conditions, condition, time.Now())
		if stored = node; equality.Semantic.DeepEqual(node, next) {
			return nil
		}
		stored, err = c.CoreV1().Nodes().UpdateStatus(ctx, next, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	return stored, nil
}

// withCondition is [nodeops.CloneAndAddCondition] without zero times.
func withCondition(conditions []corev1.NodeCondition, c corev1.NodeCondition, now time.Time) []corev1.NodeCondition {
	if i := slices.IndexFunc(conditions, func(old corev1.NodeCondition) bool { return old.Type == c.Type }); i >= 0 {
		old := conditions[i]
		if c.LastHeartbeatTime.IsZero() {
			c.LastHeartbeatTime = old.LastHeartbeatTime
		}
		same := old.Status == c.Status && old.Reason == c.Reason
		switch {
		case same && !old.LastTransitionTime.IsZero():
			c.LastTransitionTime = old.LastTransitionTime
		case !same && !c.LastTransitionTime.After(old.LastTransitionTime.Time):
			c.LastTransitionTime = metav1.Time{}
		}
	}
	if c.LastHeartbeatTime.IsZero() {
		c.LastHeartbeatTime = metav1.NewTime(now)
	}
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = metav1.NewTime(now)
	}
	return nodeops.CloneAndAddCondition(conditions, c)
}

// GetNodeCondition reads the Node and returns its condition of the given type, or nil if there is
// none.
func GetNodeCondition(ctx context.Context, c kubernetes.Interface, nodeName string, conditionType corev1.NodeConditionType) (*corev1.NodeCondition, error) {
	node, err := c.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return nodeops.GetCondition(node, conditionType), nil
}

// AddOrUpdateTaintOnNode stores taints in the Node as [nodeops.SetTaint] does, and reads the Node
// again after a conflict. It writes nothing if the Node has them already. A nil taint is ignored.
func AddOrUpdateTaintOnNode(ctx context.Context, c kubernetes.Interface, nodeName string, taints ...*corev1.Taint) error {
	return editTaints(ctx, c, nodeName, taints, nodeops.SetTaint)
}

// RemoveTaintOffNode removes taints from the Node as [nodeops.RemoveTaint] does, and reads the Node
// again after a conflict. It makes no request if node, a copy of the Node, is not nil and has none
// of them. A nil taint is ignored.
func RemoveTaintOffNode(ctx context.Context, c kubernetes.Interface, nodeName string, node *corev1.Node, taints ...*corev1.Taint) error {
	if node != nil && !slices.ContainsFunc(taints, func(t *corev1.Taint) bool { return t != nil && nodeops.HasTaint(node.Spec.Taints, *t) }) {
		return nil
	}
	return editTaints(ctx, c, nodeName, taints, nodeops.RemoveTaint)
}

// editTaints stores the taints of the Node after a change by each of the given taints.
func editTaints(
	ctx context.Context, c kubernetes.Interface, nodeName string, by []*corev1.Taint,
	change func([]corev1.Taint, corev1.Taint) ([]corev1.Taint, bool),
) error {
	_, _, err := runner.UpdateNode(ctx, c.CoreV1().Nodes(), nodeName, func(node *corev1.Node) (changed bool, _ error) {
		for _, t := range by {
			if t != nil {
				taints, differ := change(node.Spec.Taints, *t)
				node.Spec.Taints, changed = taints, changed || differ
			}
		}
		return changed, nil
	})
	return err
}
