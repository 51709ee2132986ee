// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
)

// watchesLag is how late watches of client-go may resume after an outage of the API server.
const watchesLag = time.Minute

// Run runs the Nodes until the context ends. It watches the cluster, and handles a Node after each
// change and when it is due. It leaves no goroutine. Failed requests are repeated with a back-off
// of up to 5s, also during a long outage of the API server. It returns nil after the end of the
// context, and an error without a Client.
func (n *Nodes) Run(ctx context.Context) error {
	if n.Client == nil {
		return errors.New("hollow nodes: no client")
	}
	ctx, cancel := context.WithCancel(ctx)
	w := newWork[string](n.clock(), n.Observe)
	factory := newFactory(n.Client)
	from := n.watch(factory, w.queue.Add)
	w.pass = func(ctx context.Context, node string) (time.Time, error) { return n.pass(ctx, node, from) }
	var asking sync.WaitGroup
	defer func() {
		n.setWake(nil)
		cancel()
		asking.Wait()
		w.queue.ShutDown()
		factory.Shutdown()
	}()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	n.setWake(w.queue.Add)
	asking.Go(func() { n.ask(ctx, w.queue.Add) })
	w.run(ctx, orElse(n.Workers, 4))
	return nil
}

func (n *Nodes) setWake(wake func(node string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wake = wake
}

// ask calls VMs every VMInterval, and enqueues the Nodes of changed VMs.
func (n *Nodes) ask(ctx context.Context, add func(node string)) {
	n.look()
	changed := n.names()
	for {
		for _, name := range changed {
			add(name)
		}
		timer := n.clock().NewTimer(orElse(n.VMInterval, time.Second))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		changed = n.look()
	}
}

// watch enqueues the Nodes that a change concerns, and returns the source of objects. It must be
// called before the informers start.
func (n *Nodes) watch(factory informers.SharedInformerFactory, add func(node string)) source {
	addNode := func(name string) {
		if k, _, _ := n.kubeletOf(name); k != nil {
			add(name)
		}
	}
	core := factory.Core().V1()
	pods, nodes := core.Pods().Informer(), core.Nodes().Lister()
	on(core.Nodes().Informer(), func(o *corev1.Node) { addNode(o.Name) })
	on(pods, func(o *corev1.Pod) { addNode(o.Spec.NodeName) })
	podsOf := index(pods, "node", func(o *corev1.Pod) string { return o.Spec.NodeName })
	return source{
		node: func(name string) *corev1.Node { return found(nodes.Get(name)) },
		pods: func(node string) []*corev1.Pod { return inOrder(podsOf(node)) },
		lags: watchesLag,
	}
}

// found returns an object, or nil with an error.
func found[T any](o *T, err error) *T {
	if err != nil {
		return nil
	}
	return o
}

// inOrder sorts pods by name.
func inOrder(pods []*corev1.Pod) []*corev1.Pod {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods
}
