// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/members"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

var update = flag.Bool("update", false, "write the scenes anew")

// TestDecide_Set_Table plays the scenes in testdata/scenes/decide.txt.
func TestDecide_Set_Table(t *testing.T) { checkScenes(t, "testdata/scenes/decide.txt") }

func TestBatches_Sizes_Double(t *testing.T) {
	require.Equal(t, []int{1, 2, 4, 8, 5}, members.Batches(20))
	require.Empty(t, members.Batches(0))
	require.Empty(t, members.Batches(-1))
}

func TestPredicates_Nil_False(t *testing.T) {
	require.True(t, members.Leaving(nil))
	for _, is := range []func(*v1alpha1.Machine) bool{members.Failed, members.Transferred} {
		require.False(t, is(nil))
	}
	require.False(t, members.Preserved(nil, now))
	require.False(t, members.Frozen(nil))
	require.False(t, members.ScaleUpDisabled(nil))
	require.False(t, members.NamedByAutoscaler(nil, newMachine("m", "Running")))
	require.False(t, members.NamedByAutoscaler(newSet(1), nil))
	replace, reason := machineset.ReplaceFailed(nil, machine.NodeView{}, now, now)
	require.False(t, replace)
	require.Empty(t, reason)
}

// TestReplaceFailed_NodeReadyAgain_HoldsOnce has machines that failed an hour ago, and Nodes that are Ready.
func TestReplaceFailed_NodeReadyAgain_HoldsOnce(t *testing.T) {
	checkScenes(t, "testdata/scenes/node-ready-again.txt")
}

// TestReplaceFailed_ReadyAgainReadLater_OneMinuteFromRead has a Node that was Ready for long before
// the set reads that, as after an outage.
func TestReplaceFailed_ReadyAgainReadLater_OneMinuteFromRead(t *testing.T) {
	in, _ := scene("1 nodeready=1m: a.failed.since=1h.node=n")
	m := in.Machines[0]
	for at, stays := range map[time.Duration]bool{0: true, 59 * time.Second: true, time.Minute: false} {
		goes, reason := machineset.ReplaceFailed(m, in.Nodes["n"], now, now.Add(at))
		require.Equal(t, !stays, goes, at)
		require.Equal(t, stays, reason == machineset.ReasonNodeReadyAgain, at)
	}
	goes, _ := machineset.ReplaceFailed(m, nodeWithReady(corev1.ConditionFalse, now), now, now)
	require.True(t, goes, "it is not Ready any more")
}

// TestPreserved_AllFunctions_Agree asserts that counting, ranking, choosing, replacing and
// reporting treat a preserved machine alike.
func TestPreserved_AllFunctions_Agree(t *testing.T) {
	in, _ := scene("2: kept.failed.keeps=3600 good")
	c := members.Count(in.Set, in.Machines, in.Expectations, now)
	require.Equal(t, members.Counts{Desired: 2, Machines: 2, Present: 2, Eligible: 2, Ready: 1, Available: 1, Failed: 1, PreservedFailed: 1}, c)
	s, _ := machineset.Status(in, machineset.Failure{}, now)
	require.EqualValues(t, 1, s.PreservedFailedReplicas)
	require.Nil(t, s.FailedMachines, "it is no failure to be told of")
}

func TestValidate_EachError_Table(t *testing.T) {
	for name, c := range map[string]struct {
		bend func(*v1alpha1.MachineSetSpec)
		want string
	}{
		"a valid set":              {func(*v1alpha1.MachineSetSpec) {}, ""},
		"negative replicas":        {func(s *v1alpha1.MachineSetSpec) { s.Replicas = -1 }, "spec.replicas: Required value: Replicas has to be a whole number"},
		"no selector":              {func(s *v1alpha1.MachineSetSpec) { s.Selector = nil }, "spec.selector: Required value: Selector must not be empty"},
		"an empty selector":        {func(s *v1alpha1.MachineSetSpec) { s.Selector.MatchLabels = map[string]string{} }, "spec.selector: Required value: Selector must not be empty"},
		"labels that do not match": {func(s *v1alpha1.MachineSetSpec) { s.Template.Labels = nil }, "spec.selector.matchLabels: Required value: is not matching with spec.template.metadata.labels"},
		"expressions that do not match": {func(s *v1alpha1.MachineSetSpec) {
			s.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: metav1.LabelSelectorOpExists}}
		}, `spec.selector: Invalid value: "app=w,x": does not match spec.template.metadata.labels`},
		"no class": {func(s *v1alpha1.MachineSetSpec) { s.Template.Spec.Class = v1alpha1.ClassSpec{} }, "spec.template.spec.class.kind: Required value: Kind is required, spec.template.spec.class.name: Required value: Name is required"},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(1)
			c.bend(&set.Spec)
			var got []string
			for _, err := range machineset.Validate(set) {
				got = append(got, err.Error())
			}
			require.Equal(t, c.want, strings.Join(got, ", "))
		})
	}
	require.Len(t, machineset.Validate(nil), 1)
	broken := newSet(1)
	broken.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}
	require.Len(t, machineset.Validate(broken), 1)
}

