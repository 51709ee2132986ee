// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
	draininformers "github.com/machinist-dev/machinist/drain/runner/informers"
)

// allSources are the optional lists.
var allSources = []drain.Source{
	drain.SourceBudgets, drain.SourceDaemonSets, drain.SourceAttachments, drain.SourceClaims, drain.SourceVolumes,
}

// everything is a policy that needs all lists.
var everything = drain.Policy{EvictUnmanaged: true, Volumes: drain.VolumePolicy{Wait: true}}

// newInformers returns synced informers of a client, which end with the test. changed is called with
// the Nodes of events.
func newInformers(t testing.TB, client kubernetes.Interface, changed func(node string), watch ...drain.Source) *draininformers.Informers {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	found, err := draininformers.New(factory, watch...)
	require.NoError(t, err)
	require.NoError(t, found.OnChange(changed))
	startInformers(t, factory)
	require.True(t, found.HasSynced())
	return found
}

func startInformers(t testing.TB, factory informers.SharedInformerFactory) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
}

var daemonSet = &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "owner", UID: "uid-DaemonSet"}}

// town returns a cluster with pods of all kinds on several Nodes.
func town(t testing.TB) *world {
	t.Helper()
	objects := []runtime.Object{
		newNode("node-1", cordoned), newNode("node-2", cordoned), daemonSet,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		newBudget("never", "strict", 1), newBudget("web", "web", 0),
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "elsewhere"}},
		newPod("web"), newPod("strict", ofApp("strict")), newPod("agent", ownedBy("DaemonSet")), newPod("alone", unmanaged),
		newPod("static", mirror), newPod("done", succeeded), newPod("db", ofApp("db"), withClaim("db")),
		newPod("cache", ofApp("db"), emptyDir), newPod("critical", ofApp("db"), critical),
		newPod("elsewhere", onNode("node-2")), newPod("nowhere", onNode("")),
	}
	objects = append(objects, newVolume("db", "node-1")...)
	return stillWorld(t, append(objects, newVolume("moved", "node-2")...)...)
}

