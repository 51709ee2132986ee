// SPDX-License-Identifier: Apache-2.0

package nodeops_test

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
)

var nodesResource = corev1.SchemeGroupVersion.WithResource("nodes")

// server is an API server for one node, with the properties that matter here: an update with an old
// version is a conflict, an update of the node leaves the status alone, and an update of the status
// leaves the spec alone but stores the metadata.
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
		if update.GetSubresource() == "status" {
			next.Spec = current.Spec
		} else {
			next.Status = current.Status
		}
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
		node.Spec.Taints = append(node.Spec.Taints, taint("other"+strconv.Itoa(write), "", noExecute))
		return true
	}
}

// setTaintOnNode stores one taint by UpdateNode.
func setTaintOnNode(ctx context.Context, c kubernetes.Interface, x corev1.Taint) error {
	_, _, err := nodeops.UpdateNode(ctx, c, "n1", func(node *corev1.Node) (changed bool, _ error) {
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

// condition returns the condition of the node, or nil.
func condition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
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
		err := nodeops.AddOrUpdateConditionsOnNode(t.Context(), s, "n1", cond("A", "True", "", t0))
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.Equal(t, 5, s.writes)
		require.GreaterOrEqual(t, time.Since(start), 400*time.Millisecond)
		require.LessOrEqual(t, time.Since(start), 800*time.Millisecond)
		require.Nil(t, condition(s.node(), "A"))
	})
}

func TestUpdateNode_ContextEnds_NoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		s.meddle = addTaint(100)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := nodeops.CordonNode(ctx, s, "n1", "", owned, t0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, apierrors.IsConflict(err), "the last answer is not lost: %v", err)
		require.Equal(t, 50*time.Millisecond, time.Since(start))
		require.Equal(t, 1, s.writes)
	})
}

func TestUpdateNode_OtherErrors_MatchedNotRetried(t *testing.T) {
	s := newServer(t, crowdedNode())
	got, err := nodeops.GetNodeCondition(t.Context(), s, "n1", "Ready")
	require.NoError(t, err)
	require.Equal(t, "KubeletReady", got.Reason)
	got, err = nodeops.GetNodeCondition(t.Context(), s, "n1", "Other")
	require.NoError(t, err)
	require.Nil(t, got)
	_, err = nodeops.GetNodeCondition(t.Context(), s, "other", "Ready")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.Contains(t, err.Error(), `"other"`)
	for _, err := range everyExecutor(t.Context(), s, "other") {
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	}
	s.fails = apierrors.NewForbidden(nodesResource.GroupResource(), "n1", errors.New("no"))
	err = nodeops.AddOrUpdateConditionsOnNode(t.Context(), s, "n1", cond("A", "True", "", t0))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.Equal(t, 1, s.writes)
}

// everyExecutor calls each function that writes, and returns what they say.
func everyExecutor(ctx context.Context, s *server, name string) map[string]error {
	var client kubernetes.Interface
	if s != nil {
		client = s
	}
	_, uncordon := nodeops.UncordonNode(ctx, client, name, "", "absent")
	_, _, update := nodeops.UpdateNode(ctx, client, name, func(*corev1.Node) (bool, error) { return true, nil })
	return map[string]error{
		"conditions": nodeops.AddOrUpdateConditionsOnNode(ctx, client, name, cond("A", "True", "", t0)), "update": update,
		"cordon without owner": cordonErr(nodeops.CordonNode(ctx, client, name, "", nodeops.Cordon{}, t0)),
		"cordon":               cordonErr(nodeops.CordonNode(ctx, client, name, "", owned, t0)), "uncordon": uncordon,
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
	_, changed, err := nodeops.UpdateNode(t.Context(), s, "n1", nil)
	require.NoError(t, err)
	require.False(t, changed)
}

func TestExecutors_NoChange_NoWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		for range 3 {
			require.NoError(t, nodeops.AddOrUpdateConditionsOnNode(t.Context(), s, "n1", cond("A", "True", "R", time.Time{})))
			require.NoError(t, setTaintOnNode(t.Context(), s, since(taint("ours", "", noSchedule), metav1.Now())))
			require.NoError(t, cordonErr(nodeops.CordonNode(t.Context(), s, "n1", "", owned, time.Now())))
			time.Sleep(time.Minute) // time of the bubble, to tell apart the times that are stored
		}
		require.Equal(t, 3, s.writes, "each of the three writes once")
		require.False(t, condition(s.node(), "A").LastTransitionTime.IsZero(), "no zero time is stored")
	})
}

