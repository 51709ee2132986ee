// SPDX-License-Identifier: Apache-2.0

package hollow_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/rigs/hollow"
)

// live is a harness in real time with running Nodes and a running scheduler.
type live struct {
	*harness
	mu   sync.Mutex
	vms  []hollow.VM
	stop func()
}

func newLive(t *testing.T, edit func(*hollow.Nodes)) *live {
	t.Helper()
	l := &live{harness: &harness{t: t, cluster: draintest.New(draintest.Options{})}}
	l.client = l.cluster.Client()
	l.nodes = &hollow.Nodes{
		Client: l.client, VMInterval: 5 * time.Millisecond, LeaseInterval: 50 * time.Millisecond, PodStopTime: time.Millisecond,
		VMs: func() []hollow.VM {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.vms
		},
	}
	edit(l.nodes)
	l.scheduler = &hollow.Scheduler{Client: l.client}
	l.replicas = &hollow.Replicas{Client: l.client}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { fail(l.t, l.nodes.Run(ctx)) })
	running.Go(func() { fail(l.t, l.scheduler.Run(ctx)) })
	l.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(l.stop)
	return l
}

func fail(t *testing.T, err error) {
	if err != nil {
		t.Error(err)
	}
}

func (l *live) up(names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		l.cluster.SetNodeSilent(name, true)
		l.vms = append(slices.Clip(l.vms), hollow.VM{ProviderID: "vm-" + name, NodeName: name, UpSince: time.Now()})
	}
}

func (l *live) down() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.vms = nil
}

func (l *live) eventually(what string, f func() bool) {
	l.t.Helper()
	require.Eventually(l.t, f, time.Minute, 2*time.Millisecond, what)
}

// renewed returns the renew time of the Lease of a Node.
func (l *live) renewed(name string) time.Time {
	lease, err := l.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(l.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

func TestRun_NodesAndPods_WholeLifecycle(t *testing.T) {
	l := newLive(t, func(*hollow.Nodes) {})
	l.up("a", "b")
	l.eventually("nodes join", func() bool { return len(l.nodeNames()) == 2 })
	for i := range 4 {
		l.podOn("", fmt.Sprintf("p-%d", i))
	}
	// The spread depends on when the cache of the scheduler received each Node.
	l.eventually("pods run", func() bool { return l.runningOn()["a"]+l.runningOn()["b"] == 4 })
	renewed := l.renewed("a")
	l.eventually("leases are renewed", func() bool { return l.renewed("a").After(renewed.Add(200 * time.Millisecond)) })

	l.nodes.Silence("a", true)
	renewed = l.renewed("a")
	l.podOn("a", "late")
	other := l.renewed("b")
	l.eventually("the other goes on", func() bool { return l.renewed("b").After(other.Add(200 * time.Millisecond)) })
	require.Equal(t, renewed, l.renewed("a"))
	require.Equal(t, corev1.PodPending, l.phase("late"))
	l.nodes.Silence("a", false)
	l.eventually("it speaks again", func() bool { return l.phase("late") == corev1.PodRunning && l.renewed("a").After(renewed) })
}

func TestRun_Writes_AreSentOnce(t *testing.T) {
	l := newLive(t, func(*hollow.Nodes) {})
	l.up("a", "b", "c")
	release := func() {}
	l.eventually("nodes join", func() bool { return len(l.nodeNames()) == 3 })
	for i := range 30 {
		if i == 10 {
			release = l.cluster.HoldWatches() // the caches become old
		}
		l.podOn([]string{"", "a", "b"}[i%3], fmt.Sprintf("p-%02d", i))
	}
	release()
	l.eventually("pods run", func() bool { on := l.runningOn(); return on["a"]+on["b"]+on["c"] == 30 })
	l.stop()
	starts := map[string]int{}
	for _, w := range l.cluster.History() {
		if w.Resource.Resource == "pods" && w.Verb == "patch" {
			starts[w.Name]++
		}
	}
	for name, n := range starts {
		require.Equal(t, 1, n, name)
	}
	require.Len(t, starts, 30)
}

func TestRun_APIServerDown_Continues(t *testing.T) {
	var told atomic.Int64
	l := newLive(t, func(n *hollow.Nodes) { n.Observe = func(error) { told.Add(1) } })
	l.up("a")
	l.eventually("it joins", func() bool { return !l.renewed("a").IsZero() })
	back := l.cluster.Inject(draintest.Fault{Kind: draintest.Unavailable, Match: func(c draintest.Call) bool {
		return c.Verb != "get" && !(c.Resource.Resource == "pods" && c.Verb == "create" && c.Subresource == "")
	}})
	l.cluster.DropWatches()
	l.podOn("", "p")
	l.eventually("it fails for a while", func() bool { return told.Load() > 3 })
	back()
	renewed := l.renewed("a")
	l.eventually("it goes on", func() bool { return l.renewed("a").After(renewed) && l.phase("p") == corev1.PodRunning })
}

func TestRun_WatchesDownAfterSilence_CorrectsConditions(t *testing.T) {
	var told atomic.Int64
	l := newLive(t, func(n *hollow.Nodes) { n.Observe = func(error) { told.Add(1) } })
	l.up("a")
	l.eventually("it joins", func() bool { return !l.renewed("a").IsZero() })
	back := l.cluster.Inject(draintest.Fault{Kind: draintest.Unavailable, Verb: "update", Resource: "leases"})
	l.eventually("it fails", func() bool { return told.Load() > 0 })
	defer l.cluster.HoldWatches()()
	node := l.node("a")
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].Status = corev1.ConditionUnknown
	}
	_, err := l.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	back()
	l.eventually("it is ready again", func() bool { return l.condition("a", corev1.NodeReady).Status == corev1.ConditionTrue })
}

