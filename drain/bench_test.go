// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain"
)

// benchPods are the pods of a full Node, of 20 applications.
func benchPods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 110)
	for i := range pods {
		pods[i] = newPod(fmt.Sprintf("web-%03d", (i*37)%len(pods)), goldenLabeled(fmt.Sprintf("app-%d", i%20)))
	}
	return pods
}

// benchBudgets covers each application with a budget.
func benchBudgets(allowed int32) drain.List[*policyv1.PodDisruptionBudget] {
	list := drain.All[*policyv1.PodDisruptionBudget]()
	for i := range 20 {
		b := newBudget(fmt.Sprintf("budget-%d", i), allowed, goldenCovering(fmt.Sprintf("app-%d", i)))
		if allowed == 0 {
			b = exhausted(b.Name, goldenCovering(fmt.Sprintf("app-%d", i)))
		}
		list.Items = append(list.Items, b)
	}
	return list
}

// benchCases are the rounds of a drain that take most of its time.
func benchCases() map[string]struct {
	in drain.Observation
	p  drain.Policy
} {
	plain := observed(benchPods()...)
	budgets, blocked := plain, plain
	budgets.Budgets, blocked.Budgets = benchBudgets(2), benchBudgets(0)
	return map[string]struct {
		in drain.Observation
		p  drain.Policy
	}{
		"110 pods":                            {plain, drain.Policy{}},
		"110 pods and 20 budgets":             {budgets, drain.Policy{}},
		"110 pods and 20 budgets that refuse": {blocked, drain.Policy{Ladder: drain.Ladder{{After: time.Hour, Action: drain.IgnoreBudgets, Grace: time.Minute}}}},
	}
}

func BenchmarkDecide(b *testing.B) {
	for name, c := range benchCases() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if len(drain.Decide(c.in, c.p, now).Rows) != 110 {
					b.Fatal("rows are missing")
				}
			}
		})
	}
	b.Run("110 pods of 100000 in an index", func(b *testing.B) {
		index := make(map[string][]*corev1.Pod, 1000)
		for i := range 909 {
			index[fmt.Sprintf("node-%d", i)] = benchPods()
		}
		in := observed()
		in.Budgets = benchBudgets(2)
		b.ReportAllocs()
		for b.Loop() {
			in.Pods = drain.All(index["node-1"]...)
			if len(drain.Decide(in, drain.Policy{}, now).Rows) != 110 {
				b.Fatal("rows are missing")
			}
		}
	})
}

func BenchmarkStep(b *testing.B) {
	for name, c := range benchCases() {
		b.Run(name, func(b *testing.B) {
			s, plan := drain.Step(drain.State{}, c.in, c.p, now)
			for i, row := range plan.Rows {
				if row.Verdict == drain.Evict {
					result := drain.Result{Row: row}
					if i%2 == 0 {
						result.Err = answerRefusal("no", 0)
					}
					c.in.Results = append(c.in.Results, result)
				}
			}
			s, _ = drain.Step(s, c.in, c.p, now)
			c.in.Results = nil
			b.ReportAllocs()
			for b.Loop() {
				if _, plan := drain.Step(s, c.in, c.p, now.Add(time.Second)); len(plan.Rows) != 110 {
					b.Fatal("rows are missing")
				}
			}
		})
	}
}

// benchApps are so many pods of so many applications, each with a budget, in one namespace.
// The pods of an application have the same labels, or each has one of its own.
func benchApps(pods, apps int, own bool) drain.Observation {
	var items []*corev1.Pod
	for i := range pods {
		pod := newPod(fmt.Sprintf("web-%05d", i))
		pod.Labels = map[string]string{"team": "shop", "tier": "web", "app": fmt.Sprint("app-", i%apps), "version": "v7"}
		if own {
			pod.Labels["apps.kubernetes.io/pod-index"] = fmt.Sprint(i)
		}
		items = append(items, pod)
	}
	in := observed(items...)
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
		for _, own := range []bool{false, true} {
			b.Run(fmt.Sprintf("pods=%d/budgets=%d/own=%t", n, n/2, own), func(b *testing.B) {
				in := benchApps(n, n/2, own)
				b.ReportAllocs()
				for b.Loop() {
					if len(drain.Decide(in, drain.Policy{}, now).Rows) != n {
						b.Fatal("rows are missing")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/pod")
			})
		}
	}
}

// Ten times as many pods and budgets are at most fifteen times as many allocations.
func TestStep_TenTimesThePodsAndBudgets_AllocatesFifteenTimesAtMost(t *testing.T) {
	for _, own := range []bool{false, true} {
		allocs := func(n int) float64 {
			in := benchApps(n, n/2, own)
			return testing.AllocsPerRun(5, func() { drain.Decide(in, drain.Policy{}, now) })
		}
		few, many := allocs(200), allocs(2000)
		t.Logf("own labels %t: %.0f and %.0f allocations", own, few, many)
		if many > 15*few {
			t.Errorf("own labels %t: %.0f allocations instead of %.0f", own, many, few)
		}
	}
}

// The budget of a round: three allocations for each pod.
func TestAStepAllocatesLittle(t *testing.T) {
	for name, c := range benchCases() {
		t.Run(name, func(t *testing.T) {
			s, _ := drain.Step(drain.State{}, c.in, c.p, now)
			allocs := testing.AllocsPerRun(20, func() { drain.Step(s, c.in, c.p, now.Add(time.Second)) })
			if most := 3.0 * 110; allocs > most {
				t.Errorf("%.0f allocations, at most %.0f", allocs, most)
			}
		})
	}
}
