// SPDX-License-Identifier: Apache-2.0

package draintest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// delete carries out a delete request: it checks the preconditions, sets the deletion timestamp, and removes the object
// if it has no finalizer and no grace period. A second deletion may shorten the grace period.
func (c *Cluster) delete(k *kind, req request, opts metav1.DeleteOptions) error {
	obj, err := c.get(k, req.namespace, req.name)
	if err != nil {
		return err
	}
	if err := checkPreconditions(k, metaOf(obj), opts.Preconditions); err != nil {
		return err
	}
	if req.dryRun {
		return nil
	}
	marked := obj.DeepCopyObject()
	m := metaOf(marked)
	pending, graceful := c.mark(m, marked, opts.GracePeriodSeconds)
	if pending {
		return nil
	}
	waits := len(m.GetFinalizers()) > 0
	if (graceful || waits) && !k.same(obj, marked) {
		if err := c.commit(k, req, obj, marked); err != nil {
			return err
		}
		obj = marked
	}
	if waits || graceful && *m.GetDeletionGracePeriodSeconds() > 0 {
		return nil
	}
	return c.commit(k, req, obj, nil)
}

// mark sets the deletion timestamp and the grace period. pending means that the object is already terminating and the
// request changes nothing. graceful means that the object has a grace period, which only pods have.
func (c *Cluster) mark(m metav1.Object, obj runtime.Object, requested *int64) (pending, graceful bool) {
	pod, isPod := obj.(*corev1.Pod)
	if !isPod {
		if len(m.GetFinalizers()) > 0 {
			c.markNow(m)
		}
		return false, false
	}
	if m.GetDeletionTimestamp() == nil {
		grace := graceOf(pod, requested)
		at := metav1.NewTime(c.now().Add(time.Duration(grace) * time.Second)).Rfc3339Copy()
		m.SetDeletionTimestamp(&at)
		m.SetDeletionGracePeriodSeconds(&grace)
		raise(m)
		return false, true
	}
	left := m.GetDeletionGracePeriodSeconds()
	if left == nil || *left == 0 {
		c.markNow(m)
		return false, false
	}
	if requested == nil {
		return true, false
	}
	grace := *requested
	if grace < 0 {
		grace = 1
	}
	if grace >= *left {
		return true, false
	}
	at := metav1.NewTime(m.GetDeletionTimestamp().Add(time.Duration(grace-*left) * time.Second)).Rfc3339Copy()
	m.SetDeletionTimestamp(&at)
	m.SetDeletionGracePeriodSeconds(&grace)
	return false, true
}

// markNow sets the deletion timestamp of an object that waits only for its finalizers.
func (c *Cluster) markNow(m metav1.Object) {
	if m.GetDeletionGracePeriodSeconds() == nil {
		raise(m)
	}
	now := metav1.NewTime(c.now()).Rfc3339Copy()
	if at := m.GetDeletionTimestamp(); at == nil || at.After(now.Time) {
		m.SetDeletionTimestamp(&now)
	}
	m.SetDeletionGracePeriodSeconds(ptr.To(int64(0)))
}

// raise increments the generation of a deleted object, for kinds with a generation.
func raise(m metav1.Object) {
	if m.GetGeneration() > 0 {
		m.SetGeneration(m.GetGeneration() + 1)
	}
}

// graceOf returns the grace period of the deletion of a pod in seconds: of the request, else of the pod. It is zero for a
// pod without node and for a finished pod. A negative one is a second.
func graceOf(pod *corev1.Pod, requested *int64) int64 {
	var grace int64
	switch {
	case requested != nil:
		grace = *requested
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	if pod.Spec.NodeName == "" || hasEnded(pod) {
		grace = 0
	}
	if grace < 0 {
		grace = 1
	}
	return grace
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// checkPreconditions compares the preconditions of a request with the stored object.
func checkPreconditions(k *kind, m metav1.Object, pre *metav1.Preconditions) error {
	if pre == nil {
		return nil
	}
	if pre.UID != nil && *pre.UID != m.GetUID() {
		return apierrors.NewConflict(k.resource(), m.GetName(), fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated",
			*pre.UID, m.GetUID()))
	}
	if pre.ResourceVersion != nil && *pre.ResourceVersion != m.GetResourceVersion() {
		return apierrors.NewConflict(k.resource(), m.GetName(), fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified",
			*pre.ResourceVersion, m.GetResourceVersion()))
	}
	return nil
}

// deleteCollection deletes all selected objects. An object that does not exist is no error.
func (c *Cluster) deleteCollection(k *kind, req request, a clienttesting.DeleteCollectionActionImpl) error {
	list, err := c.list(k, req.namespace, a.ListOptions)
	if err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	for _, item := range items {
		one := req
		one.namespace, one.name = metaOf(item).GetNamespace(), metaOf(item).GetName()
		if err := c.delete(k, one, a.DeleteOptions); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
