// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// simLimit is when a drain must have ended, or is left alone.
const simLimit = 6 * time.Minute

// story is one drain of a random Node, with faults, crashes and people.
type story struct {
	rand    *rand.Rand
	cluster *draintest.Cluster
	clock   *clocktesting.FakeClock
	policy  drain.Policy
	reach   drain.NodeReachability
	minimum map[string]int // by app
	blind   bool           // budgets are not observed
	crashes bool           // and the state is lost then
	people  bool           // somebody takes the fence away now and then
	lost    bool           // a crash lost the state at least once
	born    int
	state   drain.State
	plan    drain.Decision
}

func TestDrainsEndOrSayWhy(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(400) {
		s := newStory(t, seed)
		if !t.Run(fmt.Sprint("seed ", seed), s.run) {
			return
		}
		ends[s.ending()]++
	}
	t.Log(ends)
	for _, ending := range []string{"Drained", "Proceeded", "GaveUp", "blocked by DisruptionBudget", "blocked by Unmanaged", "blocked by Uncordoned"} {
		require.Greater(t, ends[ending], 3, "the stories are too tame: %v", ends)
	}
}

func newStory(t *testing.T, seed uint64) *story {
	r := rand.New(rand.NewPCG(seed, 3))
	s := &story{rand: r, clock: clocktesting.NewFakeClock(now), minimum: map[string]int{}, blind: r.IntN(3) == 0, crashes: r.IntN(2) == 0, people: r.IntN(8) == 0}
	s.cluster = draintest.New(draintest.Options{Clock: s.clock, Seed: int64(seed)}) //nolint:gosec // any seed will do
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
	s.policy = drain.Policy{
		EvictUnmanaged: r.IntN(3) > 0, EvictLocalStorage: r.IntN(3) > 0, Reassert: r.IntN(2) == 0, EscalateFrom: now,
		MaxGrace: []time.Duration{0, 0, 5 * time.Second}[r.IntN(3)],
	}
	switch r.IntN(3) {
	case 0:
		s.policy.Ladder = randomLadder(r)
	case 1:
		s.policy.Ladder = [...]drain.Ladder{
			{{After: 2 * time.Minute, Action: drain.IgnoreBudgets, Grace: time.Second}}, {{After: 2 * time.Minute, Action: drain.Proceed}},
			drain.ForMachine(now).Ladder, {{After: 3 * time.Minute, Action: drain.GiveUp}},
		}[r.IntN(4)]
	}
	if r.IntN(6) == 0 {
		s.cluster.SetNodeSilent("node-1", true)
		s.reach = drain.NodeReachability{Unreachable: r.IntN(4) > 0}
		s.policy.UnreachableLadder = [...]drain.Ladder{nil, {{After: time.Minute, Action: drain.ForceDeletePods}}, drain.ForMachine(now).UnreachableLadder}[r.IntN(3)]
	}
	s.addFaults()
	return s
}

func (s *story) addFaults() {
	for range s.rand.IntN(6) {
		kinds := []draintest.FaultKind{
			draintest.Conflict, draintest.InternalError, draintest.TooManyRequests, draintest.TimeoutAfterEffect, draintest.Timeout, draintest.Forbidden,
		}
		verbs := []string{"create", "delete", "patch", "list"}
		s.cluster.Inject(draintest.Fault{
			Kind: kinds[s.rand.IntN(len(kinds))], Verb: verbs[s.rand.IntN(len(verbs))], Skip: s.rand.IntN(4), Times: 1 + s.rand.IntN(3),
			RetryAfter: time.Duration(s.rand.IntN(20)) * time.Second,
			// what the story itself looks at is past all faults
			Match: func(c draintest.Call) bool { return c.Verb != "patch" || c.Name != "node-1" || c.Patch != nil },
		})
	}
}

func (s *story) pod(node string) *corev1.Pod {
	s.born++
	pod := newPod(fmt.Sprint("pod-", s.born), func(p *corev1.Pod) {
		p.Labels["app"] = []string{"a", "b", "c"}[s.rand.IntN(3)]
		p.Spec.NodeName = node
		p.Spec.TerminationGracePeriodSeconds = new(int64(s.rand.IntN(90)))
	})
	for i, edit := range []func(*corev1.Pod){
		unmanaged, emptyDir, mirror, ownedBy("DaemonSet"), inPhase(corev1.PodSucceeded), withFinalizer, simNotReady, withPriority(2000000000),
	} {
		if s.rand.IntN(9) == 0 && (node == "node-1" || i > 4) {
			edit(pod)
		}
	}
	return pod
}

func simNotReady(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }

