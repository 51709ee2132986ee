// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/nodeops"
	"github.com/machinist-dev/machinist/nodeops/runner"
)

const noSchedule = corev1.TaintEffectNoSchedule

var (
	t0    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	owned = nodeops.Cordon{Owner: "a"}
)

// everything returns a cordon with all marks.
func everything(owner string) nodeops.Cordon {
	return nodeops.Cordon{Owner: owner, Taint: "example.com/drain", ExcludeFromLoadBalancers: true, OutOfService: true}
}

// crowdedNode returns a Node with marks of other writers.
func crowdedNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n1", UID: "u1", ResourceVersion: "7",
			Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"},
		},
		Spec:   corev1.NodeSpec{ProviderID: "cloud:///1", Taints: []corev1.Taint{taint("t", "1", noSchedule)}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func taint(key, value string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: effect}
}

// ours is the taint that the tests set.
var ours = taint("ours", "", noSchedule)

// place is a cluster with one Node, and a client whose updates are counted.
type place struct {
	*draintest.Cluster
	*fake.Clientset

	t *testing.T
	// meddle is called before each update. It is another writer, who writes the Node if it returns true.
	meddle func(write int, node *corev1.Node) (changed bool)
	writes int
}

func newPlace(t *testing.T) *place {
	t.Helper()
	cluster := draintest.New(draintest.Options{})
	require.NoError(t, cluster.Add(crowdedNode()))
	p := &place{Cluster: cluster, Clientset: cluster.Clientset(), t: t}
	p.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		p.writes++
		if node := p.node(); p.meddle != nil && p.meddle(p.writes, node) {
			require.NoError(t, p.Add(node))
		}
		return false, nil, nil
	})
	return p
}

// node returns what is stored.
func (p *place) node() *corev1.Node {
	node, err := p.Client().CoreV1().Nodes().Get(p.t.Context(), "n1", metav1.GetOptions{})
	require.NoError(p.t, err)
	return node
}

// cordon cordons the Node if it has the UID.
func (p *place) cordon(uid types.UID, f nodeops.Cordon) error {
	return cordonErr(runner.CordonNode(p.t.Context(), p.CoreV1().Nodes(), "n1", uid, f, t0))
}

// addTaint is a meddler that adds a taint of its own before each of the first n writes.
func addTaint(n int) func(int, *corev1.Node) bool {
	return func(write int, node *corev1.Node) bool {
		if write > n {
			return false
		}
		node.Spec.Taints = append(node.Spec.Taints, taint("other"+strconv.Itoa(write), "", corev1.TaintEffectNoExecute))
		return true
	}
}

// setTaintOnNode stores one taint by UpdateNode.
func setTaintOnNode(ctx context.Context, c kubernetes.Interface, x corev1.Taint) error {
	_, _, err := runner.UpdateNode(ctx, c.CoreV1().Nodes(), "n1", func(node *corev1.Node) (changed bool, _ error) {
		node.Spec.Taints, changed = nodeops.SetTaint(node.Spec.Taints, x)
		return changed, nil
	})
	return err
}

// hasKey reports whether the node has a taint with the key.
func hasKey(node *corev1.Node, key string) bool {
	_, has := nodeops.RemoveTaintKey(node.Spec.Taints, key)
	return has
}

func TestUpdateNode_OtherWriters_LoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		p.meddle = addTaint(4)
		require.NoError(t, setTaintOnNode(t.Context(), p, ours))
		require.Equal(t, 5, p.writes)
		for _, key := range []string{"t", "other1", "other2", "other3", "other4", "ours"} {
			require.True(t, hasKey(p.node(), key), key)
		}

		p.meddle = nil
		for round := range 50 {
			var group sync.WaitGroup
			for _, name := range []string{"a", "b"} {
				group.Go(func() {
					assert.NoError(t, setTaintOnNode(t.Context(), p, taint(name+strconv.Itoa(round), "", noSchedule)))
				})
			}
			group.Wait()
		}
		require.Len(t, p.node().Spec.Taints, 106)
	})
}

