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

func TestTaintsOfOtherWritersSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		s.meddle = addTaint(4)
		changed, err := nodeops.SetTaintsOnNode(t.Context(), s, "n1", taint("ours", "", noSchedule))
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, 5, s.writes)
		for _, key := range []string{"t", "other1", "other2", "other3", "other4", "ours"} {
			require.True(t, nodeops.HasTaintKey(s.node().Spec.Taints, key), key)
		}

		s.writes, s.meddle = 0, addTaint(1)
		changed, err = nodeops.RemoveTaintsFromNode(t.Context(), s, "n1", taint("ours", "", noSchedule), taint("t", "", noSchedule))
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, 2, s.writes)
		require.False(t, nodeops.HasTaintKey(s.node().Spec.Taints, "ours"))
		require.True(t, nodeops.HasTaintKey(s.node().Spec.Taints, "other1"))
	})
}

func TestTwoWritersLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		for round := range 50 {
			var group sync.WaitGroup
			for _, who := range []string{"a", "b"} {
				group.Go(func() {
					_, err := nodeops.SetTaintsOnNode(t.Context(), s, "n1", taint(who+strconv.Itoa(round), "", noSchedule))
					if err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
		}
		require.Len(t, s.node().Spec.Taints, 101)
	})
}

func TestConflictsAreRetriedFiveTimesWithPauses(t *testing.T) { // DM-11, DD-44
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		s.meddle = addTaint(100)
		start := time.Now()
		err := nodeops.AddOrUpdateConditionsOnNode(t.Context(), s, "n1", cond("A", "True", "", t0))
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.Equal(t, 5, s.writes)
		require.GreaterOrEqual(t, time.Since(start), 400*time.Millisecond)
		require.LessOrEqual(t, time.Since(start), 800*time.Millisecond)
		require.Nil(t, nodeops.GetCondition(s.node(), "A"))
	})
}

func TestAConflictInBetweenIsRetried(t *testing.T) { // DM-11, DD-44
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		s.meddle = func(write int, node *corev1.Node) bool {
			node.Status.Conditions = append(node.Status.Conditions, cond("Theirs", "True", "", t0))
			return write == 1
		}
		require.NoError(t, nodeops.AddOrUpdateConditionsOnNode(t.Context(), s, "n1", cond("Ours", "True", "", t0)))
		require.Equal(t, 2, s.writes)
		for _, kind := range []corev1.NodeConditionType{"Ready", "Theirs", "Ours"} {
			require.NotNil(t, nodeops.GetCondition(s.node(), kind), kind)
		}
	})
}

func TestTheEndOfTheContextEndsTheRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		s.meddle = addTaint(100)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := nodeops.FenceNode(ctx, s, "n1", "", owned, t0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, apierrors.IsConflict(err), "the last answer is not lost: %v", err)
		require.Equal(t, 50*time.Millisecond, time.Since(start))
		require.Equal(t, 1, s.writes)

		_, err = nodeops.FenceNode(ctx, s, "n1", "", owned, t0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 1, s.writes)
	})
}

func TestErrorsOfTheServerAreRecognisedAndNotRetried(t *testing.T) {
	s := newServer(t, crowdedNode())
	_, err := nodeops.GetNodeCondition(t.Context(), s, "other", "Ready")
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
	_, setTaints := nodeops.SetTaintsOnNode(ctx, client, name, taint("a", "", noSchedule))
	_, removeTaints := nodeops.RemoveTaintsFromNode(ctx, client, name, taint("t", "", noSchedule))
	_, unfence := nodeops.UnfenceNode(ctx, client, name, "", "nobody")
	_, template := nodeops.SyncTemplateOnNode(ctx, client, name, nodeops.Template{Labels: map[string]string{"a": "b"}})
	_, capacity := nodeops.SyncCapacityOnNode(ctx, client, name, resources("a", "1"))
	return map[string]error{
		"conditions": nodeops.AddOrUpdateConditionsOnNode(ctx, client, name, cond("A", "True", "", t0)),
		"taints":     setTaints, "remove taints": removeTaints, "template": template, "capacity": capacity,
		"cordon": fenceErr(nodeops.FenceNode(ctx, client, name, "", nodeops.Fence{}, t0)),
		"fence":  fenceErr(nodeops.FenceNode(ctx, client, name, "", owned, t0)), "unfence": unfence,
		"labels":             nodeops.SetLabelsOnNode(ctx, client, name, map[string]string{"a": "b"}),
		"remove labels":      nodeops.RemoveLabelsFromNode(ctx, client, name, "a"),
		"annotations":        nodeops.SetAnnotationsOnNode(ctx, client, name, map[string]string{"a": "b"}),
		"remove annotations": nodeops.RemoveAnnotationsFromNode(ctx, client, name, "a"),
	}
}

