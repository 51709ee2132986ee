// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// simLimit is when a drain must have ended, or the simulation ends.
const simLimit = 6 * time.Minute

// sim is one drain of a random Node, with faults, crashes and users.
type sim struct {
	*world

	rand     *rand.Rand
	clock    *clocktesting.FakeClock
	policy   drain.Policy
	reach    drain.NodeReachability
	minimum  map[string]int // by app
	blind    bool           // budgets are not observed
	nodeOnly bool           // attachments are not observed either
	crashes  bool           // crashes may lose the state
	users    bool           // a user uncordons the Node sometimes
	vanishes bool           // the Node is deleted
	lost     bool           // a crash lost the state at least once
	born     int
	state    drain.State
	decision drain.Decision
	seen     string // the last write that was read
	moved    int    // the most volumes that were detached or attached at a time
	// events are the progress up to reported. waited has the pods that the drain waited for.
	events   []drain.Progress
	reported drain.Decision
	waited   map[string]bool
}

func TestPass_RandomDrains_EndOrReportWhy(t *testing.T) {
	ends := map[string]int{}
	for seed := range uint64(500) {
		s := newSim(t, seed)
		if !t.Run(fmt.Sprint("seed ", seed), s.run) {
			return
		}
		ends[s.ending()]++
	}
	t.Log(ends)
	for _, ending := range []string{
		"Drained", "Proceeded", "GaveUp", "NodeGone", "blocked by DisruptionBudget", "blocked by Unmanaged", "blocked by Uncordoned",
	} {
		require.Greater(t, ends[ending], 3, "the drains are too tame: %v", ends)
	}
}

func newSim(t *testing.T, seed uint64) *sim {
	r := rand.New(rand.NewPCG(seed, 3))
	s := &sim{
		rand: r, clock: clocktesting.NewFakeClock(now), minimum: map[string]int{}, waited: map[string]bool{},
		blind: r.IntN(3) == 0, crashes: r.IntN(2) == 0, users: r.IntN(8) == 0, vanishes: r.IntN(16) == 0,
	}
	s.policy = drain.Policy{
		EvictUnmanaged: r.IntN(3) > 0, EvictLocalStorage: r.IntN(3) > 0, Reassert: r.IntN(2) == 0, EscalateFrom: now,
		Grace: []*time.Duration{nil, nil, ptr.To(5 * time.Second)}[r.IntN(3)],
	}
	options := draintest.Options{Clock: s.clock, Seed: int64(seed)} //nolint:gosec // any seed will do
	if s.policy.Volumes.Wait = r.IntN(2) == 0; s.policy.Volumes.Wait {
		options.DetachTime, options.AttachTime, options.NodeVolumes = time.Second, time.Second, true
		s.policy.Volumes.ReattachTimeout = []time.Duration{0, time.Minute}[r.IntN(2)]
		s.nodeOnly = s.policy.Volumes.ReattachTimeout == 0 && r.IntN(3) == 0
	}
	cluster := draintest.New(options)
	s.world = &world{Cluster: cluster, client: cluster.Clientset()}
	require.NoError(t, s.Add(newNode("node-1"), newNode("node-2"), daemonSet))
	for range r.IntN(10) {
		require.NoError(t, s.Add(s.pod("node-1")...))
	}
	for _, app := range []string{"a", "b", "c", "a"} {
		if r.IntN(2) == 0 && (app != "a" || s.minimum[app] == 0 || r.IntN(4) == 0) {
			minimum := r.IntN(3)
			s.minimum[app] = max(s.minimum[app], minimum)
			require.NoError(t, s.Add(newBudget(fmt.Sprint(app, len(s.History())), app, int32(minimum)))) //nolint:gosec // small
		}
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
		s.SetNodeSilent("node-1", true)
		s.reach = drain.NodeReachability{Unreachable: r.IntN(4) > 0}
		s.policy.UnreachableLadder = [...]drain.Ladder{nil, {{After: time.Minute, Action: drain.ForceDeletePods}}, drain.ForMachine(now).UnreachableLadder}[r.IntN(3)]
	}
	s.addFaults()
	return s
}

