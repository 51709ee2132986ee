// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// speedCase is a drain that is measured.
type speedCase struct {
	name string
	// plain and mounted are how many pods there are, without and with a volume.
	plain, mounted int
	policy         drain.Policy
	// floor is how long the slowest pod takes by itself.
	floor time.Duration
}

// The whole drain takes as long as its slowest pod, and 20 percent at most on top of it,
// with an API server that needs 5 ms for each request. The reference system needs 5, 25 and
// 125 times as long. Time is virtual, so that nothing else on the machine counts.
func TestDD5DrainsAreAsFastAsTheirSlowestPod(t *testing.T) {
	t.Parallel()
	volumes := drain.Policy{Volumes: drain.VolumePolicy{Wait: true}}
	for _, tt := range []speedCase{
		{"50 pods without volumes", 50, 0, drain.Policy{}, time.Second},
		{"40 pods without and 10 with volumes", 40, 10, volumes, 2 * time.Second},
		{"50 pods with volumes", 0, 50, volumes, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var client *fake.Clientset
			var took time.Duration
			synctest.Test(t, func(t *testing.T) { took, client = speedDrain(t, tt, 5*time.Millisecond, 0) })
			ratio := float64(took) / float64(tt.floor)
			t.Logf("%s: %s, %.3f times the floor of %s", tt.name, took.Round(time.Millisecond), ratio, tt.floor)
			require.LessOrEqual(t, ratio, 1.2)
			require.GreaterOrEqual(t, ratio, 1.0, "nothing was left out")
			counts := map[string]int{}
			for _, asked := range execAsked(client) {
				counts[asked]++
			}
			require.Equal(t, tt.plain+tt.mounted, counts["create pods/eviction"], "D-13: one request for each pod")
			require.Equal(t, 2, counts["list pods"])
			for _, asked := range []string{"get pods", "get nodes", "delete pods"} {
				require.Zero(t, counts[asked], asked)
			}
		})
	}
}

// speedDrain measures one drain, in virtual time within a bubble.
func speedDrain(t testing.TB, tt speedCase, latency time.Duration, parallel int) (time.Duration, *fake.Clientset) {
	t.Helper()
	cluster := draintest.New(draintest.Options{
		StopTime:   func(*corev1.Pod) time.Duration { return time.Second },
		DetachTime: time.Second, AttachTime: time.Second,
		Latency: func(draintest.Call) time.Duration { return latency },
	})
	require.NoError(t, cluster.Add(openNode()))
	for i := range tt.plain {
		require.NoError(t, cluster.Add(newPod(fmt.Sprintf("plain-%02d", i))))
	}
	for i := range tt.mounted {
		name := fmt.Sprintf("mounted-%02d", i)
		require.NoError(t, cluster.Add(sourceVolume(name, "node-1")...))
		require.NoError(t, cluster.Add(newPod(name, sourceClaim(name))))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var world sync.WaitGroup
	world.Go(func() { cluster.Run(ctx) })
	world.Go(func() { speedReplace(ctx, cluster) })
	defer world.Wait()
	defer cancel()
	client := cluster.Clientset()
	start := time.Now()
	plan, err := runner.Executor{Client: client, Parallel: parallel}.Run(ctx, "node-1", tt.policy)
	took := time.Since(start)
	require.NoError(t, err)
	require.Equal(t, drain.Drained, plan.Outcome)
	require.Equal(t, tt.plain+tt.mounted, plan.GoneSoFar)
	return took, client
}

// speedReplace stands in for a controller and a scheduler: as soon as a pod is to go,
// another one is bound to another Node, with the same claims.
func speedReplace(ctx context.Context, cluster *draintest.Cluster) {
	w, err := cluster.Client().CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"})
	if err != nil {
		return
	}
	defer w.Stop()
	replaced := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-w.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.DeletionTimestamp == nil || replaced[pod.Name] {
				continue
			}
			replaced[pod.Name] = true
			var successor runtime.Object = newPod(pod.Name+"-2", func(p *corev1.Pod) {
				p.Spec.NodeName, p.Spec.Volumes = "node-2", pod.Spec.Volumes
			})
			if cluster.Add(successor) != nil {
				return
			}
		}
	}
}

// The end of a drain is noticed when its last pod goes, and a budget that is freed when it
// is freed.
func TestECompletionIsSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, ended := speedOfReaction(t)
		t.Logf("evicted %s after the budget was freed, ended %s after the last pod had gone", asked, ended)
		require.LessOrEqual(t, asked, 20*time.Millisecond)
		require.LessOrEqual(t, ended, 20*time.Millisecond)
	})
}

// speedOfReaction returns how long after a budget was freed a pod was asked to go, and how
// long after the last pod had gone the drain ended.
func speedOfReaction(t *testing.T) (_, _ time.Duration) {
	t.Helper()
	cluster := draintest.New(draintest.Options{StopTime: func(*corev1.Pod) time.Duration { return 50 * time.Millisecond }})
	require.NoError(t, cluster.Add(append(runPods(20), execBudget("never", "web", 20))...))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	var world sync.WaitGroup
	defer world.Wait()
	defer cancel()
	world.Go(func() { cluster.Run(ctx) })
	var freed time.Time
	blocked := speedWaits{until: func(e drain.Progress) bool { return e.Reason == drain.ReasonBudgetNever }, do: func() {
		freed = time.Now()
		require.NoError(t, cluster.Add(execBudget("never", "web", 0)))
	}}
	_, err := runner.Executor{Client: cluster.Client(), Observer: &blocked}.Run(ctx, "node-1", drain.Policy{})
	ended := time.Now()
	require.NoError(t, err)
	require.False(t, freed.IsZero(), "the budget has blocked")
	var asked, gone time.Time
	for _, w := range cluster.History() {
		if w.Subresource == "eviction" && asked.IsZero() {
			asked = w.Time
		}
		if w.Resource.Resource == "pods" && w.After == nil {
			gone = w.Time
		}
	}
	return asked.Sub(freed), ended.Sub(gone)
}

// speedWaits does something at the first event of its kind.
type speedWaits struct {
	until func(e drain.Progress) bool
	do    func()
	done  bool
}

func (w *speedWaits) Observe(e drain.Progress) {
	if !w.done && w.until(e) {
		w.done = true
		w.do()
	}
}

// BenchmarkRun compares how many requests are made at a time.
func BenchmarkRun(b *testing.B) {
	full := speedCase{plain: 110, floor: time.Second}
	for _, latency := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond} {
		for _, parallel := range []int{1, 4, 8, 16, 32} {
			b.Run(fmt.Sprintf("latency=%s/parallel=%d", latency, parallel), func(b *testing.B) {
				var took time.Duration
				for range b.N {
					one, _ := speedDrain(b, full, latency, parallel)
					took += one
				}
				b.ReportMetric(took.Seconds()/float64(b.N)/full.floor.Seconds(), "floors")
			})
		}
	}
}
