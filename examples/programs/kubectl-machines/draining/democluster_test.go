// SPDX-License-Identifier: Apache-2.0

package draining_test

import (
	"context"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
)

// The times of the demo cluster.
const (
	demoStop   = 800 * time.Millisecond // until an evicted pod has stopped
	demoStart  = time.Second            // until a new pod is ready
	demoDetach = 500 * time.Millisecond // until a volume is detached
	demoStep   = 100 * time.Millisecond
)

// demoCluster is a cluster in memory with pods, PodDisruptionBudgets and a volume.
type demoCluster struct {
	cluster *draintest.Cluster
	client  kubernetes.Interface
	clock   clock.Clock
}

func newDemoCluster(c clock.Clock) (*demoCluster, error) {
	cluster := draintest.New(draintest.Options{
		Clock: c, Seed: 1, DetachTime: demoDetach, StopTime: func(*corev1.Pod) time.Duration { return demoStop },
	})
	if err := cluster.Add(demoObjects(c.Now())...); err != nil {
		return nil, err
	}
	return &demoCluster{cluster: cluster, client: cluster.Client(), clock: c}, nil
}

// run starts the kubelets, the scheduler and the ReplicaSet controller. The returned function stops
// them and waits for their end.
func (t *demoCluster) run(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlasts an interrupted drain
	var all sync.WaitGroup
	all.Go(func() { t.cluster.Run(ctx) })
	all.Go(func() { t.reconcile(ctx) })
	return func() {
		cancel()
		all.Wait()
	}
}

// reconcile creates, schedules and starts pods until the context ends.
func (t *demoCluster) reconcile(ctx context.Context) {
	replicas, scheduler := hollow.Replicas{Client: t.client}, hollow.Scheduler{Client: t.client}
	for {
		_, _, _ = replicas.Step(ctx), scheduler.Step(ctx), t.start(ctx) // errors are retried in the next step
		timer := t.clock.NewTimer(demoStep)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// start makes scheduled pods ready after demoStart.
func (t *demoCluster) start(ctx context.Context) error {
	pods, err := t.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		waits := p.Status.Phase == corev1.PodPending && p.Spec.NodeName != "" && p.DeletionTimestamp == nil
		if !waits || t.clock.Since(p.CreationTimestamp.Time) < demoStart {
			continue
		}
		ready(p)
		if _, err := t.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func ready(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
}

// controlledBy sets the controller of an object.
func controlledBy(o metav1.Object, owner metav1.Object, kind string) {
	o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))})
}