func TestWithoutAClientOrANameThereIsAnErrorAndNoPanic(t *testing.T) {
	for what, err := range everyExecutor(t.Context(), nil, "n1") {
		require.ErrorIs(t, err, nodeops.ErrNoClient, what)
	}
	s := newServer(t, crowdedNode())
	for what, err := range everyExecutor(t.Context(), s, "") {
		require.ErrorIs(t, err, nodeops.ErrNoNodeName, what)
	}
	require.Empty(t, s.Actions())
	_, err := nodeops.GetNodeCondition(t.Context(), nil, "n1", "Ready")
	require.ErrorIs(t, err, nodeops.ErrNoClient)
	_, changed, err := nodeops.UpdateNode(t.Context(), s, "n1", nil)
	require.NoError(t, err)
	require.False(t, changed)
}

func TestNothingIsWrittenIfNothingChanges(t *testing.T) { // DD-46
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		zero := time.Time{}
		for range 3 {
			require.NoError(t, nodeops.AddOrUpdateConditionsOnNode(t.Context(), s, "n1", cond("A", "True", "R", zero)))
			_, err := nodeops.SetTaintsOnNode(t.Context(), s, "n1", since(taint("ours", "", noSchedule), metav1.Now()))
			require.NoError(t, err)
			require.NoError(t, fenceErr(nodeops.FenceNode(t.Context(), s, "n1", "", owned, time.Now())))
			_, err = nodeops.SyncTemplateOnNode(t.Context(), s, "n1", nodeops.Template{Taints: []corev1.Taint{since(taint("tpl", "", noSchedule), metav1.Now())}})
			require.NoError(t, err)
			_, err = nodeops.SyncCapacityOnNode(t.Context(), s, "n1", resources("x", "1"))
			require.NoError(t, err)
			changed, err := nodeops.RemoveTaintsFromNode(t.Context(), s, "n1", taint("absent", "", noSchedule))
			require.NoError(t, err)
			require.False(t, changed)
			time.Sleep(time.Minute) // time of the bubble, to tell apart the times that are stored
		}
		require.Equal(t, 5, s.writes, "each of the five writes once")
		require.False(t, nodeops.GetCondition(s.node(), "A").LastTransitionTime.IsZero(), "no zero time is stored")
	})
}

func TestGetNodeConditionReadsTheNode(t *testing.T) {
	s := newServer(t, crowdedNode())
	got, err := nodeops.GetNodeCondition(t.Context(), s, "n1", "Ready")
	require.NoError(t, err)
	require.Equal(t, "KubeletReady", got.Reason)
	got, err = nodeops.GetNodeCondition(t.Context(), s, "n1", "Other")
	require.NoError(t, err)
	require.Nil(t, got)
}

