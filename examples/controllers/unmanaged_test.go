// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/safety/runner"
)

// collected is how long changes of Nodes are collected.
const collected = 30 * time.Second

// nodeHarness runs only the loop that marks Nodes.
type nodeHarness struct{ *concernHarness }

func newNodeHarness(t *testing.T) nodeHarness {
	t.Helper()
	return nodeHarness{newConcernHarness(t)}
}

func (r nodeHarness) start() { r.concernHarness.start(runner.Unmanaged) }

// join adds a Node as a user, with the finalizer of the manager and another one.
func (r nodeHarness) join(name string) {
	_, err := r.cfg.Target.CoreV1().Nodes().Create(r.t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/theirs", v1alpha1.NodeFinalizerName}}, Spec: corev1.NodeSpec{ProviderID: "sim:///" + name},
	}, metav1.CreateOptions{})
	require.NoError(r.t, err)
}

// prove writes the name of a machine to its Node, as the controller of the machine does.
func (r nodeHarness) prove(machine, node string) {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1alpha1.MachineNameLabelKey, machine)
	_, err := r.cfg.Target.CoreV1().Nodes().Patch(r.t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(r.t, err)
}

// create adds a machine of a Node.
func (r nodeHarness) create(name, node string) {
	_, err := r.cfg.Machines.MachineV1alpha1().Machines(ns).Create(r.t.Context(), &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.NodeLabelKey: node}},
	}, metav1.CreateOptions{})
	require.NoError(r.t, err)
}

func (r nodeHarness) node(name string) *corev1.Node {
	node, err := r.cfg.Target.CoreV1().Nodes().Get(r.t.Context(), name, metav1.GetOptions{})
	require.NoError(r.t, err)
	return node
}

func (r nodeHarness) marked(name string) bool {
	_, marked := r.node(name).Annotations[v1alpha1.NotManagedByMCM]
	return marked
}

func TestUnmanaged_NodeJoinedByHand_MarkedAtTheTimeoutAndUnmarkedWithItsMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNodeHarness(t)
		r.start()
		r.create("m-other", "other")
		r.join("other")
		r.join("n")
		time.Sleep(19 * time.Minute) // in the time of the bubble, like all sleeps here
		require.False(t, r.marked("n"), "its machine may still appear")
		time.Sleep(time.Minute + collected)
		require.True(t, r.marked("n"))
		require.Equal(t, "1", r.node("n").Annotations[v1alpha1.NotManagedByMCM])
		require.Contains(t, r.node("n").Finalizers, v1alpha1.NodeFinalizerName)
		time.Sleep(6 * time.Minute)
		require.Equal(t, []string{"example.com/theirs"}, r.node("n").Finalizers, "it can be deleted")
		passes, _ := r.told()
		time.Sleep(time.Hour)
		now, _ := r.told()
		require.Equal(t, passes, now, "nothing is to be done")

		r.create("m", "n")
		time.Sleep(collected + time.Second)
		require.True(t, r.marked("n"), "a user can make a machine name any Node")
		r.prove("m", "n")
		time.Sleep(collected + time.Second)
		require.False(t, r.marked("n"), "its machine has appeared")
		require.False(t, r.marked("other"))
		require.Contains(t, r.node("other").Finalizers, v1alpha1.NodeFinalizerName)
		_, failed := r.told()
		require.Empty(t, failed)
	})
}

func TestUnmanaged_ConcurrentWritesToTheNode_AreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNodeHarness(t)
		r.start()
		r.join("n")
		nodes, kubelet := r.cfg.Target.CoreV1().Nodes(), 0
		for range 25 * 12 {
			kubelet++
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/beat":"%d","example.com/%d":""}}}`, kubelet, kubelet)
			_, err := nodes.Patch(t.Context(), "n", types.MergePatchType, patch, metav1.PatchOptions{})
			require.NoError(t, err)
			time.Sleep(5 * time.Second)
		}
		require.True(t, r.marked("n"))
		require.Len(t, r.node("n").Annotations, kubelet+2)
		r.create("m", "n")
		r.prove("m", "n")
		time.Sleep(collected + time.Second)
		require.Len(t, r.node("n").Annotations, kubelet+1)
		_, failed := r.told()
		require.Empty(t, failed, "a patch of one key has no conflict")
	})
}

func TestUnmanaged_OneNodeFails_OthersAreMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNodeHarness(t)
		r.target.Inject(draintest.Fault{Kind: draintest.InternalError, Verb: "patch", Name: "a"})
		r.start()
		for _, name := range []string{"a", "b", "c"} {
			r.join(name)
		}
		time.Sleep(20*time.Minute + 30*time.Second)
		require.False(t, r.marked("a"))
		require.True(t, r.marked("b") && r.marked("c"))
		_, failed := r.told()
		require.NotEmpty(t, failed)
		r.target.ClearFaults()
		time.Sleep(2 * time.Minute)
		require.True(t, r.marked("a"), "it is retried")
	})
}

func TestUnmanaged_Freeze_MarksOnlyAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNodeHarness(t)
		probes := newProbes(r.cfg)
		defer probes.queue.ShutDown()
		r.start()
		r.join("n")
		r.target.Inject(draintest.Fault{Kind: draintest.Unavailable, Name: "machinist-probe"})
		made(probes.pass(t.Context(), probesKey))
		time.Sleep(time.Hour)
		made(probes.pass(t.Context(), probesKey))
		require.False(t, r.marked("n"), "its machine may not be seen")
		r.target.ClearFaults()
		made(probes.pass(t.Context(), probesKey))
		time.Sleep(collected + time.Second)
		require.True(t, r.marked("n"))
	})
}

func TestUnmanaged_ManyNodesJoin_OnePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNodeHarness(t)
		r.start()
		for i := range 50 {
			r.join(fmt.Sprint("n-", i))
			r.create(fmt.Sprint("m-", i), fmt.Sprint("n-", i))
		}
		time.Sleep(collected + time.Second)
		passes, _ := r.told()
		require.Equal(t, 1, passes)
	})
}
