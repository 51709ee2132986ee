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
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

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

var nodesResource = corev1.SchemeGroupVersion.WithResource("nodes")

// server is an API server for one node: an update with an old version is a conflict, and leaves the
// status alone.
type server struct {
	*fake.Clientset
	t *testing.T
	// meddle is called before each write and plays another writer, who is always in time.
	meddle func(write int, node *corev1.Node) (changed bool)
	writes int
	fails  error
}

func newServer(t *testing.T, node *corev1.Node) *server {
	t.Helper()
	s := &server{Clientset: fake.NewClientset(node), t: t}
	s.PrependReactor("update", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		update := a.(clienttesting.UpdateAction)
		s.writes++
		if s.fails != nil {
			return true, nil, s.fails
		}
		current := s.node()
		if s.meddle != nil && s.meddle(s.writes, current) {
			s.store(current)
		}
		next := update.GetObject().(*corev1.Node).DeepCopy()
		if next.ResourceVersion != current.ResourceVersion {
			return true, nil, apierrors.NewConflict(nodesResource.GroupResource(), next.Name, errors.New("the object has been modified"))
		}
		next.Status = current.Status
		return true, s.store(next), nil
	})
	return s
}

// node returns what is stored.
func (s *server) node() *corev1.Node {
	object, err := s.Tracker().Get(nodesResource, "", "n1")
	require.NoError(s.t, err)
	return object.(*corev1.Node).DeepCopy()
}

// store stores the node under the next version.
func (s *server) store(node *corev1.Node) *corev1.Node {
	version, _ := strconv.Atoi(node.ResourceVersion)
	node.ResourceVersion = strconv.Itoa(version + 1)
	require.NoError(s.t, s.Tracker().Update(nodesResource, node.DeepCopy(), ""))
	return node
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
	_, _, err := runner.UpdateNode(ctx, c, "n1", func(node *corev1.Node) (changed bool, _ error) {
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
		s := newServer(t, crowdedNode())
		s.meddle = addTaint(4)
		require.NoError(t, setTaintOnNode(t.Context(), s, taint("ours", "", noSchedule)))
		require.Equal(t, 5, s.writes)
		for _, key := range []string{"t", "other1", "other2", "other3", "other4", "ours"} {
			require.True(t, hasKey(s.node(), key), key)
		}

		s.meddle = nil
		for round := range 50 {
			var group sync.WaitGroup
			for _, name := range []string{"a", "b"} {
				group.Go(func() {
					if err := setTaintOnNode(t.Context(), s, taint(name+strconv.Itoa(round), "", noSchedule)); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
		}
		require.Len(t, s.node().Spec.Taints, 106)
	})
}

func TestUpdateNode_Conflicts_FiveAttemptsWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		s.meddle = addTaint(100)
		start := time.Now()
		err := setTaintOnNode(t.Context(), s, taint("ours", "", noSchedule))
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.Equal(t, 5, s.writes)
		require.GreaterOrEqual(t, time.Since(start), 400*time.Millisecond)
		require.LessOrEqual(t, time.Since(start), 800*time.Millisecond)
		require.False(t, hasKey(s.node(), "ours"))
	})
}

func TestUpdateNode_ContextEnds_NoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		s.meddle = addTaint(100)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := runner.CordonNode(ctx, s, "n1", "", owned, t0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, apierrors.IsConflict(err), "the last answer is not lost: %v", err)
		require.Equal(t, 50*time.Millisecond, time.Since(start))
		require.Equal(t, 1, s.writes)
	})
}

func TestUpdateNode_OtherErrors_MatchedNotRetried(t *testing.T) {
	s := newServer(t, crowdedNode())
	for _, err := range everyExecutor(t.Context(), s, "other") {
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		require.ErrorContains(t, err, `"other"`)
	}
	s.fails = apierrors.NewForbidden(nodesResource.GroupResource(), "n1", errors.New("no"))
	err := setTaintOnNode(t.Context(), s, taint("ours", "", noSchedule))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.Equal(t, 1, s.writes)
}

// everyExecutor calls each function that writes, and returns what they say.
func everyExecutor(ctx context.Context, s *server, name string) map[string]error {
	var client kubernetes.Interface
	if s != nil {
		client = s
	}
	_, uncordon := runner.UncordonNode(ctx, client, name, "", "absent")
	_, _, update := runner.UpdateNode(ctx, client, name, func(*corev1.Node) (bool, error) { return true, nil })
	return map[string]error{
		"update":               update,
		"cordon without owner": cordonErr(runner.CordonNode(ctx, client, name, "", nodeops.Cordon{}, t0)),
		"cordon":               cordonErr(runner.CordonNode(ctx, client, name, "", owned, t0)),
		"uncordon":             uncordon,
	}
}

func TestExecutors_NoClientOrName_ErrorWithoutRequest(t *testing.T) {
	for what, err := range everyExecutor(t.Context(), nil, "n1") {
		require.ErrorContains(t, err, "no client", what)
	}
	s := newServer(t, crowdedNode())
	for what, err := range everyExecutor(t.Context(), s, "") {
		require.ErrorContains(t, err, "no node name", what)
	}
	require.Empty(t, s.Actions())
	_, changed, err := runner.UpdateNode(t.Context(), s, "n1", nil)
	require.NoError(t, err)
	require.False(t, changed)
}

func TestExecutors_NoChange_NoWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		for range 3 {
			require.NoError(t, setTaintOnNode(t.Context(), s, taint("ours", "", noSchedule)))
			require.NoError(t, cordonErr(runner.CordonNode(t.Context(), s, "n1", "", owned, time.Now())))
			time.Sleep(time.Minute) // time of the bubble, to tell apart the times that are stored
		}
		require.Equal(t, 2, s.writes, "each of the two writes once")
	})
}

func TestUpdateNode_Edit_ReturnsTheStoredNodeOrTheError(t *testing.T) {
	s := newServer(t, crowdedNode())
	node, changed, err := runner.UpdateNode(t.Context(), s, "n1", func(node *corev1.Node) (bool, error) {
		node.Labels["x"] = "y"
		return true, nil
	})
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, "8", node.ResourceVersion)
	require.Empty(t, cmp.Diff(s.node(), node))

	mine := errors.New("mine")
	_, changed, err = runner.UpdateNode(t.Context(), s, "n1", func(*corev1.Node) (bool, error) { return true, mine })
	require.ErrorIs(t, err, mine)
	require.False(t, changed)
	require.Equal(t, 1, s.writes)
}

// TestUpdateNode_NodeReplaced_IsNotChanged asserts that a Node that was deleted and created again
// between two attempts is another Node.
func TestUpdateNode_NodeReplaced_IsNotChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		s.meddle = func(_ int, node *corev1.Node) bool {
			node.UID = "u2"
			return true
		}
		require.ErrorIs(t, setTaintOnNode(t.Context(), s, taint("ours", "", noSchedule)), runner.ErrNodeReplaced)
		require.Equal(t, 1, s.writes)
		require.False(t, hasKey(s.node(), "ours"))
	})
}
