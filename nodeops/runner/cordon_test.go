// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/nodeops"
	"github.com/machinist-dev/machinist/nodeops/runner"
)

// replaced is in the error about another Node of the same name.
const replaced = "the node was replaced by another of the same name"

// cordonErr is the error of a call whose Node is of no interest.
func cordonErr(_ *corev1.Node, err error) error { return err }

// asBefore compares nodes but for the version.
var asBefore = cmp.Options{cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion", "ManagedFields"), cmpopts.EquateEmpty()}

func TestCordonNode_SetAndUncordon_OneWriteEach(t *testing.T) {
	for _, f := range []nodeops.Cordon{everything("a"), {}} {
		p := newPlace(t)
		before := p.node()
		for range 2 {
			require.NoError(t, p.cordon(before.UID, f))
		}
		require.True(t, f.Stands(p.node()))
		require.Len(t, p.HistorySince(before.ResourceVersion), 1)
		for _, want := range []bool{true, false} {
			changed, err := runner.UncordonNode(t.Context(), p.CoreV1().Nodes(), "n1", before.UID, f.Owner)
			require.NoError(t, err)
			require.Equal(t, want, changed)
		}
		require.Len(t, p.HistorySince(before.ResourceVersion), 2)
		require.Empty(t, cmp.Diff(before, p.node(), asBefore))
	}
}

func TestCordonNode_NoOwner_IsOnePatch(t *testing.T) {
	p := newPlace(t)
	node, err := runner.CordonNode(t.Context(), p.CoreV1().Nodes(), "n1", "u1", nodeops.Cordon{Reason: "not kept"}, t0)
	require.NoError(t, err)
	require.Len(t, p.Actions(), 1)
	require.Equal(t, "patch", p.Actions()[0].GetVerb())
	require.True(t, node.Spec.Unschedulable)
	require.Equal(t, crowdedNode().Annotations, node.Annotations)
}

func TestCordonNode_OtherNodeRefusedOrInvalid_Error(t *testing.T) {
	p := newPlace(t)
	before := p.node()
	for _, f := range []nodeops.Cordon{{}, owned, everything("")} {
		require.ErrorContains(t, p.cordon("another", f), replaced)
	}
	_, err := runner.UncordonNode(t.Context(), p.CoreV1().Nodes(), "n1", "another", "a")
	require.ErrorContains(t, err, `"n1": `+replaced)
	require.ErrorContains(t, p.cordon("", nodeops.Cordon{Owner: "a/b"}), `cordon: owner "a/b": `)

	p.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "nodes", Verb: "patch"})
	for _, f := range []nodeops.Cordon{{}, owned} {
		err := p.cordon("u1", f)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.NotContains(t, err.Error(), replaced)
	}
	require.Empty(t, p.HistorySince(before.ResourceVersion))
}

// TestCordonNode_ConcurrentOwners_LoseNothing has eight owners that cordon and uncordon while other
// clients write taints, labels and heartbeats. Requests meet conflicts, and responses get lost. At
// the end every mark is right.
func TestCordonNode_ConcurrentOwners_LoseNothing(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { crowdOfOwners(t, seed) })
		})
	}
}

func crowdOfOwners(t *testing.T, seed uint64) {
	cluster := draintest.New(draintest.Options{Seed: int64(seed)})
	require.NoError(t, cluster.Add(crowdedNode()))
	cluster.Inject(
		draintest.Fault{Kind: draintest.Conflict, Verb: "patch", Resource: "nodes", Probability: 0.2},
		draintest.Fault{Kind: draintest.TimeoutAfterEffect, Verb: "patch", Resource: "nodes", Probability: 0.1},
	)
	client := cluster.Client()
	var group sync.WaitGroup
	for i := range 8 {
		owner := "owner-" + strconv.Itoa(i)
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		group.Go(func() {
			for range 10 {
				f := nodeops.Cordon{Owner: owner, ExcludeFromLoadBalancers: random.IntN(2) == 0, OutOfService: random.IntN(2) == 0}
				if random.IntN(2) == 0 {
					f.Taint = "example.com/drain-" + strconv.Itoa(i%4)
				}
				insist(func() error {
					return cordonErr(runner.CordonNode(t.Context(), client.CoreV1().Nodes(), "n1", "u1", f, t0))
				})
				pause(random)
				if node, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{}); err != nil || !f.Stands(node) {
					t.Errorf("the cordon of %s does not stand while it holds: %v", owner, err)
				}
				insist(func() error {
					_, err := runner.UncordonNode(t.Context(), client.CoreV1().Nodes(), "n1", "u1", owner)
					return err
				})
				pause(random)
			}
		})
	}
	group.Go(func() {
		for i := range 40 {
			insist(func() error {
				return setTaintOnNode(t.Context(), client, taint("other/"+strconv.Itoa(i), "", noSchedule))
			})
			insist(func() error {
				_, _, err := runner.UpdateNode(t.Context(), client.CoreV1().Nodes(), "n1", func(node *corev1.Node) (bool, error) {
					node.Labels["other"] = strconv.Itoa(i)
					return true, nil
				})
				return err
			})
			time.Sleep(50 * time.Millisecond) // of the bubble
		}
	})
	group.Wait()
	want := crowdedNode()
	want.Labels["other"] = "39"
	for i := range 40 {
		want.Spec.Taints = append(want.Spec.Taints, taint("other/"+strconv.Itoa(i), "", noSchedule))
	}
	got, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, got, asBefore, cmpopts.IgnoreFields(metav1.ObjectMeta{}, "CreationTimestamp")))
}

// insist repeats a call until it succeeds.
func insist(call func() error) {
	for call() != nil {
		time.Sleep(time.Millisecond) // of the bubble
	}
}

// pause lets others go first.
func pause(random *rand.Rand) {
	time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond) // of the bubble
}
