// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	claimnames "github.com/machinist-dev/machinist/internal/claims"
)

// checkLaws asserts the laws of every step, and returns its results.
func checkLaws(t *testing.T, s drain.State, in drain.Observation, p drain.Policy) (drain.State, drain.Decision) {
	t.Helper()
	stateBefore, before := copyState(s), copyObservation(in)
	next, plan := drain.Step(s, in, p, now)
	require.True(t, reflect.DeepEqual(before, in), "the input is not changed")
	require.True(t, reflect.DeepEqual(stateBefore, s), "the state is not changed")

	shuffled := copyObservation(in)
	reverse(&shuffled)
	againState, again := drain.Step(s, shuffled, p, now)
	if !reflect.DeepEqual(plan, again) {
		t.Fatalf("the order of lists does not matter, and the same input gives the same plan: %s", cmp.Diff(plan, again))
	}
	if distinctResults(in.Results) {
		require.True(t, reflect.DeepEqual(next, againState), "the order of lists does not matter for the state")
	}
	checkPlan(t, in, p, plan)
	for i := range plan.Rows {
		checkRow(t, in, p, plan, &plan.Rows[i])
	}
	checkVolumes(t, in, p, plan)
	return next, plan
}

// checkPlan asserts the laws of a plan as a whole. tables_test.go has those of the rows of tables.
func checkPlan(t *testing.T, in drain.Observation, p drain.Policy, plan drain.Decision) {
	t.Helper()
	holds := plan.Holds()
	if plan.Over() {
		require.True(t, plan.NextCheck.IsZero(), "an ended drain has no next check")
		require.Nil(t, plan.Cordon)
		require.Empty(t, plan.Next)
	}
	for _, h := range holds {
		require.NotEmpty(t, h.Subject)
		require.NotEmpty(t, h.Reason)
	}
	for _, g := range plan.Gates {
		requireReason(t, "gate", g.Reason)
	}
	if plan.Reason != "" && plan.Reason != machinist.Reason(plan.Outcome) {
		requireReason(t, "decision", plan.Reason)
	}
	if plan.Cordon != nil {
		require.False(t, plan.Cordon.Cordon.OutOfService, "its pods may run")
	}
	require.Contains(t, outcomeLaws, plan.Outcome)
	outcomeLaws[plan.Outcome](t, in, p, plan)
	var incomplete []drain.Source
	for _, source := range p.Sources() {
		require.Contains(t, sourceLaws, source)
		if !sourceLaws[source](&in) {
			incomplete = append(incomplete, source)
		}
	}
	require.Equal(t, incomplete, plan.NotEvaluated)
	for _, e := range drain.Compare(drain.Decision{}, plan, in.Results, now) {
		require.Contains(t, progressLaws, e.Type)
		require.True(t, progressLaws[e.Type](e), e)
	}
	require.True(t, slices.IsSortedFunc(plan.Rows, func(a, b drain.Row) int {
		return slices.Compare([]string{a.Namespace, a.Name, string(a.UID)}, []string{b.Namespace, b.Name, string(b.UID)})
	}))
}

