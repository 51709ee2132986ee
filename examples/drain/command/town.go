// SPDX-License-Identifier: Apache-2.0

package command

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
	"github.com/machinist-dev/machinist/examples/hollow"
)

// The pace of the town.
const (
	townStop   = 800 * time.Millisecond // until an evicted pod has stopped
	townStart  = time.Second            // until its successor is ready
	townDetach = 500 * time.Millisecond // until its volume is detached
	townStep   = 100 * time.Millisecond
)

// town is a small cluster in memory, with everything in it that a drain meets.
type town struct {
	cluster *draintest.Cluster
	client  kubernetes.Interface
	clock   clock.Clock
}

func newTown(c clock.Clock) (*town, error) {
	cluster := draintest.New(draintest.Options{
		Clock: c, Seed: 1, DetachTime: townDetach, StopTime: func(*corev1.Pod) time.Duration { return townStop },
	})
	if err := cluster.Add(townObjects(c.Now())...); err != nil {
		return nil, err
	}
	return &town{cluster: cluster, client: cluster.Client(), clock: c}, nil
}

// live brings the town to life, if it is to live at all: kubelets stop pods, and
// what went comes back on other Nodes. What it returns ends that, and waits until
// it has ended.
func (t *town) live(ctx context.Context, lives bool) (leave func()) {
	if !lives {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it outlives a drain that is interrupted
	var all sync.WaitGroup
	all.Go(func() { t.cluster.Run(ctx) })
	all.Go(func() { t.grow(ctx) })
	return func() {
		cancel()
		all.Wait()
	}
}

// grow has pods made, scheduled and started, again and again.
func (t *town) grow(ctx context.Context) {
	replicas, scheduler := hollow.Replicas{Client: t.client}, hollow.Scheduler{Client: t.client}
	for {
		_, _, _ = replicas.Step(ctx), scheduler.Step(ctx), t.start(ctx) // what fails is tried again
		timer := t.clock.NewTimer(townStep)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// start makes pods ready that have been on their Node for long enough.
func (t *town) start(ctx context.Context) error {
	pods, err := t.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		waits := p.Status.Phase == corev1.PodPending && p.Spec.NodeName != "" && p.DeletionTimestamp == nil
		if !waits || t.clock.Since(p.CreationTimestamp.Time) < townStart {
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

// controlledBy makes a workload the controller of an object.
func controlledBy(o metav1.Object, owner metav1.Object, kind string) {
	o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))})
}