func TestUpdateNode_Conflicts_FiveAttemptsWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		p.meddle = addTaint(100)
		start := time.Now()
		err := setTaintOnNode(t.Context(), p, ours)
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.Equal(t, 5, p.writes)
		require.GreaterOrEqual(t, time.Since(start), 400*time.Millisecond)
		require.LessOrEqual(t, time.Since(start), 800*time.Millisecond)
		require.False(t, hasKey(p.node(), "ours"))
	})
}

func TestUpdateNode_ContextEnds_NoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		p.meddle = addTaint(100)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := runner.CordonNode(ctx, p.CoreV1().Nodes(), "n1", "", owned, t0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, apierrors.IsConflict(err), "the last answer is not lost: %v", err)
		require.Equal(t, 50*time.Millisecond, time.Since(start))
		require.Equal(t, 1, p.writes)
	})
}

func TestUpdateNode_OtherErrors_MatchedNotRetried(t *testing.T) {
	p := newPlace(t)
	for _, err := range everyExecutor(t.Context(), p.CoreV1().Nodes(), "other") {
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.ErrorContains(t, err, `"other"`)
	}
	p.Inject(draintest.Fault{Kind: draintest.Forbidden, Verb: "patch"})
	err := setTaintOnNode(t.Context(), p, ours)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.Equal(t, 2, p.writes, "the patch of the cordon without an owner, and one attempt")
}

// everyExecutor calls each function that writes, and returns what they say.
func everyExecutor(ctx context.Context, nodes runner.Nodes, name string) map[string]error {
	_, uncordon := runner.UncordonNode(ctx, nodes, name, "", "absent")
	_, _, update := runner.UpdateNode(ctx, nodes, name, func(*corev1.Node) (bool, error) { return true, nil })
	return map[string]error{
		"update":               update,
		"cordon without owner": cordonErr(runner.CordonNode(ctx, nodes, name, "", nodeops.Cordon{}, t0)),
		"cordon":               cordonErr(runner.CordonNode(ctx, nodes, name, "", owned, t0)),
		"uncordon":             uncordon,
	}
}

func TestExecutors_NoClientOrName_ErrorWithoutRequest(t *testing.T) {
	for what, err := range everyExecutor(t.Context(), nil, "n1") {
		require.ErrorContains(t, err, "no client", what)
	}
	p := newPlace(t)
	for what, err := range everyExecutor(t.Context(), p.CoreV1().Nodes(), "") {
		require.ErrorContains(t, err, "no node name", what)
	}
	require.Empty(t, p.Actions())
	_, changed, err := runner.UpdateNode(t.Context(), p.CoreV1().Nodes(), "n1", nil)
	require.NoError(t, err)
	require.False(t, changed)
}

func TestExecutors_NoChange_NoWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		for range 3 {
			require.NoError(t, setTaintOnNode(t.Context(), p, ours))
			require.NoError(t, cordonErr(runner.CordonNode(t.Context(), p.CoreV1().Nodes(), "n1", "", owned, time.Now())))
			time.Sleep(time.Minute) // time of the bubble, to tell apart the times that are stored
		}
		require.Equal(t, 2, p.writes, "each of the two writes once")
	})
}

func TestUpdateNode_Edit_ReturnsTheStoredNodeOrTheError(t *testing.T) {
	p, mine := newPlace(t), errors.New("mine")
	before := p.node()
	for _, fails := range []error{nil, mine} {
		node, changed, err := runner.UpdateNode(t.Context(), p.CoreV1().Nodes(), "n1", func(node *corev1.Node) (bool, error) {
			node.Labels["x"] = "y"
			return true, fails
		})
		require.ErrorIs(t, err, fails)
		require.Equal(t, fails == nil, changed)
		if changed {
			require.NotEqual(t, before.ResourceVersion, node.ResourceVersion)
			require.Empty(t, cmp.Diff(p.node(), node))
		}
	}
	require.Equal(t, 1, p.writes)
}

// TestUpdateNode_NodeReplaced_IsNotChanged asserts that a Node that was deleted and created again
// between two attempts is another Node.
func TestUpdateNode_NodeReplaced_IsNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlace(t)
		p.meddle = func(_ int, node *corev1.Node) bool {
			node.UID = "u2"
			return true
		}
		require.ErrorContains(t, setTaintOnNode(t.Context(), p, ours), replaced)
		require.Equal(t, 1, p.writes)
		require.False(t, hasKey(p.node(), "ours"))
	})
}