// checkRow asserts the laws of the row of a pod.
func checkRow(t *testing.T, in drain.Observation, p drain.Policy, plan drain.Decision, row *drain.Row) {
	t.Helper()
	if row.Action != drain.Block || plan.Outcome != drain.GaveUp { // which blocks all pods that are left
		requireReason(t, "pod "+string(row.Action), row.Reason)
	}
	require.False(t, !row.Until.IsZero() && !row.Until.After(now), "until is in the future: %s", row)
	require.False(t, !row.NextAt.IsZero() && !row.NextAt.After(now), "the next rung is in the future: %s", row)
	require.Equal(t, row.Next == "", row.NextAt.IsZero())
	if row.Action != drain.Ignore && !plan.Over() {
		require.False(t, !row.Until.IsZero() && plan.NextCheck.After(row.Until), "the next check is no later than any row's")
		require.False(t, !row.NextAt.IsZero() && plan.NextCheck.After(row.NextAt), "the next check is no later than the next rung")
	}
	copies := slices.DeleteFunc(slices.Clone(in.Pods.Items), func(pod *corev1.Pod) bool {
		return pod == nil || pod.Name != row.Name || pod.UID != row.UID
	})
	require.NotEmpty(t, copies, "no row without pod")
	require.Contains(t, actionLaws, row.Action)
	law := actionLaws[row.Action]
	require.Equal(t, law.request, row.Action.IsRequest())
	if !law.request {
		require.Nil(t, row.Grace)
		return
	}
	require.False(t, row.Until.IsZero(), "a request is repeated: %s", row)
	require.False(t, plan.Over(), "an ended drain makes no request")
	require.False(t, row.Grace != nil && *row.Grace < law.grace, "%s", row)
	require.True(t, row.Action == drain.Evict || slices.ContainsFunc(allowedAt(p, in), func(e drain.Escalation) bool {
		return slices.Contains(escalationLaws[e].allows, row.Action)
	}), "a deletion needs a rung: %s", row)
	for i := range plan.Rows {
		other := &plan.Rows[i]
		require.False(t, row.Action == drain.Evict && other.Action != drain.Ignore && other.Wave < row.Wave, "%s before %s", row, other)
	}
	for _, pod := range copies {
		for rule, keeps := range ruleLaws {
			superseded := slices.ContainsFunc(copies, func(other *corev1.Pod) bool { return newer(other, pod) })
			require.False(t, keeps(pod, p) && !superseded, "%s: %s", rule, row)
		}
		protected := pod.DeletionTimestamp == nil && (!p.EvictUnmanaged && pod.OwnerReferences == nil ||
			!p.EvictLocalStorage && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil }))
		superseded := slices.ContainsFunc(copies, func(other *corev1.Pod) bool { return newer(other, pod) })
		_, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]

		atKubelet := pod.DeletionTimestamp != nil && (pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds > 0)
		left := isMirror || pod.Status.Phase == corev1.PodFailed && !atKubelet || pod.Spec.NodeName != "node-1" || pod.Name == ""
		require.False(t, (protected || left) && !superseded, "protected pods stay: %s", row)
	}
}

// checkVolumes asserts the laws of the rows of volumes.
func checkVolumes(t *testing.T, in drain.Observation, p drain.Policy, plan drain.Decision) {
	t.Helper()
	if !p.Volumes.Wait {
		require.Empty(t, plan.Volumes)
		return
	}
	kept, reasons, descents := keptVolumes(in, plan), map[string]machinist.Reason{}, 0
	for i, v := range plan.Volumes {
		requireReason(t, "volume "+string(v.Action), v.Reason)
		require.False(t, v.Action == drain.Wait && kept[v.Volume], "waits for a volume that stays: %v", v)
		if i > 0 && plan.Volumes[i-1].Volume > v.Volume {
			require.Empty(t, v.Attachment, "attached volumes are sorted: %v", plan.Volumes)
			descents++ // to the volumes of the state, which are sorted too
		}
		reasons[v.Volume] = v.Reason
	}
	require.LessOrEqual(t, descents, 1, "no order: %v", plan.Volumes)
	for _, va := range in.Attachments.Items {
		if plan.Reason != "" || va == nil || va.Spec.NodeName != "node-1" || va.Spec.Source.PersistentVolumeName == nil || *va.Spec.Source.PersistentVolumeName == "" {
			continue
		}
		name := *va.Spec.Source.PersistentVolumeName
		require.NotEmpty(t, reasons[name], "volume %s has no row", name)
		if plan.Outcome == drain.Drained {
			require.EqualValues(t, "Stays", reasons[name], "drained with %s", name)
		}
	}
}

