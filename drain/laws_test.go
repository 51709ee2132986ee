// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	claimnames "github.com/machinist-dev/machinist/internal/claims"
)

// checkLaws asserts what holds of every step, and returns what it came to.
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
		require.True(t, reflect.DeepEqual(next, againState), "nor for the state")
	}
	checkPlan(t, in, p, plan)
	for i := range plan.Rows {
		checkRow(t, in, p, plan, &plan.Rows[i])
	}
	checkVolumes(t, in, p, plan)
	return next, plan
}

// checkPlan asserts what holds of a plan as a whole.
func checkPlan(t *testing.T, in drain.Observation, p drain.Policy, plan drain.Decision) {
	t.Helper()
	holds := plan.Holds()
	if plan.Over() {
		require.True(t, plan.NextCheck.IsZero(), "what is over need not be looked at")
		require.Nil(t, plan.Cordon)
		require.Empty(t, plan.Next)
	} else {
		require.True(t, plan.NextCheck.After(now), "a drain that waits has a next check in the future: %s", plan)
		require.NotEmpty(t, holds, "and names what it waits for")
	}
	for _, h := range holds {
		require.NotEmpty(t, h.Subject)
		require.NotEmpty(t, h.Reason)
	}
	if plan.Cordon != nil {
		require.False(t, plan.Cordon.Cordon.OutOfService, "its pods may run")
	}
	switch plan.Outcome {
	case drain.Drained:
		require.True(t, p.KeepSchedulable || in.Node.Spec.Unschedulable, "no pod can be scheduled")
		require.Empty(t, plan.Gates)
		for _, row := range plan.Rows {
			require.Equal(t, drain.Ignore, row.Action)
			require.NotEqual(t, drain.ReasonAbandoned, row.Reason, "who leaves pods behind has not drained")
		}
	case drain.GaveUp:
		require.NotEmpty(t, holds, "what was given up is named")
	case drain.NodeGone:
		require.Empty(t, plan.Rows)
	}
	require.True(t, slices.IsSortedFunc(plan.Rows, func(a, b drain.Row) int {
		return slices.Compare([]string{a.Namespace, a.Name, string(a.UID)}, []string{b.Namespace, b.Name, string(b.UID)})
	}))
}

// checkRow asserts what holds of the row of a pod.
func checkRow(t *testing.T, in drain.Observation, p drain.Policy, plan drain.Decision, row *drain.Row) {
	t.Helper()
	require.NotEmpty(t, row.Reason)
	require.False(t, !row.Until.IsZero() && !row.Until.After(now), "no row looks back: %s", row)
	require.False(t, !row.NextAt.IsZero() && !row.NextAt.After(now), "nor to what was to come: %s", row)
	require.Equal(t, row.Next == "", row.NextAt.IsZero())
	if row.Action != drain.Ignore && !plan.Over() {
		require.False(t, !row.Until.IsZero() && plan.NextCheck.After(row.Until), "the next check is no later than any row's")
		require.False(t, !row.NextAt.IsZero() && plan.NextCheck.After(row.NextAt), "and no later than what is to come")
	}
	copies := slices.DeleteFunc(slices.Clone(in.Pods.Items), func(pod *corev1.Pod) bool {
		return pod == nil || pod.Name != row.Name || pod.UID != row.UID
	})
	require.NotEmpty(t, copies, "no row without pod")
	asks := row.Action == drain.Evict || row.Action == drain.Delete || row.Action == drain.ForceDelete
	if !asks {
		require.Nil(t, row.Grace)
		return
	}
	require.False(t, row.Until.IsZero(), "what is asked is looked at again: %s", row)
	require.False(t, plan.Over(), "nothing is asked when it is over")
	allows := allowedAt(p, in)
	switch row.Action {
	case drain.Delete:
		require.True(t, allows[drain.IgnoreBudgets] || allows[drain.ForceDeletePods], "no deletion before its time: %s", row)
		require.False(t, row.Grace != nil && *row.Grace < 1)
	case drain.ForceDelete:
		require.True(t, allows[drain.ForceDeletePods], "a pod is not taken off the API without a rung: %s", row)
	case drain.Evict:
		require.False(t, row.Grace != nil && *row.Grace < 1)
	}
	for i := range plan.Rows {
		other := &plan.Rows[i]
		require.False(t, row.Action == drain.Evict && other.Action != drain.Ignore && other.Wave < row.Wave, "%s goes before %s", row, other)
	}
	for _, pod := range copies {
		protected := pod.DeletionTimestamp == nil && (!p.EvictUnmanaged && pod.OwnerReferences == nil ||
			!p.EvictLocalStorage && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil }))
		superseded := slices.ContainsFunc(copies, func(other *corev1.Pod) bool { return newer(other, pod) })
		_, isMirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		skipped := p.ClusterAPILabels && pod.Labels["cluster.x-k8s.io/drain"] == "skip"
		atKubelet := pod.DeletionTimestamp != nil && (pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds > 0)
		left := isMirror || skipped || pod.Status.Phase == corev1.PodFailed && !atKubelet || pod.Spec.NodeName != "node-1" || pod.UID == ""
		require.False(t, (protected || left) && !superseded, "protected pods stay: %s", row)
	}
}

