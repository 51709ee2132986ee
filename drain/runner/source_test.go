// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
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
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

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
	live := runner.NewClient(nil)
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