// keptVolumes returns the volumes of pods that stay, in the obvious way.
func keptVolumes(in drain.Observation, plan drain.Decision) map[string]bool {
	kept := map[string]bool{}
	for _, pod := range in.Pods.Items {
		if pod == nil || slices.ContainsFunc(in.Pods.Items, func(other *corev1.Pod) bool {
			return other != nil && other.Name == pod.Name && other.UID == pod.UID && newer(other, pod)
		}) {
			continue
		}
		stays := slices.ContainsFunc(plan.Rows, func(row drain.Row) bool {
			return row.Name == pod.Name && row.UID == pod.UID && row.Action == drain.Ignore && (row.Reason == "Stays" || row.Reason == "Rule")
		})
		for _, v := range pod.Spec.Volumes {
			for _, claim := range in.Claims.Items {
				kept[claim.Spec.VolumeName] = kept[claim.Spec.VolumeName] || stays && claimnames.Name(pod, &v) == claim.Name && pod.Status.Phase == corev1.PodRunning
			}
		}
	}
	delete(kept, "")
	return kept
}

// allowedAt returns the escalations of the ladders that apply, whether their rungs are reached or not.
func allowedAt(p drain.Policy, in drain.Observation) []drain.Escalation {
	var allowed []drain.Escalation
	for _, l := range []drain.Ladder{p.Ladder, p.UnreachableLadder} {
		for _, rung := range l {
			if l.Validate() == nil {
				allowed = append(allowed, rung.Action)
			}
		}
		if !in.Reachability.Unreachable {
			break
		}
	}
	return allowed
}

func newer(a, b *corev1.Pod) bool {
	return len(a.ResourceVersion) > len(b.ResourceVersion) ||
		len(a.ResourceVersion) == len(b.ResourceVersion) && a.ResourceVersion > b.ResourceVersion
}

func distinctResults(results []drain.Result) bool {
	seen := map[types.UID]bool{}
	for _, r := range results {
		if seen[r.Row.UID] {
			return false
		}
		seen[r.Row.UID] = true
	}
	return true
}

// reverse reverses all lists whose order does not matter. Results of one pod keep their order.
func reverse(in *drain.Observation) {
	slices.Reverse(in.Pods.Items)
	slices.Reverse(in.Budgets.Items)
	slices.Reverse(in.DaemonSets.Items)
	slices.Reverse(in.Attachments.Items)
	slices.Reverse(in.Claims.Items)
	slices.Reverse(in.Volumes.Items)
	if in.Node != nil {
		slices.Reverse(in.Node.Status.VolumesAttached)
	}
	if distinctResults(in.Results) {
		slices.Reverse(in.Results)
	}
}

func copyState(s drain.State) drain.State {
	s.Reached, s.UnreachableReached = slices.Clone(s.Reached), slices.Clone(s.UnreachableReached)
	s.Pods, s.Responses, s.Volumes = maps.Clone(s.Pods), maps.Clone(s.Responses), maps.Clone(s.Volumes)
	return s
}

func copyItems[T interface{ DeepCopy() T }](l drain.List[T]) drain.List[T] {
	l.Items = slices.Clone(l.Items)
	for i, item := range l.Items {
		l.Items[i] = item.DeepCopy()
	}
	return l
}

func copyObservation(in drain.Observation) drain.Observation {
	in.Node = in.Node.DeepCopy()
	in.Pods, in.Budgets, in.DaemonSets, in.Attachments = copyItems(in.Pods), copyItems(in.Budgets), copyItems(in.DaemonSets), copyItems(in.Attachments)
	in.Claims, in.Volumes = copyItems(in.Claims), copyItems(in.Volumes)
	in.Results = slices.Clone(in.Results)
	return in
}