func TestRun_ContextCanceled_LeavesNoGoroutine(t *testing.T) {
	require.Eventually(t, func() bool { return goroutines() == 0 }, time.Minute, time.Millisecond, "goroutines of other tests end")
	l := newLive(t, func(*hollow.Nodes) {})
	l.up("a")
	l.eventually("it joins", func() bool { return len(l.nodeNames()) == 1 })
	l.stop()
	require.Eventually(t, func() bool { return goroutines() == 0 }, time.Minute, 5*time.Millisecond, "%s", stacks())
	l.nodes.Silence("a", true) // no run is in progress
	require.NoError(t, (&hollow.Nodes{Client: l.client}).Run(ended()), "no VMs, and no time")
	require.Error(t, (&hollow.Nodes{}).Run(t.Context()))
	require.Error(t, (&hollow.Scheduler{}).Run(t.Context()))
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// goroutines returns the number of goroutines of Nodes and their informers.
func goroutines() int {
	n := 0
	for stack := range strings.SplitSeq(stacks(), "\n\n") {
		if strings.Contains(stack, "examples/rigs/hollow.") || strings.Contains(stack, "k8s.io/client-go/") || strings.Contains(stack, "drain/draintest.") {
			n++
		}
	}
	return n
}

func stacks() string {
	all := make([]byte, 1<<20)
	return string(all[:runtime.Stack(all, true)])
}

func TestNodes_ConcurrentCalls_AreSafe(t *testing.T) {
	l := newLive(t, func(*hollow.Nodes) {})
	l.up("a", "b")
	var orders sync.WaitGroup
	for i := range 8 {
		orders.Go(func() {
			for j := range 20 {
				name := []string{"a", "b"}[j%2]
				l.nodes.Silence(name, i%2 == 0)
				l.nodes.SilenceNext(0)
				l.nodes.Silent()
			}
		})
	}
	orders.Wait()
	for _, name := range []string{"a", "b"} {
		l.nodes.Silence(name, false)
	}
	l.podOn("", "p")
	l.eventually("all is well", func() bool { return l.phase("p") == corev1.PodRunning })
}

func TestRun_VMDeleted_NodeEnds(t *testing.T) {
	l := newLive(t, func(*hollow.Nodes) {})
	l.up("a")
	l.eventually("it joins", func() bool { return l.renewed("a").After(time.Time{}) })
	l.down()
	var last time.Time
	l.eventually("the lease is not renewed any more", func() bool {
		was := last
		last = l.renewed("a")
		return was.Equal(last) && time.Since(last) > 300*time.Millisecond
	})
	require.NotNil(t, l.node("a"))
}

func TestRun_ManyNodes_JoinAndRunPods(t *testing.T) {
	l := newLive(t, func(n *hollow.Nodes) { n.LeaseInterval = 10 * time.Second })
	names := make([]string, 200)
	for i := range names {
		names[i] = fmt.Sprintf("node-%03d", i)
	}
	l.up(names...)
	l.eventually("all join", func() bool { return len(l.nodeNames()) == len(names) })
	for i := range 400 {
		l.podOn("", fmt.Sprintf("p-%03d", i))
	}
	l.eventually("all run", func() bool {
		n := 0
		for _, on := range l.runningOn() {
			n += on
		}
		return n == 400
	})
	for name, on := range l.runningOn() {
		require.Equal(t, 2, on, name)
	}
}

// BenchmarkIdleNodes measures the processor time of 200 Nodes that only renew their Leases, over a
// cluster in memory. Their clock is ten times as fast.
func BenchmarkIdleNodes(b *testing.B) {
	const fast = 10
	cluster := draintest.New(draintest.Options{})
	var vms []hollow.VM
	for i := range 200 {
		vms = append(vms, hollow.VM{ProviderID: fmt.Sprint(i), NodeName: fmt.Sprintf("node-%03d", i), UpSince: time.Now()})
	}
	nodes := &hollow.Nodes{
		Client: cluster.Client(), LeaseInterval: 10 * time.Second / fast, StatusInterval: 5 * time.Minute / fast,
		VMInterval: time.Second / fast, VMs: func() []hollow.VM { return vms },
	}
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = nodes.Run(ctx) })
	for cluster.Watching("nodes") == 0 || len(cluster.History()) < 2*len(vms) {
		runtime.Gosched()
	}
	used, began := processorTime(), time.Now()
	for b.Loop() {
		<-time.After(time.Second)
	}
	spent, lasted := processorTime()-used, time.Since(began)*fast
	cancel()
	running.Wait()
	b.ReportMetric(float64(spent.Milliseconds())/lasted.Minutes(), "ms/min")
}

// processorTime returns the processor time of this program.
func processorTime() time.Duration {
	samples := []metrics.Sample{{Name: "/cpu/classes/user:cpu-seconds"}}
	runtime.GC() // this updates the metrics
	metrics.Read(samples)
	return time.Duration(samples[0].Value.Float64() * float64(time.Second))
}