// listed returns the complete list of a response.
func listed[T, L any](t *testing.T, list func(context.Context, metav1.ListOptions) (*L, error), items func(*L) []T) drain.List[*T] {
	t.Helper()
	found, err := list(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	all := drain.All[*T]()
	for i := range items(found) {
		all.Items = append(all.Items, &items(found)[i])
	}
	return all
}

// TestObserve_ThreeSources_GiveTheSameDecision asserts that slices, informers and lists of the API
// server lead to the same decision.
func TestObserve_ThreeSources_GiveTheSameDecision(t *testing.T) {
	w := town(t)
	client := w.client
	past := stateOf(t, fmt.Sprintf(`{"volumes": {"pv-moved": {"freeAt": %q}}}`, now.Format(time.RFC3339Nano)))
	for name, policy := range map[string]drain.Policy{
		"zero": {}, "volumes": {EvictUnmanaged: true, Volumes: drain.VolumePolicy{Wait: true, ReattachTimeout: 1e12}},
	} {
		t.Run(name, func(t *testing.T) {
			node, err := client.CoreV1().Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
			require.NoError(t, err)
			in := drain.Observation{Node: node, Looked: true}
			in.Pods = listed(t, client.CoreV1().Pods("").List, func(l *corev1.PodList) []corev1.Pod { return l.Items })
			in.Budgets = listed(t, client.PolicyV1().PodDisruptionBudgets("").List, func(l *policyv1.PodDisruptionBudgetList) []policyv1.PodDisruptionBudget { return l.Items })
			in.DaemonSets = listed(t, client.AppsV1().DaemonSets("").List, func(l *appsv1.DaemonSetList) []appsv1.DaemonSet { return l.Items })
			if policy.Volumes.Wait {
				in.Attachments = listed(t, client.StorageV1().VolumeAttachments().List, func(l *storagev1.VolumeAttachmentList) []storagev1.VolumeAttachment { return l.Items })
				in.Claims = listed(t, client.CoreV1().PersistentVolumeClaims("").List, func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim { return l.Items })
				in.Volumes = listed(t, client.CoreV1().PersistentVolumes().List, func(l *corev1.PersistentVolumeList) []corev1.PersistentVolume { return l.Items })
			}
			for i := range in.Pods.Items { // the readers return only the pods of the Node
				if in.Pods.Items[i].Spec.NodeName != "node-1" {
					in.Pods.Items[i] = nil
				}
			}
			_, want := drain.Step(past, in, policy, now)
			require.Len(t, want.Rows, 9)
			for _, reader := range []machinist.Reader{runner.NewClient(client), newInformers(t, w.Client(), nil, policy.Sources()...)} {
				in, err := runner.Observe(t.Context(), reader, "node-1", policy, past)
				require.NoError(t, err)
				_, got := drain.Step(past, in, policy, now)
				require.Empty(t, cmp.Diff(want, got), "%T", reader)
			}
		})
	}
}

func TestObserve_ManyNodes_SeesWhatBelongsToTheNode(t *testing.T) {
	w := town(t)
	past := stateOf(t, `{"volumes": {"pv-moved": {}, "pv-over": {"done": true}}}`)
	for _, reader := range []machinist.Reader{runner.NewClient(w.client), newInformers(t, w.Client(), nil, allSources...)} {
		in, err := runner.Observe(t.Context(), reader, "node-1", everything, past)
		require.NoError(t, err)
		require.Equal(t, "node-1", in.Node.Name)
		require.Equal(t, []int{9, 2, 1, 1}, []int{len(in.Pods.Items), len(in.Budgets.Items), len(in.DaemonSets.Items), len(in.Claims.Items)})
		require.Len(t, in.Attachments.Items, 2, "of the Node, and of the volumes of the state")
		require.Len(t, in.Volumes.Items, 2, "of the claims, and of the state")
		require.True(t, in.Pods.Complete && in.Budgets.Complete && in.DaemonSets.Complete && in.Claims.Complete && in.Attachments.Complete && in.Volumes.Complete)
	}
	for _, action := range w.client.Actions() {
		if action.GetResource().Resource == "pods" {
			require.Equal(t, "spec.nodeName=node-1", action.(interface{ GetListOptions() metav1.ListOptions }).GetListOptions().FieldSelector, "never all pods")
		}
	}
	w.client.ClearActions()
	require.NoError(t, second(runner.Observe(t.Context(), runner.NewClient(w.client), "node-1", drain.Policy{}, drain.State{})))
	require.Equal(t, map[string]int{"get nodes": 1, "list pods": 1, "list poddisruptionbudgets": 1, "list daemonsets": 1}, w.requested(), "lists that the policy does not need are not requested")
}

// withKind is a Reader whose objects have another type than asked for.
type withKind struct{ machinist.Reader }

func (r withKind) List(ctx context.Context, o machinist.Object, index, key string) ([]machinist.Object, error) {
	found, err := r.Reader.List(ctx, o, index, key)
	return append(found, &corev1.Service{}), err
}

func TestObserve_SourceFails_NothingIsDecided(t *testing.T) {
	ctx := t.Context()
	for _, reader := range []machinist.Reader{nil, (*draininformers.Informers)(nil), runner.NewClient(nil)} {
		in, err := runner.Observe(ctx, reader, "node-1", everything, drain.State{})
		require.Error(t, err, "%T", reader)
		require.Equal(t, drain.Observation{}, in)
	}
	for _, source := range append([]drain.Source{"nodes", "pods"}, allSources...) {
		for _, kind := range []draintest.FaultKind{draintest.InternalError, draintest.Forbidden} {
			w := town(t)
			resource := strings.Replace(string(source), "budgets", "poddisruptionbudgets", 1)
			w.Inject(draintest.Fault{Kind: kind, Resource: resource})
			in, err := runner.Observe(ctx, runner.NewClient(w.client), "node-1", everything, drain.State{})
			if kind == draintest.Forbidden && slices.Contains(allSources, source) {
				require.NoError(t, err, source)
				require.Equal(t, []drain.Source{source}, drain.Decide(in, everything, now).NotEvaluated)
				continue
			}
			require.Equal(t, kind == draintest.Forbidden, apierrors.IsForbidden(err), source)
			require.ErrorContains(t, err, "drain: observe "+string(source)+": ")
			require.Equal(t, drain.Observation{}, in, source)
		}
	}
	none := runner.NewClient(stillWorld(t).client)
	in, err := runner.Observe(ctx, none, "node-1", drain.Policy{}, drain.State{})
	require.NoError(t, err)
	require.Equal(t, drain.NodeGone, drain.Decide(in, drain.Policy{}, now).Outcome)
	require.ErrorContains(t, second(runner.Observe(ctx, withKind{runner.NewClient(town(t).client)}, "node-1", drain.Policy{}, drain.State{})), "object of type *v1.Service")
	live := runner.NewClient((*kubernetes.Clientset)(nil)) // which kubernetes.NewForConfig returns with an error
	for _, err := range []error{
		second(live.List(ctx, &corev1.Pod{}, "", "n")), second(live.Get(ctx, &corev1.Node{})),
		second(live.PatchNode(ctx, "n", nil, metav1.PatchOptions{})), live.Evict(ctx, &policyv1.Eviction{}), live.DeletePod(ctx, "ns", "n", metav1.DeleteOptions{}),
		second(none.List(ctx, &corev1.Pod{}, "", "")), second(runner.Observe(ctx, none, "", everything, drain.State{})),
	} {
		require.ErrorContains(t, err, "drain: unusable: no ")
	}
	require.ErrorIs(t, second(none.List(ctx, &corev1.Service{}, "", "")), machinist.ErrNotCached)
	require.ErrorIs(t, second(none.Get(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "n"}})), machinist.ErrNotCached)
	require.Empty(t, runner.Affected(ctx, nil, nil, nil))
}