func TestDecide_FinalizersOfOthers_Stay(t *testing.T) {
	ours, others := v1alpha1.MCMFinalizerName, []string{"z", "a"}
	for _, c := range []struct {
		deleted     *metav1.Time
		before, now []string
	}{{nil, others, append(others, ours)}, {deletedNow(), append(others, ours), others}} {
		set := newSet(0)
		set.Finalizers, set.ResourceVersion, set.DeletionTimestamp = slices.Clone(c.before), "5", c.deleted
		u := machineset.Decide(machineset.Observation{Set: set, Complete: c.deleted != nil, Proven: c.deleted != nil}, machineset.Policy{}, now).Actions[0].(machinist.Update)
		require.True(t, u.Unchanged)
		require.Same(t, set, u.Before)
		require.Equal(t, c.before, set.Finalizers)
		next := u.Object.(*v1alpha1.MachineSet)
		require.Equal(t, c.now, next.Finalizers)
		require.Equal(t, "5", next.ResourceVersion)
	}
}

func TestDecision_JSON_NamesObjectsWithoutZeroTimes(t *testing.T) {
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "workers", UID: "1", DeletionTimestamp: deletedNow()}}
	named := func(name string, uid types.UID) *v1alpha1.Machine {
		return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
	}
	data, err := json.Marshal(machineset.Decision{
		Reason: machineset.ReasonTooMany,
		Actions: []machinist.Action{
			machinist.Update{Before: set, Object: set, Changes: []string{"finalizer removed"}},
			machinist.Update{Before: named("a", "2"), Object: named("a", "2"), Changes: []string{"preservation"}},
			machinist.Refresh{Kind: "Machine", Name: "b"},
			machinist.Refresh{Kind: "Machine"},
			machinist.Delete{Object: named("c", "3"), Reason: machineset.ReasonTooMany, Message: "chosen by Health"},
			machinist.Create{Object: named("", ""), Count: 2},
		},
		Holds:     []machinist.Hold{{Subject: "machine/b", Reason: machineset.ReasonNotSeen, Message: "not in the cache"}},
		NextCheck: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	})
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/decision.json")
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(data))

	for _, actions := range [][]machinist.Action{nil, {nil}, {machinist.Create{}}} {
		_, err = json.Marshal(machineset.Decision{Actions: actions})
		require.NoError(t, err)
	}
}

// manyMachines come in no order, with little to tell them apart.
func manyMachines(n int) []*v1alpha1.Machine {
	machines := make([]*v1alpha1.Machine, 0, n)
	for i := range n {
		m := newMachine(fmt.Sprintf("m%05d", i*7919%n), v1alpha1.MachineRunning)
		m.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(i%100) * time.Minute))
		machines = append(machines, m)
	}
	return machines
}

func BenchmarkDecide(b *testing.B) {
	for _, c := range []struct {
		name string
		keep func(n int) int
	}{
		{"settled", func(n int) int { return n }},
		{"shrinking", func(n int) int { return n - n/10 }},
		{"growing", func(n int) int { return n + n/10 }},
	} {
		for _, n := range []int{500, 5_000, 50_000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				in := observed(int32(c.keep(n)), manyMachines(n)...) //nolint:gosec // small
				b.ReportAllocs()
				for b.Loop() {
					machineset.Decide(in, machineset.Policy{}, now)
				}
			})
		}
	}
}

func BenchmarkStatus(b *testing.B) {
	in := observed(5_000, manyMachines(5_000)...)
	b.ReportAllocs()
	for b.Loop() {
		machineset.Status(in, machineset.Failure{}, now)
	}
}