// TestSync_TaintRemovedWhileCapacityChanges_BothAreStored asserts that a write of the status drops
// changes of the spec: template and capacity are two writes.
func TestSync_TaintRemovedWhileCapacityChanges_BothAreStored(t *testing.T) {
	s := newServer(t, crowdedNode())
	step := func(template nodeops.Template, capacity corev1.ResourceList) {
		change, err := nodeops.SyncCapacity(s.node(), capacity)
		require.NoError(t, err)
		_, err = s.CoreV1().Nodes().UpdateStatus(t.Context(), change.Node, metav1.UpdateOptions{})
		require.NoError(t, err)
		change, err = nodeops.SyncTemplate(s.node(), template)
		require.NoError(t, err)
		_, err = s.CoreV1().Nodes().Update(t.Context(), change.Node, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	step(nodeops.Template{Taints: []corev1.Taint{taint("ours", "", noSchedule)}}, resources("x", "1"))
	require.True(t, hasKey(s.node(), "ours"))
	step(nodeops.Template{}, resources("x", "2"))
	require.False(t, hasKey(s.node(), "ours"))
	require.True(t, hasKey(s.node(), "t"))
	require.Equal(t, resources("cpu", "4", "x", "2"), s.node().Status.Capacity)
}

func TestUpdateNode_Edit_ReturnsTheStoredNodeOrTheError(t *testing.T) {
	s := newServer(t, crowdedNode())
	node, changed, err := nodeops.UpdateNode(t.Context(), s, "n1", func(node *corev1.Node) (bool, error) {
		node.Labels["x"] = "y"
		return true, nil
	})
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, "8", node.ResourceVersion)
	require.Empty(t, cmp.Diff(s.node(), node))

	mine := errors.New("mine")
	_, changed, err = nodeops.UpdateNode(t.Context(), s, "n1", func(*corev1.Node) (bool, error) { return true, mine })
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
		require.ErrorIs(t, setTaintOnNode(t.Context(), s, taint("ours", "", noSchedule)), nodeops.ErrNodeReplaced)
		require.Equal(t, 1, s.writes)
		require.False(t, hasKey(s.node(), "ours"))
	})
}

func TestTaintsOnNode_SetAndRemoved_OneWriteEach(t *testing.T) {
	s := newServer(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	ctx, first, second := t.Context(), taint("a", "1", corev1.TaintEffectNoSchedule), taint("b", "", corev1.TaintEffectNoExecute)
	for range 2 {
		require.NoError(t, nodeops.AddOrUpdateTaintOnNode(ctx, s, "n1", &first, nil, &second))
	}
	require.Len(t, s.node().Spec.Taints, 2)
	require.Equal(t, 1, s.writes)
	for range 2 {
		require.NoError(t, nodeops.RemoveTaintOffNode(ctx, s, "n1", s.node(), nil, &first))
	}
	require.Equal(t, []corev1.Taint{second}, s.node().Spec.Taints)
	require.Equal(t, 2, s.writes)
	require.NoError(t, nodeops.RemoveTaintOffNode(ctx, s, "missing", s.node(), &first), "no request for a Node that has none of the taints")
	require.Error(t, nodeops.RemoveTaintOffNode(ctx, s, "missing", s.node(), &second))
}

func TestGetCondition_OfNode_IsACopy(t *testing.T) {
	node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Reason: "x"}}}}
	nodeops.GetCondition(node, corev1.NodeReady).Reason = "y"
	require.Equal(t, "x", node.Status.Conditions[0].Reason)
	require.Nil(t, nodeops.GetCondition(node, corev1.NodeDiskPressure))
	require.Nil(t, nodeops.GetCondition(nil, corev1.NodeReady))
}
