// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// source contains the objects for Nodes: lists for Step, caches for Run. Missing objects are nil.
type source struct {
	node func(name string) *corev1.Node
	pods func(node string) []*corev1.Pod
	// lags is how long the objects may be old after failed requests, because the watches fail too
	// and resume later.
	lags time.Duration
}

// Step makes one pass of every kubelet with a running VM, sorted by name. The next step repeats
// failed writes. It returns their errors.
func (n *Nodes) Step(ctx context.Context) error {
	n.look()
	from, err := n.list(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range n.names() {
		_, err := n.pass(ctx, name, from)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// list lists all objects from the API server.
func (n *Nodes) list(ctx context.Context) (source, error) {
	var none source
	nodes, err := n.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return none, err
	}
	pods, err := n.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return none, err
	}
	podsOf := map[string][]*corev1.Pod{}
	for i := range pods.Items {
		p := &pods.Items[i]
		podsOf[p.Spec.NodeName] = append(podsOf[p.Spec.NodeName], p)
	}
	return source{
		node: func(name string) *corev1.Node {
			i := slices.IndexFunc(nodes.Items, func(o corev1.Node) bool { return o.Name == name })
			if i < 0 {
				return nil
			}
			return &nodes.Items[i]
		},
		pods: func(node string) []*corev1.Pod { return podsOf[node] },
	}, nil
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
	_, vm, silent := n.kubeletOf(name) // orders given before the lock was held count
	now := n.clock().Now()
	if !k.failed.IsZero() && now.Before(k.failed.Add(from.lags)) {
		if err := k.refresh(ctx, n.Client, name); err != nil {
			k.failed = now
			return time.Time{}, err
		}
	}
	v := k.look(vm, silent, view{node: from.node(name), pods: from.pods(name)})
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