func (s *story) budget(name, app string) *policyv1.PodDisruptionBudget {
	minimum := s.rand.IntN(3)
	s.minimum[app] = max(s.minimum[app], minimum)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(int32(minimum))), //nolint:gosec // small
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}},
		},
	}
}

// observe reads the cluster; a list that meets a fault is tried again.
func (s *story) observe(t *testing.T) drain.Observation {
	t.Helper()
	client := s.cluster.Client()
	in := drain.Observation{Looked: true, Reachability: s.reach}
	node, err := client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(t, err)
	in.Node = node
	var pods *corev1.PodList
	for pods == nil || err != nil {
		pods, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"})
	}
	in.Pods.Complete = true
	for i := range pods.Items {
		in.Pods.Items = append(in.Pods.Items, &pods.Items[i])
	}
	if s.blind {
		return in
	}
	var budgets *policyv1.PodDisruptionBudgetList
	for budgets == nil || err != nil {
		budgets, err = client.PolicyV1().PodDisruptionBudgets("").List(t.Context(), metav1.ListOptions{})
	}
	in.Budgets.Complete = true
	for i := range budgets.Items {
		in.Budgets.Items = append(in.Budgets.Items, &budgets.Items[i])
	}
	return in
}

// run drains until the end. Time moves only to where the plan or the cluster asks
// for it.
func (s *story) run(t *testing.T) {
	executor := runner.Executor{Client: s.cluster.Client(), Clock: s.clock, Parallel: 1}
	for steps := 0; ; steps++ {
		require.Less(t, steps, 700, "the drain runs hot: %s", s.plan)
		at := s.clock.Now()
		before := s.state
		next, plan, err := executor.Pass(t.Context(), s.state, s.observe(t), s.policy, "node-1")
		s.plan = plan
		if err != nil {
			require.False(t, plan.Over(), "what failed is not over")
			require.True(t, errorsAsFence(err) || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown, err)
		}
		if plan.Over() || at.Sub(now) > simLimit {
			break
		}
		require.True(t, plan.NextCheck.After(at), "time moves on: %s", plan)
		require.NotEmpty(t, plan.Holds(), "a drain that goes on says why")
		s.state = s.keep(t, before, next)
		s.others(t)
		due := s.cluster.Tick()
		if due.IsZero() || plan.NextCheck.Before(due) {
			due = plan.NextCheck
		}
		require.True(t, due.After(at), "time moves on")
		s.clock.SetTime(due)
		s.cluster.Tick()
	}
	s.check(t)
}

func errorsAsFence(err error) bool {
	_, is := err.(*runner.FenceError) //nolint:errorlint // exactly this
	return is
}

// keep is what is left of the state after a step: mostly all, sometimes what was written down
// before, sometimes nothing.
func (s *story) keep(t *testing.T, before, next drain.State) drain.State {
	t.Helper()
	if s.crashes && s.rand.IntN(12) == 0 {
		s.lost = true
		return []drain.State{{}, before}[s.rand.IntN(2)]
	}
	text, err := json.Marshal(next)
	require.NoError(t, err)
	var read drain.State
	require.NoError(t, json.Unmarshal(text, &read))
	return read
}

// others do what they do: controllers replace pods, people take the fence away.
func (s *story) others(t *testing.T) {
	t.Helper()
	if s.rand.IntN(6) == 0 {
		require.NoError(t, s.cluster.Add(s.pod("node-2")))
	}
	if s.people && s.rand.IntN(6) == 0 {
		_, err := s.cluster.Client().CoreV1().Nodes().Patch(t.Context(), "node-1", types.MergePatchType, []byte(`{"spec":{"unschedulable":false}}`), metav1.PatchOptions{})
		if err != nil {
			t.Log("the patch of the people met a fault:", err)
		}
	}
}

// forcedFrom is when the ladders allow the first of what is wanted, at the earliest.
func (s *story) forcedFrom(want ...drain.Escalation) time.Time {
	first := now.Add(1000 * time.Hour)
	look := func(l drain.Ladder) {
		for _, rung := range l {
			at := now.Add(rung.After)
			if slices.Contains(want, rung.Action) && at.Before(first) {
				first = at
			}
		}
	}
	look(s.policy.Ladder)
	if s.reach.Unreachable {
		look(s.policy.UnreachableLadder)
	}
	return first
}