func TestInformers_NotSynced_ObserveNothing(t *testing.T) {
	factory := informers.NewSharedInformerFactory(town(t).Client(), 0)
	found, err := draininformers.New(factory, drain.SourceBudgets)
	require.NoError(t, err)
	require.False(t, found.HasSynced())
	require.ErrorContains(t, second(runner.Observe(t.Context(), found, "node-1", everything, drain.State{})), "the informer has not synced", "an empty cache is not an empty cluster")
	startInformers(t, factory)
	in, err := runner.Observe(t.Context(), found, "node-1", everything, drain.State{})
	require.NoError(t, err)
	require.True(t, in.Budgets.Complete)
	require.False(t, in.Claims.Complete, "claims are not watched")
	again, err := draininformers.New(factory, drain.SourceBudgets)
	require.NoError(t, err, "a factory may be shared")
	require.True(t, again.HasSynced())
	require.False(t, (*draininformers.Informers)(nil).HasSynced())
	require.Error(t, second(draininformers.New(nil)))
	require.ErrorContains(t, second(draininformers.New(factory, "clouds")), "drain: unusable: no source clouds")
}

func TestInformers_Objects_AreNeitherCopiedNorChanged(t *testing.T) {
	w := town(t)
	factory := informers.NewSharedInformerFactory(w.Client(), 0)
	found, err := draininformers.New(factory, allSources...)
	require.NoError(t, err)
	startInformers(t, factory)
	cached, err := factory.Core().V1().Pods().Lister().Pods("shop").Get("web")
	require.NoError(t, err)
	before := cached.DeepCopy()
	in, err := runner.Observe(t.Context(), found, "node-1", everything, drain.State{})
	require.NoError(t, err)
	require.True(t, slices.Contains(in.Pods.Items, cached))
	_, _, err = w.pass(t, drain.State{}, in, everything)
	require.NoError(t, err)
	require.Equal(t, before, cached)
}

// crowd returns informers of total pods, 110 of them on node-1 with 20 budgets.
func crowd(t *testing.T, total int) *draininformers.Informers {
	t.Helper()
	w := stillWorld(t, newNode("node-1", cordoned))
	for i := range 20 {
		require.NoError(t, w.Add(newBudget(fmt.Sprint("budget-", i), fmt.Sprint("app-", i), 0)))
	}
	factory := informers.NewSharedInformerFactory(w.Client(), 0)
	found, err := draininformers.New(factory, drain.SourceBudgets, drain.SourceDaemonSets)
	require.NoError(t, err)
	startInformers(t, factory)
	for i := range total {
		require.NoError(t, factory.Core().V1().Pods().Informer().GetIndexer().Add(newPod(
			fmt.Sprintf("web-%06d", i*7919%total), ofApp(fmt.Sprint("app-", i%20)), onNode(fmt.Sprint("node-", 1+i/110)))))
	}
	return found
}

func TestInformers_ManyPods_CostOnlyThoseOfTheNode(t *testing.T) {
	found := crowd(t, 5000)
	pods := 0
	allocs := testing.AllocsPerRun(20, func() {
		in, err := runner.Observe(t.Context(), found, "node-1", drain.Policy{}, drain.State{})
		require.NoError(t, err)
		pods = len(drain.Decide(in, drain.Policy{}, now).Rows)
	})
	require.Equal(t, 110, pods)
	require.LessOrEqual(t, allocs, 330.0)
}

// stored returns a state that was written and read as JSON.
func stored(t *testing.T, s drain.State) drain.State {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	return stateOf(t, string(text))
}

// stateOf returns the state with this JSON.
func stateOf(t *testing.T, text string) drain.State {
	t.Helper()
	var s drain.State
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	return s
}

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
