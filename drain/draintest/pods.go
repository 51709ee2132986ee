// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// Tick does what is due at the time of the cluster's clock, and returns the time of the next due action, or zero. It
// deletes pods whose grace period is over, unless their node is silent. It detaches and attaches volumes, ends charges of
// budgets, and deletes objects without owners. A second call at the same time does nothing.
func (c *Cluster) Tick() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	for _, key := range ordered(c.index.terminating) {
		if at, waits := c.endOf(key); waits && !at.After(now) {
			c.finish(key)
		}
	}
	c.finishDetach(now)
	c.collectDangling()
	c.syncVolumes(now)
	if !c.options.ManualBudgets {
		c.confirmDisruptions()
	}
	return c.nextDue(now)
}

// Run calls Tick when an action is due, by the cluster's clock, until the context ends. Tests with a fake clock call Tick
// instead.
func (c *Cluster) Run(ctx context.Context) {
	for ctx.Err() == nil {
		var due <-chan time.Time
		var timer clock.Timer
		if next := c.Tick(); !next.IsZero() {
			timer = c.clock.NewTimer(max(next.Sub(c.clock.Now()), time.Millisecond))
			due = timer.C()
		}
		select {
		case <-ctx.Done():
		case <-c.kick:
		case <-due:
		}
		if timer != nil {
			timer.Stop()
		}
	}
}

// wake makes Run call Tick.
func (c *Cluster) wake() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// SetNodeSilent stops or starts the kubelet of a node. Terminating pods of a silent node stay: only a deletion with grace
// period zero removes them. When the kubelet starts again, the next [Cluster.Tick] deletes overdue pods.
func (c *Cluster) SetNodeSilent(node string, silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if silent {
		c.silent[node] = true
	} else {
		delete(c.silent, node)
	}
	c.wake()
}

// endOf returns when the containers of a terminating pod stop, or false if its kubelet does not stop them.
func (c *Cluster) endOf(key objectKey) (time.Time, bool) {
	pod := c.index.pods[key.namespace][key.name]
	if pod == nil || pod.DeletionTimestamp == nil || c.silent[pod.Spec.NodeName] {
		return time.Time{}, false
	}
	grace := pod.DeletionGracePeriodSeconds
	if grace == nil || *grace == 0 {
		return time.Time{}, false // only finalizers are left
	}
	end := pod.DeletionTimestamp.Time
	if c.options.StopTime == nil {
		return end, true
	}
	whole := time.Duration(*grace) * time.Second
	stop := min(max(c.options.StopTime(pod.DeepCopy()), 0), whole)
	deleted := c.index.terminating[key]
	if deleted.IsZero() {
		deleted = end.Add(-whole)
	}
	return deleted.Add(stop), true
}

// finish deletes a pod with grace period zero, like a kubelet after the containers have stopped.
func (c *Cluster) finish(key objectKey) {
	pod := c.index.pods[key.namespace][key.name]
	if pod == nil {
		return
	}
	req := request{actor: byKubelet, verb: "delete", resource: podsResource, namespace: key.namespace, name: key.name}
	_ = c.delete(c.kinds[podsResource], req, metav1.DeleteOptions{ // it exists
		GracePeriodSeconds: ptr.To(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
}

// nextDue returns the time of the next due action after now, or zero.
func (c *Cluster) nextDue(now time.Time) time.Time {
	var next time.Time
	consider := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for key := range c.index.terminating {
		if at, waits := c.endOf(key); waits {
			consider(at)
		}
	}
	for key, at := range c.detach {
		consider(c.detachedAt(key, at))
	}
	for _, at := range c.attach {
		consider(at)
	}
	if c.options.ManualBudgets {
		return next
	}
	for _, budgets := range c.index.budgets {
		for _, budget := range budgets {
			for _, at := range budget.Status.DisruptedPods {
				consider(at.Add(confirmTime))
			}
		}
	}
	return next
}

// bind carries out a binding: it sets the node of a pod.
func (c *Cluster) bind(k *kind, req request, in runtime.Object) (runtime.Object, error) {
	binding, ok := in.(*corev1.Binding)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Binding object: %T", in))
	}
	if binding.Namespace != "" && binding.Namespace != req.namespace {
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if binding.Target.Name == "" || binding.Target.Kind != "" && binding.Target.Kind != "Node" {
		return nil, internal("target: a binding needs the name of a node")
	}
	req.name = binding.Name
	obj, err := c.get(k, req.namespace, binding.Name)
	if err != nil {
		return nil, err
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("not a pod: %T", obj))
	}
	if binding.UID != "" && binding.UID != pod.UID {
		return nil, uidConflict(k, pod.Name, binding.UID, pod.UID)
	}
	if pod.DeletionTimestamp != nil {
		return nil, apierrors.NewConflict(k.resource(), pod.Name, fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", pod.Name))
	}
	if pod.Spec.NodeName != "" {
		return nil, apierrors.NewConflict(k.resource(), pod.Name, fmt.Errorf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName))
	}
	after := pod.DeepCopy()
	after.Spec.NodeName = binding.Target.Name
	setPodCondition(&after.Status, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.now()).Rfc3339Copy(),
	})
	if _, err := c.accept(k, req, pod, after); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// setPodCondition sets a condition. A condition with the same status keeps its transition time.
func setPodCondition(status *corev1.PodStatus, condition corev1.PodCondition) {
	for i, has := range status.Conditions {
		if has.Type != condition.Type {
			continue
		}
		if has.Status == condition.Status {
			condition.LastTransitionTime = has.LastTransitionTime
		}
		status.Conditions[i] = condition
		return
	}
	status.Conditions = append(status.Conditions, condition)
}

// podCondition returns the condition of that type, or nil.
func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
