// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain"
)

type benchCase struct {
	in drain.Observation
	p  drain.Policy
}

// benchCases returns the most expensive steps of a full Node.
func benchCases() map[string]benchCase {
	plain, budgets, blocked, volumes := observed(), observed(), observed(), volumesSeen(nil, nil)
	budgets.Budgets.Complete, blocked.Budgets.Complete = true, true
	for i := range 110 {
		name := fmt.Sprintf("web-%03d", (i*37)%110)
		plain.Pods.Items = append(plain.Pods.Items, newPod(name, goldenLabeled(fmt.Sprint("app-", i%20))))
		volumes.Pods.Items = append(volumes.Pods.Items, newPod(name, volumesOf(name)))
		volumes.Claims.Items = append(volumes.Claims.Items, volumeClaim(name, "pv-"+name))
		volumes.Attachments.Items = append(volumes.Attachments.Items, volumeAttached("pv-"+name, "node-1"))
	}
	plain.DaemonSets = daemonSets("uid-DaemonSet")
	budgets.Pods, blocked.Pods = plain.Pods, plain.Pods
	for i := range 20 {
		app := goldenCovering(fmt.Sprint("app-", i))
		budgets.Budgets.Items = append(budgets.Budgets.Items, newBudget(fmt.Sprint(i), 2, app))
		blocked.Budgets.Items = append(blocked.Budgets.Items, exhausted(fmt.Sprint(i), app))
	}
	ladder := drain.Ladder{{After: time.Hour, Action: drain.IgnoreBudgets, Grace: time.Minute}}
	return map[string]benchCase{
		"pods":                   {plain, drain.Policy{}},
		"pods with rules":        {plain, drain.Policy{ClusterAPILabels: true, DoNotDisrupt: true, PodSelector: "app"}},
		"budgets":                {budgets, drain.Policy{}},
		"budgets that refuse":    {blocked, drain.Policy{Ladder: ladder}},
		"volumes not waited for": {volumes, drain.Policy{}},
	}
}

// TestStep_FullNode_AllocatesThreeTimesForEachPodAtMost asserts the limit of a pass: three
// allocations for each pod. Pods are not copied, and selectors are not parsed for each of them.
func TestStep_FullNode_AllocatesThreeTimesForEachPodAtMost(t *testing.T) {
	const runs, pods = 20, 110
	one := float64(unsafe.Sizeof(corev1.Pod{}))
	for name, c := range benchCases() {
		s, _ := drain.Step(drain.State{}, c.in, c.p, now)
		for _, state := range []drain.State{{}, s} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			allocs := testing.AllocsPerRun(runs, func() { drain.Step(state, c.in, c.p, now.Add(time.Second)) })
			runtime.ReadMemStats(&after)
			require.LessOrEqual(t, allocs, 3.0*pods, name)
			bytes := float64(after.TotalAlloc-before.TotalAlloc) / (runs + 1) / pods
			require.LessOrEqual(t, bytes, one, "%s: more bytes for each pod than a copy of one", name)
		}
	}
}

// benchApps returns pods of several applications in one namespace, each with a budget. The pods of
// an application have the same labels, or each pod has an own label.
func benchApps(pods, apps int, own bool) drain.Observation {
	in := observed()
	for i := range pods {
		pod := newPod(fmt.Sprintf("web-%05d", i), func(p *corev1.Pod) {
			p.Labels = map[string]string{"team": "shop", "tier": "web", "app": fmt.Sprint("app-", i%apps), "version": "v7"}
		})
		if own {
			pod.Labels["apps.kubernetes.io/pod-index"] = fmt.Sprint(i)
		}
		in.Pods.Items = append(in.Pods.Items, pod)
	}
	for i := range apps {
		in.Budgets.Items = append(in.Budgets.Items, newBudget(fmt.Sprintf("budget-%05d", i), 1, selecting(&metav1.LabelSelector{
			MatchLabels: map[string]string{"team": "shop", "tier": "web", "app": fmt.Sprint("app-", i)},
		})))
	}
	in.Budgets.Complete = true
	return in
}

func BenchmarkStepBySize(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("pods=%d/budgets=%d", n, n/2), func(b *testing.B) {
			in := benchApps(n, n/2, true)
			b.ReportAllocs()
			for b.Loop() {
				require.Len(b, drain.Decide(in, drain.Policy{}, now).Rows, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/pod")
		})
	}
}

// TestStep_TenTimesThePodsAndBudgets_AllocatesFifteenTimesAtMost asserts that ten times as many
// pods and budgets need at most fifteen times as many allocations.
func TestStep_TenTimesThePodsAndBudgets_AllocatesFifteenTimesAtMost(t *testing.T) {
	for _, own := range []bool{false, true} {
		allocs := func(n int) float64 {
			in := benchApps(n, n/2, own)
			return testing.AllocsPerRun(2, func() { drain.Decide(in, drain.Policy{}, now) })
		}
		require.LessOrEqual(t, allocs(2000), 15*allocs(200), "own labels: %t", own)
	}
}
