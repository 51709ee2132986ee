// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pace is how long things take.
type pace struct {
	join, lease, status, start, stop, attach, detach, update time.Duration
}

// view is what one kubelet sees and remembers.
type view struct {
	vm     VM
	told   orders
	joined bool // the kubelet has registered its Node; it does so once
	node   *corev1.Node
	lease  *coordinationv1.Lease // as the kubelet wrote it last
	pods   []*corev1.Pod         // bound to the Node
	// claim, volume and attached look volumes up; nil means that there are none.
	claim    func(namespace, name string) *corev1.PersistentVolumeClaim
	volume   func(name string) *corev1.PersistentVolume
	attached func(volume string) bool
}

// plan is what a kubelet does now, and when it looks again if nothing happens
// before; zero means that it need not.
type plan struct {
	writes []write
	next   time.Time
}

// do adds a write.
func (p *plan) do(w write) { p.writes = append(p.writes, w) }

// until has the kubelet look again at a time.
func (p *plan) until(at time.Time) {
	if p.next.IsZero() || at.Before(p.next) {
		p.next = at
	}
}

// decide returns what a kubelet does now. It is a function of what it is given,
// which it does not change.
func decide(v view, p pace, now time.Time) plan {
	var out plan
	if v.vm.UpSince.IsZero() || v.told.silent {
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
		out.do(register{node: newNode(v.vm, v.told, now), token: v.vm.Token, at: now})
	}
	if !v.told.frozen {
		for _, pod := range v.pods {
			run(v, pod, p, now, &out)
		}
	}
	return out
}

// renew keeps the Lease of the Node alive, which goes with the Node.
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
	lease.Spec.LeaseDurationSeconds = new(max(1, int32(min(4*p.lease, 24*time.Hour)/time.Second)))
	lease.Spec.RenewTime = new(metav1.NewMicroTime(now))
	out.do(renewLease{lease})
	out.until(now.Add(p.lease))
}

func ownedBy(lease *coordinationv1.Lease, node *corev1.Node) bool {
	return len(lease.OwnerReferences) == 1 && lease.OwnerReferences[0].UID == node.UID
}

// kubelet is what is remembered of one kubelet.
type kubelet struct {
	vm VM // belongs to who holds the lock of the Nodes

	known atomic.Bool // the API server has let it in, and it can prove who it is

	mu     sync.Mutex // of a look at the Node, from the first request to the last
	joined bool
	lease  *coordinationv1.Lease
	node   written[*corev1.Node]
	pods   written[*corev1.Pod]
	failed time.Time // when a request failed last
}

// look returns what the kubelet sees in the caches, as it knows better.
func (k *kubelet) look(vm VM, told orders, seen view) view {
	seen.vm, seen.told = vm, told
	if seen.node != nil {
		now := k.node.newest([]*corev1.Node{seen.node})
		seen.node = nil
		if len(now) > 0 {
			seen.node = now[0]
			k.joined = true // by this kubelet or by one before it
		}
	}
	seen.joined, seen.lease = k.joined, k.lease
	seen.pods = k.pods.newest(seen.pods)
	return seen
}
