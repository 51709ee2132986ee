// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// Scheduler binds pods to the fitting Nodes with the fewest pods. It respects readiness,
// unschedulable, taints, node selectors and required node affinity. It ignores requests and
// volumes. Several schedulers do not conflict. Use either Step or Run at a time.
type Scheduler struct {
	// Client is the client for the cluster.
	Client kubernetes.Interface
	// Clock is the clock for the retries of Run. Nil means the real clock.
	Clock clock.WithTicker
	// Observe receives the errors of steps, which Run repeats. Nil means that they are dropped.
	Observe func(error)

	bound map[types.UID]string // bound pods, until the cache shows that
}

// Step binds every pod that fits a Node now. The next step repeats failed writes. It returns their
// errors.
func (s *Scheduler) Step(ctx context.Context) error {
	nodes, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := s.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	s.bound = nil
	return s.bind(ctx, pointers(nodes.Items), pointers(pods.Items))
}

func pointers[T any](items []T) []*T {
	out := make([]*T, 0, len(items))
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}

// Run binds pods after changes of Nodes and pods until the context ends. It leaves no goroutine.
// Failed requests are repeated with a back-off of up to 5s. It returns nil after the end of the
// context, and an error without a Client.
func (s *Scheduler) Run(ctx context.Context) error {
	if s.Client == nil {
		return errors.New("hollow scheduler: no client")
	}
	type everything struct{}
	ctx, cancel := context.WithCancel(ctx)
	w := newWork[everything](clockOr(s.Clock), s.Observe)
	factory := newFactory(s.Client)
	nodes, pods := factory.Core().V1().Nodes(), factory.Core().V1().Pods()
	on(nodes.Informer(), func(*corev1.Node) { w.queue.Add(everything{}) })
	on(pods.Informer(), func(*corev1.Pod) { w.queue.Add(everything{}) })
	defer func() {
		cancel()
		w.queue.ShutDown()
		factory.Shutdown()
	}()
	s.bound = nil
	w.pass = func(ctx context.Context, _ everything) (time.Time, error) {
		allNodes, err := nodes.Lister().List(labels.Everything())
		if err != nil {
			return time.Time{}, err
		}
		allPods, err := pods.Lister().List(labels.Everything())
		if err != nil {
			return time.Time{}, err
		}
		return time.Time{}, s.bind(ctx, allNodes, allPods)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	w.run(ctx, 1)
	return nil
}

// bind binds pods. Bound pods that the cache does not show yet count as bound.
func (s *Scheduler) bind(ctx context.Context, nodes []*corev1.Node, pods []*corev1.Pod) error {
	still := map[types.UID]string{}
	for _, p := range pods {
		if node, ok := s.bound[p.UID]; ok && p.Spec.NodeName == "" {
			still[p.UID] = node
		}
	}
	s.bound = still
	var errs []error
	for _, b := range schedule(nodes, pods, s.bound) {
		err := s.Client.CoreV1().Pods(b.pod.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.pod.Namespace, Name: b.pod.Name, UID: b.pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: b.node},
		}, metav1.CreateOptions{})
		switch {
		case err == nil:
			s.bound[b.pod.UID] = b.node
		case apierrors.IsNotFound(err) || apierrors.IsConflict(err): // the pod is gone, or another client changed it first
		default:
			errs = append(errs, fmt.Errorf("bind pod %s/%s to %s: %w", b.pod.Namespace, b.pod.Name, b.node, err))
		}
	}
	return errors.Join(errs...)
}
