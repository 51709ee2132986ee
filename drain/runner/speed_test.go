// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// TestRun_ManyPodsAndVolumes_AsFastAsTheSlowestPod asserts that a drain takes at most 10 percent longer than its
// slowest pod, with an API server that needs 5 ms for each request. MCM needs 5, 25
// and 125 times as long. Time is virtual.
func TestRun_ManyPodsAndVolumes_AsFastAsTheSlowestPod(t *testing.T) {
	for _, tt := range []struct {
		plain, mounted int
		volumes        drain.VolumePolicy
		floor          time.Duration
		rules          func(*corev1.Pod) drain.Rule
	}{
		{50, 0, drain.VolumePolicy{}, time.Second, nil},
		{50, 0, drain.VolumePolicy{}, time.Second, func(p *corev1.Pod) drain.Rule { return drain.Rule{Message: p.Labels["app"]} }},
		{0, 50, drain.VolumePolicy{}, time.Second, nil},
		{40, 10, drain.VolumePolicy{Wait: true}, 2 * time.Second, nil},
		{0, 50, drain.VolumePolicy{Wait: true}, 2 * time.Second, nil},
		{0, 50, drain.VolumePolicy{Wait: true, DetachTimeout: 1100 * time.Millisecond}, 2 * time.Second, nil}, // which counts only after the end of the pods
		{0, 10, drain.VolumePolicy{Wait: true, ReattachTimeout: time.Minute}, 30 * time.Second, nil},
	} {
		objects := fullNode(tt.plain)
		for i := range tt.mounted {
			name := fmt.Sprintf("mounted-%02d", i)
			objects = append(append(objects, newVolume(name, "node-1")...), newPod(name, withClaim(name)))
		}
		options := draintest.Options{DetachTime: time.Second, AttachTime: time.Second, Latency: func(draintest.Call) time.Duration { return 5 * time.Millisecond }}
		inWorldWith(t, options, func(t *testing.T, w *world) {
			ctx, cancel := context.WithCancel(t.Context())
			var others sync.WaitGroup
			others.Go(func() { w.replacePods(ctx) })
			d, err := w.run(t, drain.Policy{Volumes: tt.volumes, Rules: tt.rules})
			ratio := float64(time.Since(w.start)) / float64(tt.floor)
			cancel()
			others.Wait()
			require.NoError(t, err)
			require.Equal(t, []any{drain.Drained, tt.plain + tt.mounted}, []any{d.Outcome, d.GoneSoFar})
			require.LessOrEqual(t, ratio, 1.1, "%d and %d pods", tt.plain, tt.mounted)
			require.GreaterOrEqual(t, ratio, 1.0, "no drain is faster than its slowest pod: %d and %d pods", tt.plain, tt.mounted)
			t.Logf("%d and %d pods: %.3f of the floor", tt.plain, tt.mounted, ratio)
			requests := w.requested()
			require.Equal(t, []int{tt.plain + tt.mounted, 2, 0, 0, 0},
				[]int{requests["create pods/eviction"], requests["list pods"], requests["get pods"], requests["get nodes"], requests["delete pods"]})
		}, objects...)
	}
}

// replacePods simulates a controller and a scheduler: for each terminating pod it adds a pod with
// the same claims on another Node.
func (w *world) replacePods(ctx context.Context) {
	pods, err := w.Client().CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"})
	if err != nil {
		return
	}
	defer pods.Stop()
	replaced := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-pods.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.DeletionTimestamp == nil || replaced[pod.Name] {
				continue
			}
			replaced[pod.Name] = true
			successor := newPod(pod.Name+"-2", onNode("node-2"), func(p *corev1.Pod) { p.Spec.Volumes = pod.Spec.Volumes })
			if w.Add(successor) != nil {
				return
			}
		}
	}
}

// TestPass_ThousandDrainsWait_HoldNoWorker asserts that a thousand waiting drains hold no
// goroutine. One worker and the informers are enough for all of them.
func TestPass_ThousandDrainsWait_HoldNoWorker(t *testing.T) {
	var few, many int
	t.Run("few", func(t *testing.T) { few = drainMany(t, 100) })
	t.Run("many", func(t *testing.T) { many = drainMany(t, 1000) })
	require.Equal(t, few, many, "goroutines while they wait")
}

// drainMany drains Nodes with a pod that a budget holds at first, and returns the number of
// goroutines while all drains wait.
func drainMany(t *testing.T, n int) (goroutines int) {
	t.Helper()
	const perBudget = 100
	var objects []kruntime.Object
	for i := range n {
		node := fmt.Sprint("node-", i)
		objects = append(objects, newNode(node), newPod(fmt.Sprint("web-", i), onNode(node), func(p *corev1.Pod) { p.Namespace = fmt.Sprint("shop-", i/perBudget) }))
	}
	withChangeWorld(t, func(t *testing.T, h *changeWorld) {
		allow := func(disruptions int32) {
			for i := range n / perBudget {
				b := newBudget("web", "web", perBudget-disruptions)
				b.Namespace, b.UID, b.Generation = fmt.Sprint("shop-", i), types.UID(fmt.Sprint("uid-web-", i)), 1
				b.Status = policyv1.PodDisruptionBudgetStatus{
					ObservedGeneration: 1, DisruptionsAllowed: disruptions, CurrentHealthy: perBudget, DesiredHealthy: perBudget - disruptions, ExpectedPods: perBudget,
				}
				require.NoError(t, h.Add(b))
			}
		}
		states, last := map[string]drain.State{}, map[string]drain.Decision{}
		passes := func(expected func(d drain.Decision) bool) { // until no Node is named
			for names := h.take(); len(names) > 0; names = h.take() {
				for _, node := range slices.Compact(names) {
					if last[node].Over() {
						continue
					}
					in, err := runner.Observe(t.Context(), h.found, node, drain.Policy{}, states[node])
					require.NoError(t, err)
					states[node], last[node], err = runner.Executor{Client: runner.NewClient(h.client), Parallel: 1}.Pass(t.Context(), states[node], in, drain.Policy{}, node)
					require.NoError(t, err)
				}
			}
			require.Len(t, last, n)
			for _, d := range last {
				require.True(t, expected(d), d)
			}
		}
		allow(0)
		passes(func(d drain.Decision) bool {
			return d.Cordon == nil && len(d.Rows) == 1 && d.Rows[0].Action == drain.Wait
		})
		goroutines = runtime.NumGoroutine()
		allow(perBudget)
		passes(func(d drain.Decision) bool { return len(d.Rows) == 1 && d.Rows[0].Reason == drain.ReasonTerminating })
		time.Sleep(time.Minute)
		h.Tick()
		passes(func(d drain.Decision) bool { return d.Outcome == drain.Drained })
		requests := h.requested()
		require.Equal(t, []int{n, n, n + 1, 0, 0}, []int{requests["create pods/eviction"], requests["patch nodes"], requests["list pods"], requests["get nodes"], requests["get pods"]})
	}, objects...)
	return goroutines
}
