// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/drain"
)

// checkLaws asserts what holds of every plan. It returns the plan.
func checkLaws(t *testing.T, in drain.Observation, p drain.Policy) drain.Plan {
	t.Helper()
	before := copyObservation(in)
	plan := drain.Decide(in, p, now)
	require.Empty(t, cmp.Diff(before, in), "the input is not changed")
	require.Equal(t, plan, drain.Decide(in, p, now), "same input, same plan")
	shuffled := copyObservation(in)
	slices.Reverse(shuffled.Pods)
	require.Equal(t, plan, drain.Decide(shuffled, p, now), "the order of pods does not matter")

	force := p.NodeUnreachable || !p.ForceAt.IsZero() && !now.Before(p.ForceAt)
	known := in.Looked && in.PodsComplete
	require.Equal(t, known, plan.Reason == "", "what is not known has a reason")
	require.Equal(t, known && len(plan.Holds()) == 0 && (plan.Cordon == "" || force), plan.Done, "done is when nothing is left\n%s", plan)
	require.False(t, !plan.NextCheck.IsZero() && !plan.NextCheck.After(now), "the next check is not in the past")
	if plan.Cordon != "" || plan.Reason != "" {
		require.False(t, plan.NextCheck.IsZero(), "a plan that does something has a next check")
	}
	require.True(t, slices.IsSortedFunc(plan.Rows, func(a, b drain.Row) int {
		return slices.Compare([]string{a.Namespace, a.Name, string(a.UID)}, []string{b.Namespace, b.Name, string(b.UID)})
	}))
	for i, row := range plan.Rows {
		checkRow(t, in, p, plan, row, force)
		require.False(t, i > 0 && row.UID == plan.Rows[i-1].UID && row.Name == plan.Rows[i-1].Name, "one row for each pod")
	}
	return plan
}

func checkRow(t *testing.T, in drain.Observation, p drain.Policy, plan drain.Plan, row drain.Row, force bool) {
	t.Helper()
	require.NotEmpty(t, row.Reason)
	require.False(t, !row.Until.IsZero() && !row.Until.After(now), "no row looks back: %s", row)
	copies := slices.DeleteFunc(slices.Clone(in.Pods), func(pod *corev1.Pod) bool {
		return pod == nil || pod.Name != row.Name || pod.UID != row.UID
	})
	require.NotEmpty(t, copies, "no row without pod")
	asks := row.Verdict == drain.Evict || row.Verdict == drain.Delete || row.Verdict == drain.ForceDelete
	switch {
	case row.Verdict == drain.Ignore, row.Verdict == drain.Block:
		require.True(t, row.Until.IsZero(), "only a change helps: %s", row)
	default:
		require.False(t, row.Until.IsZero(), "what waits for time says so: %s", row)
		require.False(t, plan.NextCheck.After(row.Until), "the next check is no later than any row's")
	}
	if !force && !p.ForceAt.IsZero() && row.Verdict != drain.Ignore {
		require.False(t, plan.NextCheck.IsZero() || plan.NextCheck.After(p.ForceAt), "nothing sleeps through the time of force")
	}
	require.False(t, row.Verdict == drain.Delete && (!force || p.NodeUnreachable), "no deletion before its time")
	require.False(t, row.Verdict == drain.ForceDelete && !p.NodeUnreachable, "a pod that may run is not taken off the API")
	require.False(t, row.Verdict == drain.Evict && force)
	require.False(t, row.Reason == drain.ReasonAbandoned && !force, "without force nothing is given up")
	for _, pod := range copies {
		if !asks {
			break
		}
		protected := pod.DeletionTimestamp == nil && (!p.EvictUnmanaged && pod.OwnerReferences == nil ||
			!p.EvictLocalStorage && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil }))
		superseded := slices.ContainsFunc(copies, func(other *corev1.Pod) bool { return newer(other, pod) })
		require.False(t, protected && !superseded, "protected pods stay: %s", row)
	}
}

func newer(a, b *corev1.Pod) bool {
	return len(a.ResourceVersion) > len(b.ResourceVersion) ||
		len(a.ResourceVersion) == len(b.ResourceVersion) && a.ResourceVersion > b.ResourceVersion
}

func copyObservation(in drain.Observation) drain.Observation {
	in.Node = in.Node.DeepCopy()
	in.Pods = slices.Clone(in.Pods)
	for i, pod := range in.Pods {
		in.Pods[i] = pod.DeepCopy()
	}
	in.Answers = maps.Clone(in.Answers)
	return in
}

func TestLawsOfPlans(t *testing.T) {
	verdicts := map[drain.Verdict]int{}
	for seed := range uint64(1500) {
		d := &dice{bytes: randomBytes(seed, 400)}
		p, in := d.policy(), d.observation()
		for _, row := range checkLaws(t, in, p).Rows {
			verdicts[row.Verdict]++
		}
		for _, row := range checkLaws(t, in, drain.Policy{}).Rows {
			require.NotContains(t, []drain.Verdict{drain.Delete, drain.ForceDelete}, row.Verdict, "the zero policy deletes nothing")
		}
		require.Empty(t, checkLaws(t, drain.Observation{}, p).Rows, "nothing is done on the zero observation")
	}
	require.Len(t, verdicts, 6, "every verdict was met: %v", verdicts)
}

func randomBytes(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(5) {
		f.Add(randomBytes(seed, 200))
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		d := &dice{bytes: bytes}
		p := d.policy()
		in := d.observation()
		plan := checkLaws(t, in, p)
		results := make([]drain.Result, len(plan.Rows))
		for i, row := range plan.Rows {
			results[i].Row = row
		}
		in.Answers.After(plan, results, p, now)
		_ = plan.String()
	})
}