// randomLadder returns a ladder that is valid.
func randomLadder(r *rand.Rand) drain.Ladder {
	var l drain.Ladder
	after, grace := time.Duration(0), 90*time.Second
	escalations := []drain.Escalation{drain.IgnoreBudgets, drain.IgnoreBudgets, drain.ForceDeletePods}
	for range r.IntN(4) {
		after += time.Duration(r.IntN(3)) * time.Minute
		grace = max(grace/2, time.Second)
		l = append(l, drain.Rung{After: after, Action: escalations[r.IntN(3)], Grace: []time.Duration{0, grace}[r.IntN(2)]})
	}
	if r.IntN(2) == 0 {
		after += time.Duration(r.IntN(3)) * time.Minute
		l = append(l, drain.Rung{After: after, Action: []drain.Escalation{drain.Proceed, drain.GiveUp}[r.IntN(2)]})
	}
	return l
}

func (s *sim) addFaults() {
	kinds := []draintest.FaultKind{
		draintest.Conflict, draintest.InternalError, draintest.TooManyRequests, draintest.TimeoutAfterEffect, draintest.Timeout, draintest.Forbidden,
	}
	verbs := []string{"create", "delete", "patch", "list"}
	if s.policy.Volumes.ReattachTimeout > 0 { // without attachments volumes do not wait for each other
		verbs = verbs[:3]
	}
	for range s.rand.IntN(6) {
		s.Inject(draintest.Fault{
			Kind: kinds[s.rand.IntN(len(kinds))], Verb: verbs[s.rand.IntN(len(verbs))], Skip: s.rand.IntN(4), Times: 1 + s.rand.IntN(3),
			RetryAfter: time.Duration(s.rand.IntN(20)) * time.Second,
		})
	}
}

// pod returns a pod, sometimes with a volume.
func (s *sim) pod(node string) []runtime.Object {
	s.born++
	pod := newPod(fmt.Sprint("pod-", s.born), onNode(node), ofApp([]string{"a", "b", "c"}[s.rand.IntN(3)]))
	pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(s.rand.IntN(90)))
	finalizer := func(p *corev1.Pod) { p.Finalizers = []string{"example.com/job-tracking"} }
	notReady := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	for i, edit := range []func(*corev1.Pod){unmanaged, emptyDir, mirror, ownedBy("DaemonSet"), succeeded, finalizer, notReady, critical} {
		if s.rand.IntN(9) == 0 && (node == "node-1" || i > 4) {
			edit(pod)
		}
	}
	objects := []runtime.Object{pod}
	if s.policy.Volumes.Wait && node == "node-1" && s.rand.IntN(2) == 0 && pod.Status.Phase == corev1.PodRunning && pod.Annotations == nil {
		withClaim(pod.Name)(pod)
		objects = append(objects, newVolume(pod.Name, node)...)
	}
	return objects
}

// look observes the cluster. It repeats a list that fails.
func (s *sim) look(t *testing.T) drain.Observation {
	t.Helper()
	in, err := drain.Observation{}, errors.New("not yet")
	for err != nil {
		in, err = runner.Observe(t.Context(), runner.NewClient(s.client), "node-1", s.policy, s.state)
	}
	in.Reachability = s.reach
	if s.blind {
		in.Budgets = drain.List[*policyv1.PodDisruptionBudget]{}
	}
	if s.nodeOnly {
		in.Attachments = drain.List[*storagev1.VolumeAttachment]{}
	}
	return in
}

// run drains until the end. The clock advances to the next time of the decision or the cluster.
func (s *sim) run(t *testing.T) {
	for steps := 0; ; steps++ {
		require.Less(t, steps, 700, "the drain makes too many steps: %s", s.decision)
		at := s.clock.Now()
		before := s.state
		next, d, err := s.pass(t, s.state, s.look(t), s.policy)
		s.decision = d
		s.notice(d, at)
		if err != nil {
			cordon := strings.HasPrefix(err.Error(), "drain: cordon node ")
			require.False(t, d.Over(), "a drain with an error has not ended")
			require.True(t, cordon || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown, err)
		}
		if d.Over() || at.Sub(now) > simLimit {
			break
		}
		require.True(t, d.NextCheck.After(at), "time moves on: %s", d)
		require.NotEmpty(t, d.Holds(), "a drain that waits has a hold")
		s.state = s.keep(t, before, next)
		s.others(t)
		due := s.Tick()
		if due.IsZero() || d.NextCheck.Before(due) {
			due = d.NextCheck
		}
		require.True(t, due.After(at), "time moves on")
		s.clock.SetTime(due)
		s.Tick()
		s.replace(t)
	}
	s.check(t)
	if !s.lost {
		s.checkEvents(t)
	}
}

