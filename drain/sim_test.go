// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
)

// story is one drain of a random Node, with faults and crashes.
type story struct {
	rand    *rand.Rand
	cluster *draintest.Cluster
	clock   *clocktesting.FakeClock
	policy  drain.Policy
	minimum map[string]int // by app
	silent  bool
	born    int
	limit   time.Time // when the drain must have ended, or is given up
	plan    drain.Plan
}

func TestDrainsEndOrSayWhy(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(320) {
		s := newStory(t, seed)
		if !t.Run(fmt.Sprint("seed ", seed), s.run) {
			return
		}
		ends[s.ending()]++
	}
	t.Log(ends)
	for _, ending := range []string{"drained", "drained by force", "blocked"} {
		require.Greater(t, ends[ending], 20, "the stories are too tame")
	}
}

func newStory(t *testing.T, seed uint64) *story {
	r := rand.New(rand.NewPCG(seed, 3))
	s := &story{rand: r, clock: clocktesting.NewFakeClock(now), minimum: map[string]int{}, limit: now.Add(5 * time.Minute)}
	s.cluster = draintest.New(draintest.Options{Clock: s.clock, Seed: int64(seed)})
	require.NoError(t, s.cluster.Add(openNode()))
	for range r.IntN(10) {
		require.NoError(t, s.cluster.Add(s.pod("node-1")))
	}
	for _, app := range []string{"a", "b", "c"} {
		if r.IntN(2) == 0 {
			require.NoError(t, s.cluster.Add(s.budget(app, app)))
		}
	}
	if r.IntN(8) == 0 {
		require.NoError(t, s.cluster.Add(s.budget("second", "a")))
	}
	s.policy = drain.Policy{EvictUnmanaged: r.IntN(3) > 0, EvictLocalStorage: r.IntN(3) > 0}
	if r.IntN(2) == 0 {
		s.policy.ForceAt = now.Add(2 * time.Minute)
	}
	if s.silent = r.IntN(8) == 0; s.silent {
		s.cluster.SetNodeSilent("node-1", true)
		s.policy.NodeUnreachable = r.IntN(2) == 0
	}
	for range r.IntN(6) {
		kinds := []draintest.FaultKind{
			draintest.Conflict, draintest.InternalError, draintest.TooManyRequests, draintest.TimeoutAfterEffect, draintest.Timeout, draintest.Forbidden,
		}
		verbs := []string{"create", "delete", "patch"} // what only reads is past all faults
		s.cluster.Inject(draintest.Fault{
			Kind: kinds[r.IntN(len(kinds))], Verb: verbs[r.IntN(len(verbs))], Skip: r.IntN(4), Times: 1 + r.IntN(3),
			RetryAfter: time.Duration(r.IntN(20)) * time.Second,
		})
	}
	return s
}

func (s *story) pod(node string) *corev1.Pod {
	s.born++
	pod := newPod(fmt.Sprint("pod-", s.born), func(p *corev1.Pod) {
		p.Labels["app"] = []string{"a", "b", "c"}[s.rand.IntN(3)]
		p.Spec.NodeName = node
		p.Spec.TerminationGracePeriodSeconds = new(int64(s.rand.IntN(90)))
	})
	for i, edit := range []func(*corev1.Pod){unmanaged, emptyDir, mirror, ownedBy("DaemonSet"), inPhase(corev1.PodSucceeded), withFinalizer, notReady} {
		if s.rand.IntN(9) == 0 && (node == "node-1" || i > 4) {
			edit(pod)
		}
	}
	return pod
}

func notReady(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func (s *story) budget(name, app string) *policyv1.PodDisruptionBudget {
	minimum := s.rand.IntN(3)
	s.minimum[app] = max(s.minimum[app], minimum)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt(minimum)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}
}

