// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
	draininformers "github.com/machinist-dev/machinist/drain/runner/informers"
)

// changeWorld collects the Nodes of OnChange.
type changeWorld struct {
	*world

	found *draininformers.Informers
	mu    sync.Mutex
	nodes []string
}

func (h *changeWorld) changed(node string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nodes = append(h.nodes, node)
}

// take returns the Nodes since the last call, in order.
func (h *changeWorld) take() []string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	nodes := h.nodes
	h.nodes = nil
	slices.Sort(nodes)
	return nodes
}

// withChangeWorld runs a test in a synctest bubble, with informers of these objects that have synced.
func withChangeWorld(t *testing.T, run func(t *testing.T, h *changeWorld), objects ...runtime.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := draintest.New(draintest.Options{ManualBudgets: true})
		require.NoError(t, cluster.Add(objects...))
		h := &changeWorld{world: &world{Cluster: cluster, client: cluster.Clientset()}}
		h.found = newInformers(t, h.client, h.changed, allSources...)
		run(t, h)
	})
}

// resources are the resources that the tests change.
var resources = map[string]schema.GroupVersionResource{
	"nodes": corev1.SchemeGroupVersion.WithResource("nodes"), "pods": corev1.SchemeGroupVersion.WithResource("pods"),
	"claims": corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), "volumes": corev1.SchemeGroupVersion.WithResource("persistentvolumes"),
	"budgets": policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), "daemonsets": appsv1.SchemeGroupVersion.WithResource("daemonsets"),
	"attachments": storagev1.SchemeGroupVersion.WithResource("volumeattachments"),
}

// namespace returns the namespace of the objects of a resource.
func namespace(resource string) string {
	if resource == "nodes" || resource == "volumes" || resource == "attachments" {
		return ""
	}
	return "shop"
}

// patch changes an object by a merge patch.
func (h *changeWorld) patch(resource, name, patch string, subresources ...string) error {
	action := clienttesting.NewPatchSubresourceAction(resources[resource], namespace(resource), name, types.MergePatchType, []byte(patch), subresources...)
	return second(h.client.Invokes(action, &metav1.Status{}))
}

// remove deletes an object at once.
func (h *changeWorld) remove(resource, name string) error {
	o := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}
	return second(h.client.Invokes(clienttesting.NewDeleteActionWithOptions(resources[resource], namespace(resource), name, o), &metav1.Status{}))
}

func TestOnChange_EachEvent_NamesTheAffectedNodes(t *testing.T) {
	objects := append([]runtime.Object{newPod("agent", ownedBy("DaemonSet")), newPod("db", withClaim("db"))}, newVolume("db", "node-1")...)
	objects = append(objects, newVolume("unused", "")[0])
	for i := range 4 {
		name := fmt.Sprint("node-", i)
		objects = append(objects, newNode(name), newPod(fmt.Sprint("web-", i), onNode(name), ofApp(fmt.Sprint("app-", i/2))))
	}
	withChangeWorld(t, func(t *testing.T, h *changeWorld) {
		require.NoError(t, h.found.OnChange(nil))
		require.Equal(t, []string{"node-0", "node-1", "node-2", "node-3"}, h.take(), "at the beginning")
		patch := func(resource, name, patch string, subresources ...string) func() error {
			return func() error { return h.patch(resource, name, patch, subresources...) }
		}
		remove := func(resource, name string) func() error {
			return func() error { return h.remove(resource, name) }
		}
		add := func(objects ...runtime.Object) func() error { return func() error { return h.Add(objects...) } }
		budget := newBudget("b", "app-1", 1)
		budget.Status.DesiredHealthy = 1
		for _, tt := range []struct {
			name string
			do   func() error
			want []string
		}{
			{"a Node", patch("nodes", "node-2", `{"metadata":{"labels":{"a":"b"}}}`), []string{"node-2"}},
			{"a pod", patch("pods", "web-3", `{"metadata":{"labels":{"a":"b"}}}`), []string{"node-3"}},
			{"a pod that is removed at once", remove("pods", "web-3"), []string{"node-3", "node-3"}},
			{"a pod without Node", add(newPod("new", onNode(""))), nil},
			{"a pod that is bound", func() error {
				target := corev1.ObjectReference{Kind: "Node", Name: "node-0"}
				return h.client.CoreV1().Pods("shop").Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: "shop"}, Target: target}, metav1.CreateOptions{})
			}, []string{"node-0"}},
			{"a new budget", add(budget), []string{"node-2"}},
			{"a budget with a new status", patch("budgets", "b", `{"status":{"observedGeneration":7}}`, "status"), []string{"node-2"}},
			{"a budget that has enough healthy pods again", patch("budgets", "b", `{"status":{"currentHealthy":1}}`, "status"), []string{"node-2"}},
			{"a budget with more healthy pods", patch("budgets", "b", `{"status":{"currentHealthy":2}}`, "status"), nil},
			{"a budget that allows more", patch("budgets", "b", `{"status":{"disruptionsAllowed":1}}`, "status"), []string{"node-2"}},
			{"a budget that allows less", patch("budgets", "b", `{"status":{"disruptionsAllowed":0}}`, "status"), nil},
			{"a budget with another selector", patch("budgets", "b", `{"spec":{"selector":{"matchLabels":{"app":"app-0"}}}}`), []string{"node-0", "node-1", "node-2"}},
			{"a deleted budget", remove("budgets", "b"), []string{"node-0", "node-1"}},
			{"a new DaemonSet", add(daemonSet), []string{"node-1"}},
			{"a DaemonSet with a new status", patch("daemonsets", "owner", `{"status":{"numberReady":1}}`, "status"), nil},
			{"a deleted DaemonSet, and then its pod", remove("daemonsets", "owner"), []string{"node-1", "node-1"}},
			{"a claim without pods", remove("claims", "unused"), nil},
			{"a claim", patch("claims", "db", `{"spec":{"volumeName":"pv-new"}}`), []string{"node-1"}},
			{"an attachment", remove("attachments", "csi-db-node-1"), []string{"node-1"}},
			{"a first attachment of a volume", add(newAttachment("other", "node-3")), []string{"node-3"}},
			{"an attachment to another Node", add(newAttachment("db", "node-2")), []string{"node-2"}},
			{"nothing", func() error { time.Sleep(5 * time.Minute); return nil }, nil},
			{"a deleted Node", remove("nodes", "node-1"), []string{"node-1"}},
			{"an attachment after the deletion of a Node", add(newAttachment("db", "node-0")), []string{"node-0"}},
		} {
			require.NoError(t, tt.do(), tt.name)
			require.Equal(t, tt.want, h.take(), tt.name)
		}
	}, objects...)
}

