// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// write is a write to the API server.
type write interface {
	fmt.Stringer
	// do makes the request, and records the result in the kubelet, unless k is nil.
	do(ctx context.Context, client kubernetes.Interface, k *kubelet) error
}

// writeAll makes the writes of a plan. A failed write does not stop the others.
func writeAll(ctx context.Context, client kubernetes.Interface, writes []write, k *kubelet) error {
	var errs []error
	for _, w := range writes {
		if err := w.do(ctx, client, k); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", w, err))
		}
	}
	return errors.Join(errs...)
}

// register creates the Node of a kubelet whose token is valid. It uses a Node that exists already.
type register struct {
	node  *corev1.Node
	token string
	at    time.Time
}

func (w register) String() string { return "register node " + w.node.Name }

func (w register) do(ctx context.Context, client kubernetes.Interface, k *kubelet) error {
	if w.token != "" && !k.known.Load() {
		if err := authenticate(ctx, client, w.token, w.at); err != nil {
			return err
		}
		k.known.Store(true)
	}
	node, err := client.CoreV1().Nodes().Create(ctx, w.node, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	k.joined = true
	if err == nil {
		k.node.put(node)
	}
	return nil
}

// reportNode writes the status of a Node.
type reportNode struct{ before, after *corev1.Node }

func (w reportNode) String() string { return "report node " + w.after.Name }

func (w reportNode) do(ctx context.Context, client kubernetes.Interface, k *kubelet) error {
	patch, err := patchOf(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: w.before.Annotations}, Status: w.before.Status},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: w.after.Annotations, UID: w.after.UID}, Status: w.after.Status},
	)
	if err != nil {
		return err
	}
	node, err := client.CoreV1().Nodes().Patch(ctx, w.after.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return ignoreNotFound(err)
	}
	k.node.put(node)
	return nil
}

// labelNode writes the labels of a Node.
type labelNode struct{ before, after *corev1.Node }

func (w labelNode) String() string { return "label node " + w.after.Name }

func (w labelNode) do(ctx context.Context, client kubernetes.Interface, k *kubelet) error {
	patch, err := patchOf(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: w.before.Labels}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: w.after.Labels, UID: w.after.UID}},
	)
	if err != nil {
		return err
	}
	node, err := client.CoreV1().Nodes().Patch(ctx, w.after.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	k.node.put(node)
	return nil
}

// renewLease writes the Lease of a Node.
type renewLease struct{ lease *coordinationv1.Lease }

func (w renewLease) String() string { return "renew lease " + w.lease.Name }

func (w renewLease) do(ctx context.Context, client kubernetes.Interface, k *kubelet) error {
	lease, err := writeLease(ctx, client, w.lease)
	switch {
	case err == nil:
		k.lease = lease
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		k.lease = nil // the Lease has changed: the next pass reads it
	}
	return err
}

// writeLease updates a known Lease. Otherwise it creates the Lease, or updates the one that exists.
func writeLease(ctx context.Context, client kubernetes.Interface, lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	leases := client.CoordinationV1().Leases(lease.Namespace)
	if lease.ResourceVersion != "" {
		return leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	created, err := leases.Create(ctx, lease, metav1.CreateOptions{})
	switch {
	case err == nil:
		return created, nil
	case apierrors.IsNotFound(err): // the namespace does not exist
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: lease.Namespace}}
		if _, nsErr := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); nsErr != nil && !apierrors.IsAlreadyExists(nsErr) {
			return nil, nsErr
		}
		return nil, err
	case !apierrors.IsAlreadyExists(err):
		return nil, err
	}
	there, err := leases.Get(ctx, lease.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	there.Spec, there.OwnerReferences = lease.Spec, lease.OwnerReferences
	return leases.Update(ctx, there, metav1.UpdateOptions{})
}

// reportPod writes the status of a pod.
type reportPod struct{ before, after *corev1.Pod }

func (w reportPod) String() string {
	return fmt.Sprintf("report pod %s/%s %s", w.after.Namespace, w.after.Name, w.after.Status.Phase)
}

func (w reportPod) do(ctx context.Context, client kubernetes.Interface, k *kubelet) error {
	patch, err := patchOf(&corev1.Pod{Status: w.before.Status}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: w.after.UID}, Status: w.after.Status})
	if err != nil {
		return err
	}
	pod, err := client.CoreV1().Pods(w.after.Namespace).Patch(ctx, w.after.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsNotFound(err):
		k.pods.putDeleted(w.after.UID)
		return nil
	case err != nil:
		return err
	}
	k.pods.put(pod)
	return nil
}

// removePod deletes a pod without grace, after its containers have stopped.
type removePod struct{ pod *corev1.Pod }

func (w removePod) String() string {
	return fmt.Sprintf("remove pod %s/%s", w.pod.Namespace, w.pod.Name)
}

func (w removePod) do(ctx context.Context, client kubernetes.Interface, k *kubelet) error {
	err := client.CoreV1().Pods(w.pod.Namespace).Delete(ctx, w.pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To(int64(0)), Preconditions: &metav1.Preconditions{UID: &w.pod.UID},
	})
	if err = ignoreNotFound(err); err == nil && len(w.pod.Finalizers) == 0 {
		k.pods.putDeleted(w.pod.UID)
	}
	return err
}

// patchOf returns the patch from one object to another.
func patchOf[T any](before, after *T) ([]byte, error) {
	was, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	is, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(was, is, *new(T))
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