// keep returns the state after a step: mostly the same, sometimes an older one, sometimes none.
func (s *sim) keep(t *testing.T, before, next drain.State) drain.State {
	t.Helper()
	if s.crashes && s.rand.IntN(12) == 0 {
		s.lost = true
		return []drain.State{{}, before}[s.rand.IntN(2)]
	}
	return stored(t, next)
}

// others makes the writes of other clients: controllers create pods, users uncordon the Node.
func (s *sim) others(t *testing.T) {
	t.Helper()
	nodes := s.Client().CoreV1().Nodes()
	if s.rand.IntN(6) == 0 {
		require.NoError(t, s.Add(s.pod("node-2")...))
	}
	if s.users && s.rand.IntN(6) == 0 {
		if _, err := nodes.Patch(t.Context(), "node-1", types.MergePatchType, []byte(`{"spec":{"unschedulable":false}}`), metav1.PatchOptions{}); err != nil {
			t.Log("the patch of the user failed:", err)
		}
	}
	if s.vanishes && s.rand.IntN(6) == 0 {
		if err := nodes.Delete(t.Context(), "node-1", metav1.DeleteOptions{}); err != nil {
			t.Log("the deletion failed:", err)
		}
	}
}

// replace recreates deleted pods with volumes on the other Node.
func (s *sim) replace(t *testing.T) {
	t.Helper()
	for _, w := range s.HistorySince(s.seen) {
		s.seen = w.ResourceVersion
		pod, ok := w.Before.(*corev1.Pod)
		if !ok || w.After != nil || len(pod.Spec.Volumes) == 0 || len(pod.OwnerReferences) == 0 {
			continue
		}
		again := newPod(pod.Name+"-again", onNode("node-2"), ofApp(pod.Labels["app"]))
		again.Spec.Volumes = pod.Spec.Volumes
		require.NoError(t, s.Add(again))
	}
}

// notice collects the progress up to a decision, and counts volumes that are detached or attached.
func (s *sim) notice(d drain.Decision, at time.Time) {
	s.events = append(s.events, drain.Compare(s.reported, d, nil, at)...)
	if d.Reason != drain.ReasonNotObserved {
		s.reported = d
	}
	moved := 0
	for i := range d.Rows {
		row := &d.Rows[i]
		if row.Action != drain.Ignore && !d.Over() {
			s.waited["pod/"+row.Namespace+"/"+row.Name] = true
		}
		if row.Reason == drain.ReasonTerminating {
			for _, volume := range s.state.Volumes {
				if volume.Pod == row.UID {
					moved++
					break
				}
			}
		}
	}
	for _, v := range d.Volumes {
		if v.Reason == "Detaching" || v.Reason == "Reattaching" && v.Action == drain.Wait {
			moved++
		}
	}
	if at.Before(s.forcedFrom(drain.IgnoreBudgets, drain.ForceDeletePods)) {
		s.moved = max(s.moved, moved)
	}
}

// checkEvents compares the progress with the decisions.
func (s *sim) checkEvents(t *testing.T) {
	t.Helper()
	count := map[string]int{}
	for i, e := range s.events {
		count[string(e.Type)]++
		count[string(e.Type)+" "+e.Subject]++
		require.Equal(t, i == 0, e.Type == drain.ProgressStarted, "%v", s.events)
		require.Equal(t, i == len(s.events)-1 && s.decision.Over(), e.Type == drain.ProgressEnded, "%v", s.events)
	}
	if s.decision.Outcome != drain.NodeGone {
		require.Equal(t, len(s.reported.Rungs), count["Escalated"], "%v", s.events)
	}
	for subject := range s.waited {
		ends := count["Gone "+subject] + count["Left "+subject]
		require.LessOrEqual(t, ends, 1, "%s: %v", subject, s.events)
		if s.decision.Over() && s.decision.Outcome != drain.NodeGone {
			require.Equal(t, 1, ends, "%s: %v", subject, s.events)
		}
	}
}

