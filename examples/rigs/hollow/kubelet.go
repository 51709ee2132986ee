// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// pace contains the durations of the simulation.
type pace struct {
	join, lease, status, start, stop, update time.Duration
}

// view is the observation of one kubelet, with its memory.
type view struct {
	vm     VM
	silent bool
	joined bool // the kubelet has registered its Node
	node   *corev1.Node
	lease  *coordinationv1.Lease // the last write of the kubelet
	pods   []*corev1.Pod         // the pods bound to the Node
}

// plan contains the writes of a kubelet now, and the time of its next pass. A zero time means after
// the next change.
type plan struct {
	writes []write
	next   time.Time
}

// do adds a write.
func (p *plan) do(w write) { p.writes = append(p.writes, w) }

// until makes the next pass happen at the given time or earlier.
func (p *plan) until(at time.Time) {
	if p.next.IsZero() || at.Before(p.next) {
		p.next = at
	}
}

// decide returns what a kubelet does now. It depends only on its arguments and does not change
// them.
func decide(v view, p pace, now time.Time) plan {
	var out plan
	if v.vm.UpSince.IsZero() || v.silent {
		return out
	}
	if joins := v.vm.UpSince.Add(p.join); joins.After(now) {
		out.until(joins)
		return out
	}
	switch {
	case v.node != nil:
		renew(v, p, now, &out)
		report(v, p, now, &out)
		updateInPlace(v, p, now, &out)
	case !v.joined:
		out.do(register{node: newNode(v.vm, now), token: v.vm.Token, at: now})
	}
	for _, pod := range v.pods {
		run(v, pod, p, now, &out)
	}
	return out
}

// renew renews the Lease of the Node. The Lease has an owner reference to the Node.
func renew(v view, p pace, now time.Time, out *plan) {
	if v.lease != nil && v.lease.Spec.RenewTime != nil && ownedBy(v.lease, v.node) {
		if due := v.lease.Spec.RenewTime.Add(p.lease); due.After(now) {
			out.until(due)
			return
		}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: v.node.Name}}
	if v.lease != nil {
		lease = v.lease.DeepCopy()
	}
	lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: v.node.Name, UID: v.node.UID}}
	lease.Spec.HolderIdentity = &v.vm.NodeName
	lease.Spec.LeaseDurationSeconds = ptr.To(max(1, int32(min(4*p.lease, 24*time.Hour)/time.Second)))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now))
	out.do(renewLease{lease})
	out.until(now.Add(p.lease))
}

func ownedBy(lease *coordinationv1.Lease, node *corev1.Node) bool {
	return len(lease.OwnerReferences) == 1 && lease.OwnerReferences[0].UID == node.UID
}

// kubelet is the memory of one kubelet.
type kubelet struct {
	vm VM // guarded by the lock of the Nodes

	known atomic.Bool // the kubelet has a certificate

	mu     sync.Mutex // held for a whole pass
	joined bool
	lease  *coordinationv1.Lease
	node   written[*corev1.Node]
	pods   written[*corev1.Pod]
	failed time.Time // the last failed request
}

// look returns the view of the kubelet: the caches, with the results of its own writes.
func (k *kubelet) look(vm VM, silent bool, seen view) view {
	seen.vm, seen.silent = vm, silent
	if seen.node != nil {
		now := k.node.newest([]*corev1.Node{seen.node})
		seen.node = nil
		if len(now) > 0 {
			seen.node = now[0]
			k.joined = true // registered by this kubelet or an earlier one
		}
	}
	seen.joined, seen.lease = k.joined, k.lease
	seen.pods = k.pods.newest(seen.pods)
	return seen
}