// checkNoAlias changes all arguments after a step, and asserts that the results do not change.
func checkNoAlias(t *testing.T, s drain.State, in drain.Observation, p drain.Policy) {
	t.Helper()
	s, in = copyState(s), copyObservation(in)
	p.Ladder, p.UnreachableLadder = slices.Clone(p.Ladder), slices.Clone(p.UnreachableLadder)
	next, plan := drain.Step(s, in, p, now)
	before := asJSON(t, next, plan)
	for _, pod := range in.Pods.Items {
		if pod == nil {
			continue
		}
		clear(pod.Labels)
		for _, grace := range []*int64{pod.Spec.TerminationGracePeriodSeconds, pod.DeletionGracePeriodSeconds} {
			if grace != nil {
				*grace = 999
			}
		}
		*pod = corev1.Pod{}
	}
	for _, b := range in.Budgets.Items {
		if b != nil {
			*b = budgetType{}
		}
	}
	clear(p.Ladder)
	clear(p.UnreachableLadder)
	clear(s.Reached)
	clear(s.UnreachableReached)
	clear(s.Pods)
	clear(s.Responses)
	clear(s.Volumes)
	require.Equal(t, before, asJSON(t, next, plan), "the results share no memory with the arguments")
}

func asJSON(t *testing.T, values ...any) string {
	t.Helper()
	text, err := json.Marshal(values)
	require.NoError(t, err)
	return string(text)
}

func TestStep_RandomInput_KeepsTheLaws(t *testing.T) {
	met := map[string]int{}
	for seed := range uint64(1500) {
		d := &dice{bytes: randomBytes(seed, 900)}
		s, p, in := d.state(), d.policy(), d.observation()
		next, plan := checkLaws(t, s, in, p)
		checkNoAlias(t, s, in, p)
		checkLaws(t, next, in, p)
		meet(met, drain.Decision{}, plan, in)
		later := in
		later.Pods.Items, later.Results = in.Pods.Items[len(in.Pods.Items)/2:], nil
		ends := p
		ends.Ladder = drain.Ladder{{Action: drain.Proceed}}
		_, end := checkLaws(t, next, later, ends)
		meet(met, plan, end, later)
		_, zero := checkLaws(t, s, in, drain.Policy{})
		for _, row := range zero.Rows {
			require.NotContains(t, []drain.Action{drain.Delete, drain.ForceDelete}, row.Action, "the zero policy deletes nothing")
			require.Nil(t, row.Grace, "the zero policy shortens no grace period")
		}
		_, blind := checkLaws(t, s, drain.Observation{}, p)
		require.Empty(t, blind.Rows, "nothing is done on the zero observation")
		require.Nil(t, blind.Cordon)
	}
	requireMet(t, met)
}

// TestStep_AnyRecordedTime_NextCheckIsLater has a step whose clock differs from the clocks of
// the state and of the observation.
func TestStep_AnyRecordedTime_NextCheckIsLater(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		d := &dice{bytes: randomBytes(seed, 400)}
		s, p := d.state(), d.policy()
		in := d.observation()
		const far = 173 * 365 * 24 * time.Hour
		for _, after := range []time.Duration{-24 * time.Hour, -30 * time.Minute, -3 * time.Second, 3 * time.Second, 30 * time.Minute, far} {
			clock := now.Add(after)
			next, plan := drain.Step(s, in, p, clock)
			require.True(t, plan.Over() || plan.NextCheck.After(clock), "seed %d at %s: %s", seed, clock, plan)
			_, again := drain.Step(next, in, p, clock.Add(time.Millisecond))
			require.True(t, again.Over() || again.NextCheck.After(clock.Add(time.Millisecond)), "seed %d at %s: %s", seed, clock, again)
		}
	}
}

func FuzzStep(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(5) {
		f.Add(randomBytes(seed, 400))
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		d := &dice{bytes: bytes}
		s, p := d.state(), d.policy()
		in := d.observation()
		next, plan := checkLaws(t, s, in, p)
		checkNoAlias(t, s, in, p)
		in.Results = nil
		for _, row := range plan.Rows {
			in.Results = append(in.Results, drain.Result{Row: row, At: d.when()})
		}
		checkLaws(t, next, in, p)
		for _, row := range plan.Rows {
			_ = row.String()
		}
	})
}