func TestARemovedTaintIsRemovedAlsoWhenCapacityChanges(t *testing.T) { // DM-21
	s := newServer(t, crowdedNode())
	step := func(template nodeops.Template, capacity corev1.ResourceList) {
		_, err := nodeops.SyncCapacityOnNode(t.Context(), s, "n1", capacity)
		require.NoError(t, err)
		_, err = nodeops.SyncTemplateOnNode(t.Context(), s, "n1", template)
		require.NoError(t, err)
	}
	step(nodeops.Template{Taints: []corev1.Taint{taint("ours", "", noSchedule)}}, resources("x", "1"))
	require.True(t, nodeops.HasTaintKey(s.node().Spec.Taints, "ours"))
	step(nodeops.Template{}, resources("x", "2"))
	require.False(t, nodeops.HasTaintKey(s.node().Spec.Taints, "ours"))
	require.True(t, nodeops.HasTaintKey(s.node().Spec.Taints, "t"))
	require.Equal(t, resources("cpu", "4", "x", "2"), s.node().Status.Capacity)
}

func TestSyncOnNodeSurvivesAConflictAndReportsWhatItDidInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		s.meddle = func(write int, node *corev1.Node) bool {
			node.Labels["wanted"] = "yes" // somebody else does half of the work
			return write == 1
		}
		change, err := nodeops.SyncTemplateOnNode(t.Context(), s, "n1", nodeops.Template{Labels: map[string]string{"wanted": "yes", "more": "yes"}})
		require.NoError(t, err)
		require.Equal(t, "set labels more; record what was applied", change.String())
	})
}

func TestSyncOnNodeReportsARecordThatCannotBeRead(t *testing.T) {
	node := crowdedNode()
	node.Annotations[baseKey], node.Annotations[capacityKey] = "{", "{"
	s := newServer(t, node)
	var typed *nodeops.BaseError
	_, err := nodeops.SyncTemplateOnNode(t.Context(), s, "n1", nodeops.Template{})
	require.ErrorAs(t, err, &typed)
	_, err = nodeops.SyncCapacityOnNode(t.Context(), s, "n1", nil)
	require.ErrorAs(t, err, &typed)
	require.Zero(t, s.writes)
}

func TestLabelsAndAnnotationsArePatchedKeyByKey(t *testing.T) {
	s := newServer(t, crowdedNode())
	require.NoError(t, nodeops.SetLabelsOnNode(t.Context(), s, "n1", map[string]string{"x": "1", "y": "2", "": "no"}))
	require.NoError(t, nodeops.RemoveLabelsFromNode(t.Context(), s, "n1", "x", "absent", ""))
	require.NoError(t, nodeops.SetAnnotationsOnNode(t.Context(), s, "n1", map[string]string{"x": `"quoted"`}))
	require.NoError(t, nodeops.RemoveAnnotationsFromNode(t.Context(), s, "n1", "a"))
	require.Equal(t, map[string]string{"l": "1", "y": "2"}, s.node().Labels)
	require.Equal(t, map[string]string{"x": `"quoted"`}, s.node().Annotations)
	for _, action := range s.Actions() {
		require.Equal(t, "patch", action.GetVerb())
		require.NotContains(t, string(action.(clienttesting.PatchAction).GetPatch()), "resourceVersion")
	}

	s.ClearActions()
	require.NoError(t, nodeops.SetLabelsOnNode(t.Context(), s, "n1", nil))
	require.NoError(t, nodeops.RemoveAnnotationsFromNode(t.Context(), s, "n1"))
	require.Empty(t, s.Actions(), "nothing to do, no call")
}

func TestUpdateNodeReturnsTheStoredNodeAndTheErrorOfTheEdit(t *testing.T) {
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
	_, changed, err = nodeops.UpdateNodeStatus(t.Context(), s, "n1", func(*corev1.Node) (bool, error) { return true, mine })
	require.ErrorIs(t, err, mine)
	require.False(t, changed)
	require.Equal(t, 1, s.writes)
}

func TestANodeThatWasReplacedMeanwhileIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, crowdedNode())
		s.meddle = func(_ int, node *corev1.Node) bool {
			node.UID = "u2"
			return true
		}
		_, err := nodeops.SetTaintsOnNode(t.Context(), s, "n1", taint("ours", "", noSchedule))
		require.ErrorIs(t, err, nodeops.ErrNodeReplaced)
		require.Equal(t, 1, s.writes)
		require.False(t, nodeops.HasTaintKey(s.node().Spec.Taints, "ours"))
	})
}