// TestOnChange_ReplacedWhileNotWatched_NamesTheNode asserts that an object that was replaced while
// the watch was interrupted counts as changed.
func TestOnChange_ReplacedWhileNotWatched_NamesTheNode(t *testing.T) {
	budget := func(uid types.UID) *policyv1.PodDisruptionBudget {
		b := newBudget("b", "web", 1)
		b.UID = uid
		return b
	}
	claim := newVolume("db", "node-1")[0].(*corev1.PersistentVolumeClaim)
	successor := claim.DeepCopy()
	successor.UID = "uid-successor"
	withChangeWorld(t, func(t *testing.T, h *changeWorld) {
		h.take()
		for resource, do := range map[string]func() error{
			"pods": func() error { return h.remove("pods", "short") },
			"poddisruptionbudgets": func() error {
				return errors.Join(h.remove("budgets", "b"), h.Add(budget("uid-2")))
			},
			"persistentvolumeclaims": func() error {
				return errors.Join(h.remove("claims", "db"), h.Add(successor))
			},
		} {
			release := h.HoldWatches()
			require.NoError(t, do())
			h.Compact()
			require.Positive(t, h.DropWatches(resource))
			time.Sleep(time.Hour) // the reflectors list again
			release()
			require.Contains(t, h.take(), "node-1", resource)
		}
	}, newNode("node-1"), newPod("web", withClaim("db")), newPod("short"), budget("uid-1"), claim)
}

// TestInformers_AttachmentsChangeMeanwhile_NoEventIsLost asserts that any number of drains
// may read while events arrive, and no event is lost. The race detector checks the rest.
func TestInformers_AttachmentsChangeMeanwhile_NoEventIsLost(t *testing.T) {
	const nodes, events = 4, 50
	w := stillWorld(t)
	var heard [nodes]atomic.Int64
	for i := range nodes {
		require.NoError(t, w.Add(newNode(fmt.Sprint("node-", i))))
	}
	found := newInformers(t, w.Client(), func(node string) { heard[node[len("node-")]-'0'].Add(1) }, drain.SourceAttachments)
	var drains sync.WaitGroup
	for i := range nodes {
		drains.Go(func() {
			for n := range events {
				past := stateOf(t, fmt.Sprintf(`{"volumes": {"pv-%d": {}}}`, n))
				if _, err := runner.Observe(t.Context(), found, fmt.Sprint("node-", i), everything, past); err != nil {
					t.Error(err)
				}
			}
		})
		drains.Go(func() {
			for n := range events {
				if err := w.Add(newAttachment(fmt.Sprint(n), fmt.Sprint("node-", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	drains.Wait()
	for i := range heard {
		require.Eventually(t, func() bool { return heard[i].Load() > events }, 10*time.Second, time.Millisecond, "all events, and that of the Node itself")
	}
}

// TestInformers_ListenerStalls_DrainsContinue asserts that a listener that does not return delays
// events, and no drain.
func TestInformers_ListenerStalls_DrainsContinue(t *testing.T) {
	stalled, release := make(chan struct{}, 100), make(chan struct{})
	found := newInformers(t, town(t).Client(), func(string) {
		stalled <- struct{}{}
		<-release
	}, allSources...)
	defer close(release)
	<-stalled
	looked := make(chan int, 2)
	go func() {
		for _, node := range []string{"node-1", "node-2"} {
			in, err := runner.Observe(t.Context(), found, node, everything, drain.State{})
			if err != nil {
				t.Error(err)
			}
			looked <- len(in.Pods.Items)
		}
	}()
	for _, want := range []int{9, 1} {
		select {
		case pods := <-looked:
			require.Equal(t, want, pods)
		case <-time.After(10 * time.Second):
			require.Fail(t, "a drain waits for a listener")
		}
	}
}