// run drains until the end. Time moves only to where the plan or the cluster asks
// for it.
func (s *story) run(t *testing.T) {
	client := s.cluster.Client()
	var answers drain.Answers
	for steps := 0; ; steps++ {
		require.Less(t, steps, 500, "the drain runs hot")
		if s.rand.IntN(10) == 0 {
			answers = nil // a crash
		}
		at := s.clock.Now()
		in := observation(t, s.cluster, answers)
		s.plan = drain.Decide(in, s.policy, at)
		if s.plan.Done || at.After(s.limit) {
			break
		}
		require.True(t, s.plan.Cordon != "" || len(s.plan.Holds()) > 0, "a drain that goes on says why")
		results, err := drain.Carry(t.Context(), client, s.plan)
		if err != nil {
			require.ErrorAs(t, err, new(*drain.CordonError))
		}
		answers = answers.After(s.plan, results, s.policy, at)
		if s.rand.IntN(6) == 0 { // a controller replaces what has gone
			require.NoError(t, s.cluster.Add(s.pod("node-2")))
		}
		next := s.cluster.Tick()
		if !s.plan.NextCheck.IsZero() && (next.IsZero() || s.plan.NextCheck.Before(next)) {
			next = s.plan.NextCheck
		}
		if next.IsZero() {
			if len(results) > 0 || s.plan.Cordon != "" {
				continue // our own writes wake us
			}
			break // everything is blocked
		}
		require.True(t, next.After(at), "time moves on")
		s.clock.SetTime(next)
		s.cluster.Tick()
	}
	s.check(t)
}

// check looks at the end, and at everything that was written.
func (s *story) check(t *testing.T) {
	t.Log(s.plan)
	for _, row := range s.plan.Holds() {
		require.NotEmpty(t, row.Name)
		switch row.Reason {
		case drain.ReasonUnmanaged, drain.ReasonLocalStorage:
			require.Equal(t, drain.Block, row.Verdict)
		case drain.ReasonBudget, drain.ReasonRefused, drain.ReasonEvict: // Refused: two budgets
			require.True(t, s.policy.ForceAt.IsZero() && !s.policy.NodeUnreachable, "force does not wait for a budget: %s", row)
		case drain.ReasonOverdue, drain.ReasonTerminating:
			require.True(t, s.policy.ForceAt.IsZero() && !s.policy.NodeUnreachable, "force does not wait for ever: %s", row)
		default:
			t.Errorf("why? %s", row)
		}
	}
	pods := map[types.UID]*corev1.Pod{}
	for _, w := range s.cluster.History() {
		if w.Resource.Resource != "pods" {
			continue
		}
		s.checkWrite(t, w, pods)
		if pod, ok := w.After.(*corev1.Pod); ok {
			pods[w.UID] = pod
		} else {
			delete(pods, w.UID)
		}
	}
}

// checkWrite asserts what no drain may ever do, given the pods before the write.
func (s *story) checkWrite(t *testing.T, w draintest.Write, pods map[types.UID]*corev1.Pod) {
	before, ok := w.Before.(*corev1.Pod)
	if !ok || w.Actor != draintest.Client {
		return
	}
	require.Equal(t, "node-1", before.Spec.NodeName, w)
	force := s.policy.NodeUnreachable || !s.policy.ForceAt.IsZero() && !w.Time.Before(s.policy.ForceAt)
	if before.DeletionTimestamp == nil {
		require.True(t, s.policy.EvictUnmanaged || len(before.OwnerReferences) > 0, w)
		require.True(t, s.policy.EvictLocalStorage || len(before.Spec.Volumes) == 0, w)
	}
	after := orGone(w.After)
	if force || before.DeletionTimestamp != nil || after != nil && after.DeletionTimestamp == nil || !healthy(before) {
		return
	}
	left := 0
	for uid, pod := range pods {
		if uid != w.UID && healthy(pod) && pod.Labels["app"] == before.Labels["app"] {
			left++
		}
	}
	require.GreaterOrEqual(t, left, s.minimum[before.Labels["app"]], "the budget is exceeded: %s", w)
}

func orGone(obj runtime.Object) *corev1.Pod {
	pod, _ := obj.(*corev1.Pod)
	return pod
}

func healthy(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Conditions[0].Status == corev1.ConditionTrue
}

func (s *story) ending() string {
	switch {
	case !s.plan.Done:
		return "blocked"
	case s.policy.NodeUnreachable || !s.policy.ForceAt.IsZero() && !s.clock.Now().Before(s.policy.ForceAt):
		return "drained by force"
	default:
		return "drained"
	}
}