// checkVolumes asserts what holds of the rows of volumes.
func checkVolumes(t *testing.T, in drain.Observation, p drain.Policy, plan drain.Decision) {
	t.Helper()
	if !p.Volumes.Wait {
		require.Empty(t, plan.Volumes)
		return
	}
	kept, told := keptVolumes(in, plan), map[string]machinist.Reason{}
	for i, v := range plan.Volumes {
		require.True(t, v.Action == drain.Wait || v.Action == drain.Ignore, "%v", v)
		require.NotEmpty(t, v.Reason, "%v", v)
		require.False(t, v.Action == drain.Wait && kept[v.Volume], "waits for a volume that stays: %v", v)
		require.False(t, i > 0 && plan.Reason == "" && plan.Volumes[i-1].Volume > v.Volume && v.Reason != "Reattaching", "no order: %v", plan.Volumes)
		told[v.Volume] = v.Reason
	}
	for _, va := range in.Attachments.Items {
		if plan.Reason != "" || va == nil || va.Spec.NodeName != "node-1" || va.Spec.Source.PersistentVolumeName == nil || *va.Spec.Source.PersistentVolumeName == "" {
			continue
		}
		name := *va.Spec.Source.PersistentVolumeName
		require.NotEmpty(t, told[name], "nothing is said of %s", name)
		if plan.Outcome == drain.Drained {
			require.EqualValues(t, "Stays", told[name], "drained with %s", name)
		}
	}
}

// keptVolumes are the volumes that pods which stay are known to use, found the long way.
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

// allowedAt is what the ladders may allow by now: the naive way, without a past. What
// comes early for some pods counts as allowed.
func allowedAt(p drain.Policy, in drain.Observation) map[drain.Escalation]bool {
	allowed := map[drain.Escalation]bool{}
	add := func(l drain.Ladder) {
		if l.Validate() != nil {
			return
		}
		for _, rung := range l {
			allowed[rung.Action] = true
		}
	}
	add(p.Ladder)
	if in.Reachability.Unreachable {
		add(p.UnreachableLadder)
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

// reverse reverses all lists whose order means nothing. Results of one pod come in the order
// in which they were made.
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

// checkNoAlias spoils everything that a step was given, and asserts that what it returned is
// still the same.
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
		pod.Name, pod.Labels["app"], pod.Finalizers = "spoilt", "spoilt", nil
		if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
			*g = 999
		}
		if g := pod.DeletionGracePeriodSeconds; g != nil {
			*g = 999
		}
	}
	for _, b := range in.Budgets.Items {
		if b != nil {
			b.Name, b.Status.DisruptionsAllowed = "spoilt", 999
		}
	}
	for _, l := range [][]drain.Rung{p.Ladder, p.UnreachableLadder} {
		for i := range l {
			l[i] = drain.Rung{Action: "spoilt"}
		}
	}
	for _, l := range [][]drain.ReachedRung{s.Reached, s.UnreachableReached} {
		for i := range l {
			l[i] = drain.ReachedRung{}
		}
	}
	for uid := range s.Pods {
		s.Pods[uid] = drain.PodState{Reason: "spoilt"}
	}
	for uid := range s.Responses {
		s.Responses[uid] = drain.Response{Reason: "spoilt"}
	}
	for name := range s.Volumes {
		s.Volumes[name] = drain.VolumeState{Reason: "spoilt"}
	}
	require.Equal(t, before, asJSON(t, next, plan), "nothing that is returned belongs to the caller")
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
		met[fmt.Sprint("outcome ", plan.Outcome)]++
		for _, row := range plan.Rows {
			met["action "+string(row.Action)]++
			met["reason "+string(row.Reason)]++
		}
		for _, v := range plan.Volumes {
			met["volume "+string(v.Reason)]++
		}
		for _, g := range plan.Gates {
			met["gate "+string(g.Reason)]++
		}
		_, zero := checkLaws(t, s, in, drain.Policy{})
		for _, row := range zero.Rows {
			require.NotContains(t, []drain.Action{drain.Delete, drain.ForceDelete}, row.Action, "the zero policy deletes nothing")
			require.Nil(t, row.Grace, "and caps nothing")
		}
		_, blind := checkLaws(t, s, drain.Observation{}, p)
		require.Empty(t, blind.Rows, "nothing is done on the zero observation")
		require.Nil(t, blind.Cordon)
	}
	for _, want := range []string{
		"outcome ", "outcome Drained", "outcome Proceeded", "outcome GaveUp", "outcome NodeGone",
		"action ignore", "action evict", "action delete", "action force-delete", "action wait", "action block",
		"volume InUse", "volume Detaching", "volume Stays", "volume NotEvaluated", "volume Abandoned", "reason Stays", "reason Rule", "reason WaitCompleted",
		"reason DoNotDisrupt", "reason Overdue", "reason NotEvaluated", "gate Uncordoned", "gate InvalidPolicy", "reason Abandoned", "reason Wave", "reason DisruptionBudget", "reason ForceDeletePods",
	} {
		require.Greater(t, met[want], 5, "the dice are too tame for %q: %v", want, met)
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