// check looks at the end, and at everything that was written.
func (s *story) check(t *testing.T) {
	t.Helper()
	t.Log(s.plan)
	at := s.clock.Now()
	end, forced := s.forcedFrom(drain.Proceed, drain.GiveUp), s.forcedFrom(drain.IgnoreBudgets, drain.ForceDeletePods)
	if !s.lost {
		require.False(t, !s.plan.Over() && at.Sub(end) > 2*time.Minute, "a ladder that ends ends: %s", s.plan)
	}
	if s.plan.Outcome == drain.Drained {
		s.checkEmpty(t)
	}
	for _, h := range s.plan.Holds() {
		switch h.Reason {
		case drain.ReasonUnmanaged, drain.ReasonLocalStorage, drain.ReasonUncordoned, drain.ReasonWave:
		case drain.ReasonBudget, drain.ReasonBudgets, drain.ReasonBudgetNever, drain.ReasonEvict, drain.ReasonRefused, drain.ReasonAbandoned, drain.ReasonUnavailable, drain.ReasonForbidden:
			require.False(t, at.Sub(forced) > 100*time.Second && s.plan.Outcome != drain.GaveUp, "force does not wait for a budget: %v", h)
		case drain.ReasonOverdue, drain.ReasonTerminating, drain.ReasonNotFenced, machinist.Reason(drain.IgnoreBudgets), machinist.Reason(drain.ForceDeletePods):
		default:
			t.Errorf("why? %v", h)
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

// checkEmpty asserts that a Node which is called drained is.
func (s *story) checkEmpty(t *testing.T) {
	t.Helper()
	in := s.observe(t)
	require.True(t, in.Node.Spec.Unschedulable)
	for _, pod := range in.Pods.Items {
		require.True(t, leftByADrain(pod), "pod %s is still there", pod.Name)
	}
}

func leftByADrain(pod *corev1.Pod) bool {
	_, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOf(pod)
	return isMirror || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || owner != nil && owner.Kind == "DaemonSet"
}

// checkWrite asserts what no drain may ever do, given the pods before the write.
func (s *story) checkWrite(t *testing.T, w draintest.Write, pods map[types.UID]*corev1.Pod) {
	t.Helper()
	before, ok := w.Before.(*corev1.Pod)
	if !ok || !w.ByClient() {
		return
	}
	require.Equal(t, "node-1", before.Spec.NodeName, w)
	require.False(t, leftByADrain(before), "%s", w)
	if before.DeletionTimestamp == nil {
		require.True(t, s.policy.EvictUnmanaged || len(before.OwnerReferences) > 0, w)
		require.True(t, s.policy.EvictLocalStorage || len(before.Spec.Volumes) == 0, w)
	}
	after := orGone(w.After)
	own := before.Spec.TerminationGracePeriodSeconds
	if (after == nil || after.DeletionGracePeriodSeconds != nil && *after.DeletionGracePeriodSeconds == 0) && *own > 0 && w.Time.Before(s.forcedFrom(drain.ForceDeletePods)) {
		require.True(t, before.DeletionTimestamp != nil && *before.DeletionGracePeriodSeconds == 0, "I-8: %s", w)
	}
	if before.DeletionTimestamp != nil && after != nil {
		require.False(t, w.Time.Before(s.forcedFrom(drain.IgnoreBudgets, drain.ForceDeletePods)) && *after.DeletionGracePeriodSeconds < *before.DeletionGracePeriodSeconds, "without a rung nothing is shortened: %s", w)
	}
	if after != nil && after.DeletionTimestamp == nil || before.DeletionTimestamp != nil || !w.Time.Before(s.forcedFrom(drain.IgnoreBudgets, drain.ForceDeletePods)) {
		return
	}
	s.checkBudget(t, w, before, pods)
	for uid, pod := range pods {
		earlier := !critical(pod) && critical(before)
		require.False(t, uid != w.UID && earlier && pod.Spec.NodeName == "node-1" && !leftByADrain(pod), "the wave of %s is not over: %s", pod.Name, w)
	}
}

func critical(pod *corev1.Pod) bool {
	return pod.Spec.Priority != nil && *pod.Spec.Priority >= 2000000000
}

func (s *story) checkBudget(t *testing.T, w draintest.Write, before *corev1.Pod, pods map[types.UID]*corev1.Pod) {
	t.Helper()
	if !simHealthy(before) {
		return
	}
	left := 0
	for uid, pod := range pods {
		if uid != w.UID && simHealthy(pod) && pod.Labels["app"] == before.Labels["app"] {
			left++
		}
	}
	require.GreaterOrEqual(t, left, s.minimum[before.Labels["app"]], "I-8: the budget is exceeded: %s", w)
}

func orGone(obj runtime.Object) *corev1.Pod {
	pod, _ := obj.(*corev1.Pod)
	return pod
}

func simHealthy(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Conditions[0].Status == corev1.ConditionTrue
}

func (s *story) ending() string {
	if s.plan.Over() {
		return string(s.plan.Outcome)
	}
	return "blocked by " + string(s.plan.Holds()[0].Reason)
}