// forcedFrom returns the earliest time at which the ladders allow one of the escalations.
func (s *sim) forcedFrom(want ...drain.Escalation) time.Time {
	first := now.Add(1000 * time.Hour)
	look := func(l drain.Ladder) {
		for _, rung := range l {
			if at := now.Add(rung.After); slices.Contains(want, rung.Action) && at.Before(first) {
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

// check checks the end and all writes.
func (s *sim) check(t *testing.T) {
	t.Helper()
	t.Log(s.decision)
	at := s.clock.Now()
	end, forced := s.forcedFrom(drain.Proceed, drain.GiveUp), s.forcedFrom(drain.IgnoreBudgets, drain.ForceDeletePods)
	if !s.lost {
		require.False(t, !s.decision.Over() && at.Sub(end) > 2*time.Minute, "the ladder has ended, and the drain has not: %s", s.decision)
		require.True(t, s.policy.Volumes.ReattachTimeout == 0 || s.reach.Unreachable || s.moved <= 1, "pods with volumes are evicted one at a time: %d", s.moved)
	}
	if s.decision.Outcome == drain.Drained {
		s.checkEmpty(t)
	}
	for _, h := range s.decision.Holds() {
		if strings.Contains(h.Message, "injected") {
			continue
		}
		switch h.Reason {
		case drain.ReasonUnmanaged, drain.ReasonLocalStorage, drain.ReasonUncordoned, "Wave":
		case drain.ReasonBudget, drain.ReasonBudgets, drain.ReasonBudgetNever, drain.ReasonEvict, "Refused", drain.ReasonAbandoned, "Unavailable", "Forbidden":
			require.False(t, at.Sub(forced) > 100*time.Second && s.decision.Outcome != drain.GaveUp, "a deletion waits for a budget: %v", h)
		case drain.ReasonOverdue, drain.ReasonTerminating, drain.ReasonNotCordoned, machinist.Reason(drain.IgnoreBudgets), machinist.Reason(drain.ForceDeletePods):
		case "InUse", "Detaching", "Reattaching":
			require.True(t, s.policy.Volumes.Wait, "%v", h)
		default:
			t.Errorf("why? %v", h)
		}
	}
	pods := map[types.UID]*corev1.Pod{}
	for _, w := range s.History() {
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

// checkEmpty asserts that a drained Node has only pods and volumes that stay.
func (s *sim) checkEmpty(t *testing.T) {
	t.Helper()
	in := s.look(t)
	require.True(t, in.Node.Spec.Unschedulable)
	claims := ""
	for _, pod := range in.Pods.Items {
		require.True(t, staysOn(pod), "pod %s still exists", pod.Name)
		claims += "pv-" + pod.Name + " "
	}
	if !s.policy.Volumes.Wait {
		return
	}
	attachments, err := (*storagev1.VolumeAttachmentList)(nil), errors.New("not yet")
	for err != nil { // an injected fault
		attachments, err = s.Client().StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
	}
	for _, va := range attachments.Items {
		require.True(t, va.Spec.NodeName == "node-2" || strings.Contains(claims, *va.Spec.Source.PersistentVolumeName+" "), "%s is left", va.Name)
	}
}

func staysOn(pod *corev1.Pod) bool {
	_, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	owner := metav1.GetControllerOf(pod)
	return isMirror || pod.Status.Phase == corev1.PodSucceeded || owner != nil && owner.Kind == "DaemonSet"
}

// checkWrite asserts what no drain may do, given the pods before the write.
func (s *sim) checkWrite(t *testing.T, w draintest.Write, pods map[types.UID]*corev1.Pod) {
	t.Helper()
	before, ok := w.Before.(*corev1.Pod)
	if !ok || !w.ByClient() {
		return
	}
	require.Equal(t, "node-1", before.Spec.NodeName, w)
	require.False(t, staysOn(before), "%s", w)
	if before.DeletionTimestamp == nil {
		data := slices.ContainsFunc(before.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })
		require.True(t, s.policy.EvictUnmanaged || len(before.OwnerReferences) > 0, w)
		require.True(t, s.policy.EvictLocalStorage || !data, w)
	}
	after, _ := w.After.(*corev1.Pod)
	own := before.Spec.TerminationGracePeriodSeconds
	if (after == nil || after.DeletionGracePeriodSeconds != nil && *after.DeletionGracePeriodSeconds == 0) && *own > 0 && w.Time.Before(s.forcedFrom(drain.ForceDeletePods)) {
		require.True(t, before.DeletionTimestamp != nil && *before.DeletionGracePeriodSeconds == 0, "a pod is force-deleted before its rung: %s", w)
	}
	early := w.Time.Before(s.forcedFrom(drain.IgnoreBudgets, drain.ForceDeletePods))
	if before.DeletionTimestamp != nil && after != nil {
		require.False(t, early && *after.DeletionGracePeriodSeconds < *before.DeletionGracePeriodSeconds, "a grace period is shortened before its rung: %s", w)
	}
	if after != nil && after.DeletionTimestamp == nil || before.DeletionTimestamp != nil || !early {
		return
	}
	left := 0
	for uid, pod := range pods {
		if uid == w.UID {
			continue
		}
		if healthy(pod) && pod.Labels["app"] == before.Labels["app"] {
			left++
		}
		earlier := pod.Spec.Priority == nil && before.Spec.Priority != nil
		require.False(t, earlier && pod.Spec.NodeName == "node-1" && !staysOn(pod), "the wave of %s is not over: %s", pod.Name, w)
	}
	require.True(t, !healthy(before) || left >= s.minimum[before.Labels["app"]], "the budget is exceeded: %s", w)
}

func healthy(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Conditions[0].Status == corev1.ConditionTrue
}

func (s *sim) ending() string {
	if s.decision.Over() {
		return string(s.decision.Outcome)
	}
	return "blocked by " + string(s.decision.Holds()[0].Reason)
}

// TestApply_RandomBudgets_AreSpentAsTheAPIServerDoes asserts that the API server allows every
// eviction of a decision, and refuses every eviction that the decision holds for a budget.
func TestApply_RandomBudgets_AreSpentAsTheAPIServerDoes(t *testing.T) {
	reasons := map[machinist.Reason]int{}
	for seed := range uint64(400) {
		d := rand.New(rand.NewPCG(seed, 11))
		cluster := draintest.New(draintest.Options{Clock: clocktesting.NewFakeClock(now), ManualBudgets: true})
		w := &world{Cluster: cluster, client: cluster.Clientset()}
		require.NoError(t, w.Add(newNode("node-1", cordoned)))
		for i := range d.IntN(5) {
			require.NoError(t, w.Add(randomBudget(d, fmt.Sprintf("budget-%d", i))))
		}
		for i := range d.IntN(12) {
			require.NoError(t, w.Add(randomBudgetPod(d, fmt.Sprintf("pod-%02d", i))))
		}
		decision := drain.Decide(w.observe(t), drain.Policy{}, now)
		results, err := w.executor().Apply(t.Context(), decision)
		require.NoError(t, err)
		for _, result := range results {
			require.NoError(t, result.Err, "seed %d: %s", seed, result.Row)
			reasons[result.Row.Reason]++
		}
		for _, row := range decision.Rows {
			if row.Action != drain.Wait || row.Reason == drain.ReasonTerminating {
				continue
			}
			reasons[row.Reason]++
			err := w.client.CoreV1().Pods(row.Namespace).EvictV1(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: row.Namespace, Name: row.Name}})
			require.Error(t, err, "seed %d: %s", seed, row)
		}
	}
	for _, reason := range []machinist.Reason{drain.ReasonEvict, drain.ReasonBudget, drain.ReasonBudgets, drain.ReasonBudgetNever} {
		require.Positive(t, reasons[reason], "reason %s occurs", reason)
	}
}

func randomBudget(d *rand.Rand, name string) *policyv1.PodDisruptionBudget {
	b := newBudget(name, []string{"web", "db", "api"}[d.IntN(3)], 3)
	switch d.IntN(8) {
	case 0:
		b.Spec.Selector = &metav1.LabelSelector{}
	case 1, 2:
		b.Spec.Selector = nil
	case 3:
		b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"web", "db", "api"}}}}
	}
	if d.IntN(3) == 0 {
		b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	}
	allowed := d.Int32N(4)
	b.Spec.MinAvailable = ptr.To(intstr.FromInt32(3 - allowed))
	b.Namespace, b.Generation = []string{"shop", "bar"}[d.IntN(2)], 1
	b.Status = policyv1.PodDisruptionBudgetStatus{
		DisruptionsAllowed: allowed, CurrentHealthy: d.Int32N(4), DesiredHealthy: d.Int32N(4), ExpectedPods: 3, ObservedGeneration: int64(min(1, d.IntN(8))),
	}
	return b
}

func randomBudgetPod(d *rand.Rand, name string) *corev1.Pod {
	pod := newPod(name, ofApp([]string{"web", "db", "api", "cache"}[d.IntN(4)]), func(p *corev1.Pod) { p.Spec.Priority = ptr.To(d.Int32N(3)) })
	pod.ResourceVersion, pod.Namespace = "", []string{"shop", "bar"}[d.IntN(2)]
	if d.IntN(4) == 0 {
		pod.Status.Conditions = nil
	}
	if d.IntN(8) == 0 {
		pod.Status.Phase = corev1.PodPending
	}
	if d.IntN(8) == 0 {
		pod.Labels = nil
	}
	return pod
}
