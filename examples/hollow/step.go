// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// source contains the objects for Nodes: lists for Step, caches for Run. Missing objects are nil.
type source struct {
	node        func(name string) *corev1.Node
	pods        func(node string) []*corev1.Pod
	attachments func(node string) []*storagev1.VolumeAttachment
	claim       func(namespace, name string) *corev1.PersistentVolumeClaim
	volume      func(name string) *corev1.PersistentVolume
	// lags is how long the objects may be old after failed requests, because the watches fail too
	// and resume later.
	lags time.Duration
}

// Step makes one pass of every kubelet with a running VM, sorted by name, and then of the
// attachers. The next step repeats failed writes. It returns their errors.
func (n *Nodes) Step(ctx context.Context) error {
	n.look()
	attachments, err := n.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	from, err := n.list(ctx, attachments.Items)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range n.names() {
		_, err := n.pass(ctx, name, from)
		errs = append(errs, err)
	}
	for i := range attachments.Items {
		_, err := n.attachment(ctx, &attachments.Items[i])
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// list lists all objects from the API server.
func (n *Nodes) list(ctx context.Context, attachments []storagev1.VolumeAttachment) (source, error) {
	var none source
	nodes, err := n.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return none, err
	}
	pods, err := n.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return none, err
	}
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	if slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return len(p.Spec.Volumes) > 0 }) {
		if claims, err = n.Client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{}); err != nil {
			return none, err
		}
		if volumes, err = n.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{}); err != nil {
			return none, err
		}
	}
	podsOf := map[string][]*corev1.Pod{}
	for i := range pods.Items {
		p := &pods.Items[i]
		podsOf[p.Spec.NodeName] = append(podsOf[p.Spec.NodeName], p)
	}
	attachmentsOf := map[string][]*storagev1.VolumeAttachment{}
	for i := range attachments {
		a := &attachments[i]
		attachmentsOf[a.Spec.NodeName] = append(attachmentsOf[a.Spec.NodeName], a)
	}
	return source{
		node: finder(nodes.Items, func(o *corev1.Node, name string) bool { return o.Name == name }),
		pods: func(node string) []*corev1.Pod { return podsOf[node] },
		claim: func(namespace, name string) *corev1.PersistentVolumeClaim {
			return finder(claims.Items, func(o *corev1.PersistentVolumeClaim, name string) bool {
				return o.Name == name && o.Namespace == namespace
			})(name)
		},
		attachments: func(node string) []*storagev1.VolumeAttachment { return attachmentsOf[node] },
		volume:      finder(volumes.Items, func(o *corev1.PersistentVolume, name string) bool { return o.Name == name }),
	}, nil
}

// finder returns a function that finds an object of a list by name. The function returns nil if
// there is none.
func finder[T any](items []T, is func(o *T, name string) bool) func(name string) *T {
	return func(name string) *T {
		for i := range items {
			if is(&items[i], name) {
				return &items[i]
			}
		}
		return nil
	}
}

// pass makes one pass of a kubelet and returns the time of the next one. Zero means after the next
// change.
func (n *Nodes) pass(ctx context.Context, name string, from source) (time.Time, error) {
	k, _, _ := n.kubeletOf(name)
	if k == nil {
		return time.Time{}, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	_, vm, told := n.kubeletOf(name) // orders given before the lock was held count
	now := n.clock().Now()
	if !k.failed.IsZero() && now.Before(k.failed.Add(from.lags)) {
		if err := k.refresh(ctx, n.Client, name); err != nil {
			k.failed = now
			return time.Time{}, err
		}
	}
	v := k.look(vm, told, view{
		node: from.node(name), pods: from.pods(name), claim: from.claim, volume: from.volume,
		attached: func(volume string) bool {
			return slices.ContainsFunc(from.attachments(name), func(a *storagev1.VolumeAttachment) bool {
				source := a.Spec.Source.PersistentVolumeName
				return source != nil && *source == volume && a.Status.Attached && a.DeletionTimestamp == nil
			})
		},
	})
	p := decide(v, n.pace(), now)
	err := writeAll(ctx, n.Client, p.writes, k)
	if err != nil {
		k.failed = now
	}
	return p.next, err
}

// refresh reads the Node from the API server.
func (k *kubelet) refresh(ctx context.Context, client kubernetes.Interface, name string) error {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		k.node.put(node)
	}
	return ignoreNotFound(err)
}

// attachment makes one pass of the attacher of a VolumeAttachment, if its driver is one of
// Attachers.
func (n *Nodes) attachment(ctx context.Context, a *storagev1.VolumeAttachment) (time.Time, error) {
	if a == nil || !slices.Contains(n.Attachers, a.Spec.Attacher) {
		return time.Time{}, nil
	}
	p := attach(a, n.isUp(a.Spec.NodeName), n.pace(), n.clock().Now())
	return p.next, writeAll(ctx, n.Client, p.writes, nil)
}
