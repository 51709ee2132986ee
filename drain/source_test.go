// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/drain/runner"
)

// sourceAll are all sources that need not be there.
var sourceAll = []drain.Source{
	drain.SourceBudgets, drain.SourceDaemonSets, drain.SourceAttachments, drain.SourceClaims, drain.SourceVolumes,
}

// everything is a policy that needs all sources.
var everything = drain.Policy{Volumes: drain.VolumePolicy{Wait: true}}

// sourceInformers returns informers that have synced, and end with the test.
func sourceInformers(t testing.TB, client kubernetes.Interface, watch ...drain.Source) *runner.Informers {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	found, err := runner.NewInformers(factory, watch...)
	require.NoError(t, err)
	sourceStart(t, factory)
	require.True(t, found.HasSynced())
	return found
}

func sourceStart(t testing.TB, factory informers.SharedInformerFactory) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
}

func sourceClaim(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
}

// sourceVolume is a claim in namespace shop, its volume, and an attachment of it to a Node.
func sourceVolume(name, node string) []runtime.Object {
	return []runtime.Object{
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name},
		},
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name},
			Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: name},
			}},
		},
		sourceAttachment(name, node),
	}
}

func sourceAttachment(name, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + name + "-" + node},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "csi.example.com", NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pv-" + name)},
		},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
}

// sourceTown is a cluster with pods of all kinds on several Nodes.
func sourceTown(t testing.TB) *draintest.Cluster {
	t.Helper()
	other := newNode()
	other.Name, other.UID = "node-2", "uid-node-2"
	objects := []runtime.Object{
		newNode(), other,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "a"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "owner", UID: "uid-DaemonSet"}},
		execBudget("never", "strict", 1), execBudget("web", "web", 0),
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "elsewhere"}},
		newPod("web"), newPod("strict", execApp("strict")), newPod("agent", ownedBy("DaemonSet")), newPod("alone", unmanaged),
		newPod("static", mirror), newPod("done", inPhase(corev1.PodSucceeded)), newPod("db", execApp("db"), sourceClaim("db")),
		newPod("cache", execApp("db"), emptyDir), newPod("critical", execApp("db"), withPriority(2000000000)),
		newPod("elsewhere", func(p *corev1.Pod) { p.Spec.NodeName = "node-2" }),
		newPod("nowhere", func(p *corev1.Pod) { p.Spec.NodeName = "" }),
	}
	objects = append(objects, sourceVolume("db", "node-1")...)
	return execCluster(t, append(objects, sourceVolume("moved", "node-2")...)...)
}

// One table of pods through three sources: slices, informers, lists of the API server.
func TestD1ThreeSourcesGiveTheSamePlan(t *testing.T) {
	cluster := sourceTown(t)
	client := cluster.Clientset()
	live := runner.Live{Client: client}
	ctx := t.Context()
	past := drain.State{Volumes: map[string]drain.VolumeState{"pv-moved": {FreeAt: now}}}
	for name, policy := range map[string]drain.Policy{
		"zero": {}, "anything": anything,
		"volumes": {EvictUnmanaged: true, Volumes: drain.VolumePolicy{Wait: true, ReattachTimeout: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			node, err := live.Node(ctx, "node-1")
			require.NoError(t, err)
			slices := drain.Observation{Node: node, Looked: true, Pods: sourceList[corev1.Pod, corev1.PodList](t, client.CoreV1().Pods("").List)}
			slices.Budgets = sourceList[policyv1.PodDisruptionBudget, policyv1.PodDisruptionBudgetList](t, client.PolicyV1().PodDisruptionBudgets("").List)
			slices.DaemonSets = sourceList[appsv1.DaemonSet, appsv1.DaemonSetList](t, client.AppsV1().DaemonSets("").List)
			if policy.Volumes.Wait {
				slices.Attachments = sourceList[storagev1.VolumeAttachment, storagev1.VolumeAttachmentList](t, client.StorageV1().VolumeAttachments().List)
				slices.Claims = sourceList[corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaimList](t, client.CoreV1().PersistentVolumeClaims("").List)
				slices.Volumes = sourceList[corev1.PersistentVolume, corev1.PersistentVolumeList](t, client.CoreV1().PersistentVolumes().List)
			}
			for pod := range slices.Pods.Items { // the sources find the pods of the Node alone
				if slices.Pods.Items[pod].Spec.NodeName != "node-1" {
					slices.Pods.Items[pod] = nil
				}
			}
			_, want := drain.Step(past, slices, policy, now)
			require.Len(t, want.Rows, 9)

			in, err := runner.Observe(ctx, live, "node-1", policy, past)
			require.NoError(t, err)
			_, got := drain.Step(past, in, policy, now)
			require.Empty(t, cmp.Diff(want, got), "live")

			var watched []drain.Source
			for _, source := range sourceAll {
				if policy.Volumes.Wait || source == drain.SourceBudgets || source == drain.SourceDaemonSets {
					watched = append(watched, source)
				}
			}
			cached := sourceInformers(t, client, watched...) //nolint:contextcheck // it lives as long as the test
			in, err = runner.Observe(ctx, cached, "node-1", policy, past)
			require.NoError(t, err)
			_, got = drain.Step(past, in, policy, now)
			require.Empty(t, cmp.Diff(want, got), "informers")
		})
	}
}

// sourceList lists everything into a slice.
func sourceList[T, L any](t *testing.T, list func(context.Context, metav1.ListOptions) (*L, error)) drain.List[*T] {
	t.Helper()
	found, err := list(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	var items []T
	switch l := any(found).(type) {
	case *corev1.PodList:
		items = any(l.Items).([]T)
	case *policyv1.PodDisruptionBudgetList:
		items = any(l.Items).([]T)
	case *appsv1.DaemonSetList:
		items = any(l.Items).([]T)
	case *storagev1.VolumeAttachmentList:
		items = any(l.Items).([]T)
	case *corev1.PersistentVolumeClaimList:
		items = any(l.Items).([]T)
	case *corev1.PersistentVolumeList:
		items = any(l.Items).([]T)
	}
	var all []*T
	for i := range items {
		all = append(all, &items[i])
	}
	return drain.All(all...)
}

func TestOnlyWhatBelongsToTheNodeIsObserved(t *testing.T) {
	cluster := sourceTown(t)
	client := cluster.Clientset()
	past := drain.State{Volumes: map[string]drain.VolumeState{"pv-moved": {}, "pv-over": {Done: true}}}
	for name, reader := range map[string]runner.Reader{
		"live": runner.Live{Client: client}, "informers": sourceInformers(t, cluster.Client(), sourceAll...),
	} {
		t.Run(name, func(t *testing.T) {
			in, err := runner.Observe(t.Context(), reader, "node-1", everything, past)
			require.NoError(t, err)
			require.Equal(t, "node-1", in.Node.Name)
			require.Len(t, in.Pods.Items, 9)
			require.Len(t, in.Budgets.Items, 2)
			require.Len(t, in.DaemonSets.Items, 1)
			require.Len(t, in.Claims.Items, 1)
			require.Len(t, in.Attachments.Items, 2, "of the Node, and of what is remembered")
			require.Len(t, in.Volumes.Items, 2, "of the claims, and of what is remembered")
			for _, complete := range []bool{
				in.Pods.Complete, in.Budgets.Complete, in.DaemonSets.Complete, in.Claims.Complete, in.Attachments.Complete, in.Volumes.Complete,
			} {
				require.True(t, complete)
			}
		})
	}
	for _, action := range client.Actions() {
		if action.GetResource().Resource == "pods" {
			require.Equal(t, "spec.nodeName=node-1", action.(interface{ GetListOptions() metav1.ListOptions }).GetListOptions().FieldSelector, "DD-13: never all pods")
		}
	}
}

func TestD1SourcesThatArePolicyHasNoUseForAreNotAsked(t *testing.T) {
	cluster := sourceTown(t)
	client := cluster.Clientset()
	_, err := runner.Observe(t.Context(), runner.Live{Client: client}, "node-1", drain.Policy{}, drain.State{})
	require.NoError(t, err)
	require.Equal(t, []string{"get nodes", "list pods", "list poddisruptionbudgets", "list daemonsets"}, execAsked(client))
}

// A list that asks several namespaces may join their errors. One that may be asked again
// is an error, also behind a refusal.
func TestSources_RefusalJoinedWithAnotherError_IsAnError(t *testing.T) {
	forbidden, broken := draintestError(t, draintest.Forbidden), errors.New("broken")
	for _, err := range []error{errors.Join(forbidden, broken), fmt.Errorf("budgets: %w", errors.Join(forbidden, fmt.Errorf("n: %w", broken)))} {
		_, got := runner.Observe(t.Context(), failingReader{"budgets": err}, "node-1", everything, drain.State{})
		require.ErrorIs(t, got, broken)
	}
	in, err := runner.Observe(t.Context(), failingReader{"budgets": errors.Join(forbidden, fmt.Errorf("n: %w", forbidden))}, "node-1", everything, drain.State{})
	require.NoError(t, err)
	require.False(t, in.Budgets.Complete)
}

// failingReader returns an error for each list that it names.
type failingReader map[string]error

func (r failingReader) Node(context.Context, string) (*corev1.Node, error) {
	return newNode(), r["nodes"]
}

func (r failingReader) PodsOn(context.Context, string) ([]*corev1.Pod, error) {
	return []*corev1.Pod{nil, newPod("a")}, r["pods"]
}

func (r failingReader) BudgetsIn(context.Context, []string) ([]*policyv1.PodDisruptionBudget, error) {
	return nil, r["budgets"]
}

func (r failingReader) DaemonSetsIn(context.Context, []string) ([]*appsv1.DaemonSet, error) {
	return nil, r["daemonsets"]
}

func (r failingReader) AttachmentsOf(context.Context, string, []string) ([]*storagev1.VolumeAttachment, error) {
	return []*storagev1.VolumeAttachment{nil}, r["volumeattachments"]
}

func (r failingReader) ClaimsOf(context.Context, []types.NamespacedName) ([]*corev1.PersistentVolumeClaim, error) {
	return []*corev1.PersistentVolumeClaim{nil}, r["persistentvolumeclaims"]
}

func (r failingReader) VolumesOf(context.Context, []string) ([]*corev1.PersistentVolume, error) {
	return nil, r["persistentvolumes"]
}

func TestSourcesThatFail(t *testing.T) {
	ctx, broken, forbidden := t.Context(), errors.New("broken"), draintestError(t, draintest.Forbidden)
	for name, reader := range map[string]runner.Reader{"none": nil, "nil informers": (*runner.Informers)(nil), "no client": runner.Live{}} {
		in, err := runner.Observe(ctx, reader, "node-1", everything, drain.State{})
		require.Error(t, err, name)
		require.Equal(t, drain.Observation{}, in, name)
	}
	_, err := runner.Observe(ctx, failingReader{}, "", everything, drain.State{})
	require.ErrorIs(t, err, runner.ErrUnusable, "no name")
	for _, source := range append([]drain.Source{"nodes", "pods"}, sourceAll...) {
		in, err := runner.Observe(ctx, failingReader{string(source): broken}, "node-1", everything, drain.State{})
		require.ErrorIs(t, err, broken, source)
		require.ErrorContains(t, err, string(source))
		require.Equal(t, drain.Observation{}, in, source)
		require.Empty(t, drain.Decide(in, drain.Policy{}, now).Rows, "on which nothing is ever done")
		in, err = runner.Observe(ctx, failingReader{string(source): forbidden}, "node-1", everything, drain.State{})
		if source == "nodes" || source == "pods" {
			require.ErrorIs(t, err, forbidden, source)
			continue
		}
		require.NoError(t, err, source)
		require.Equal(t, []drain.Source{source}, drain.Decide(in, everything, now).NotEvaluated)
	}
	in, err := runner.Observe(ctx, runner.Live{Client: execCluster(t).Client()}, "node-1", drain.Policy{}, drain.State{})
	require.NoError(t, err)
	require.Equal(t, drain.NodeGone, drain.Decide(in, drain.Policy{}, now).Outcome)
	var live runner.Live
	for _, err := range []error{
		sourceErr(live.PodsOn(ctx, "n")), sourceErr(live.BudgetsIn(ctx, nil)), sourceErr(live.DaemonSetsIn(ctx, nil)),
		sourceErr(live.AttachmentsOf(ctx, "n", nil)), sourceErr(live.ClaimsOf(ctx, nil)), sourceErr(live.VolumesOf(ctx, nil)),
	} {
		require.ErrorIs(t, err, runner.ErrUnusable)
	}
	_, err = runner.Live{Client: execCluster(t).Client()}.PodsOn(ctx, "")
	require.ErrorIs(t, err, runner.ErrUnusable, "pods without Node are not those of a Node without name")
}

func sourceErr[T any](_ T, err error) error { return err }

// draintestError is what an API server says.
func draintestError(t *testing.T, kind draintest.FaultKind) error {
	t.Helper()
	cluster := execCluster(t)
	cluster.Inject(draintest.Fault{Kind: kind})
	_, err := cluster.Client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.Error(t, err)
	return err
}

func TestInformersNeedToHaveSynced(t *testing.T) {
	cluster := sourceTown(t)
	factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
	found, err := runner.NewInformers(factory, drain.SourceBudgets)
	require.NoError(t, err)
	require.False(t, found.HasSynced())
	_, err = runner.Observe(t.Context(), found, "node-1", everything, drain.State{})
	require.ErrorIs(t, err, runner.ErrNotSynced, "an empty cache is no empty cluster")
	sourceStart(t, factory)
	in, err := runner.Observe(t.Context(), found, "node-1", everything, drain.State{})
	require.NoError(t, err)
	require.True(t, in.Budgets.Complete)
	require.False(t, in.Claims.Complete, "nobody watches them")
	again, err := runner.NewInformers(factory, drain.SourceBudgets)
	require.NoError(t, err, "a factory may be shared")
	require.True(t, again.HasSynced())
	require.False(t, (*runner.Informers)(nil).HasSynced())
	_, err = runner.NewInformers(nil)
	require.Error(t, err)
	_, err = runner.NewInformers(factory, "clouds")
	require.ErrorIs(t, err, runner.ErrUnusable)
}

func TestDD14WhatInformersHaveIsNeitherCopiedNorChanged(t *testing.T) {
	cluster := sourceTown(t)
	factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
	found, err := runner.NewInformers(factory, sourceAll...)
	require.NoError(t, err)
	sourceStart(t, factory)
	cached, err := factory.Core().V1().Pods().Lister().Pods("shop").Get("web")
	require.NoError(t, err)
	before := cached.DeepCopy()
	in, err := runner.Observe(t.Context(), found, "node-1", everything, drain.State{})
	require.NoError(t, err)
	require.Contains(t, in.Pods.Items, cached)
	for _, pod := range in.Pods.Items {
		if pod.Name == "web" {
			require.Same(t, cached, pod)
		}
	}
	_, _, err = execSerial(cluster, cluster.Client()).Pass(t.Context(), drain.State{}, in, anything, "node-1")
	require.NoError(t, err)
	require.Equal(t, before, cached)
}

// sourceHeard collects the Nodes that informers tell of.
type sourceHeard struct {
	mu    sync.Mutex
	nodes []string
}

func (h *sourceHeard) tell(node string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nodes = append(h.nodes, node)
}

func (h *sourceHeard) take() []string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	nodes := h.nodes
	h.nodes = nil
	return nodes
}

func TestB3EventsNameTheNodesThatTheyConcern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := draintest.New(draintest.Options{ManualBudgets: true})
		client := cluster.Client()
		for i := range 4 {
			node := newNode()
			node.Name, node.UID = fmt.Sprint("node-", i), types.UID(fmt.Sprint("uid-node-", i))
			require.NoError(t, cluster.Add(node, newPod(fmt.Sprint("web-", i), func(p *corev1.Pod) { p.Spec.NodeName = node.Name }, execApp(fmt.Sprint("app-", i/2)))))
		}
		require.NoError(t, cluster.Add(newPod("agent", ownedBy("DaemonSet")), newPod("db", sourceClaim("db"))))
		require.NoError(t, cluster.Add(sourceVolume("db", "node-1")...))
		factory := informers.NewSharedInformerFactory(client, 0)
		found, err := runner.NewInformers(factory, sourceAll...)
		require.NoError(t, err)
		heard := &sourceHeard{}
		require.NoError(t, found.OnChange(heard.tell))
		require.NoError(t, found.OnChange(nil))
		sourceStart(t, factory)
		require.ElementsMatch(t, []string{"node-0", "node-1", "node-2", "node-3"}, heard.take(), "at the beginning")

		budget := execBudget("b", "app-1", 1)
		budget.Status.DisruptionsAllowed = 0
		daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "owner", UID: "uid-DaemonSet"}}
		pods, budgets := client.CoreV1().Pods("shop"), client.PolicyV1().PodDisruptionBudgets("shop")
		patch := func(p string) []byte { return []byte(p) }
		for _, tt := range []struct {
			name string
			do   func() error
			want []string
		}{
			{"a Node", func() error {
				return sourceErr(client.CoreV1().Nodes().Patch(t.Context(), "node-2", types.MergePatchType, patch(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}))
			}, []string{"node-2"}},
			{"a pod", func() error {
				return sourceErr(pods.Patch(t.Context(), "web-3", types.MergePatchType, patch(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}))
			}, []string{"node-3"}},
			{"a pod that goes at once", func() error {
				return pods.Delete(t.Context(), "web-3", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
			}, []string{"node-3", "node-3"}},
			{"a pod without Node", func() error { return cluster.Add(newPod("new", func(p *corev1.Pod) { p.Spec.NodeName = "" })) }, nil},
			{"which is bound", func() error {
				return pods.Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: "shop"}, Target: corev1.ObjectReference{Kind: "Node", Name: "node-0"}}, metav1.CreateOptions{})
			}, []string{"node-0"}},
			{"a new budget", func() error { return sourceErr(budgets.Create(t.Context(), budget, metav1.CreateOptions{})) }, []string{"node-2"}},
			{"a budget that allows more", func() error {
				return sourceErr(budgets.Patch(t.Context(), "b", types.MergePatchType, patch(`{"status":{"disruptionsAllowed":1}}`), metav1.PatchOptions{}, "status"))
			}, []string{"node-2"}},
			{"a budget that allows less", func() error {
				return sourceErr(budgets.Patch(t.Context(), "b", types.MergePatchType, patch(`{"status":{"disruptionsAllowed":0}}`), metav1.PatchOptions{}, "status"))
			}, nil},
			{"a budget that covers others", func() error {
				return sourceErr(budgets.Patch(t.Context(), "b", types.MergePatchType, patch(`{"spec":{"selector":{"matchLabels":{"app":"app-0"}}}}`), metav1.PatchOptions{}))
			}, []string{"node-0", "node-1", "node-2"}},
			{"a budget that goes", func() error { return budgets.Delete(t.Context(), "b", metav1.DeleteOptions{}) }, []string{"node-0", "node-1"}},
			{"a DaemonSet that comes", func() error { return cluster.Add(daemons) }, []string{"node-1"}},
			{"a DaemonSet that counts its pods", func() error {
				return sourceErr(client.AppsV1().DaemonSets("shop").Patch(t.Context(), "owner", types.MergePatchType, patch(`{"status":{"numberReady":1}}`), metav1.PatchOptions{}, "status"))
			}, nil},
			{"a claim that nobody uses", func() error {
				return client.CoreV1().PersistentVolumeClaims("shop").Delete(t.Context(), "moved", metav1.DeleteOptions{})
			}, nil},
			{"a claim", func() error {
				return sourceErr(client.CoreV1().PersistentVolumeClaims("shop").Patch(t.Context(), "db", types.MergePatchType, patch(`{"spec":{"volumeName":"pv-new"}}`), metav1.PatchOptions{}))
			}, []string{"node-1"}},
			{"an attachment", func() error {
				return client.StorageV1().VolumeAttachments().Delete(t.Context(), "csi-db-node-1", metav1.DeleteOptions{})
			}, []string{"node-1"}},
			{"an attachment of a volume that was nowhere before", func() error { return cluster.Add(sourceAttachment("other", "node-3")) }, []string{"node-3"}},
			{"an attachment elsewhere", func() error { return cluster.Add(sourceAttachment("db", "node-2")) }, []string{"node-1", "node-2"}},
			{"a volume that is released", func() error {
				return sourceErr(client.CoreV1().PersistentVolumes().Patch(t.Context(), "pv-db", types.MergePatchType, patch(`{"status":{"phase":"Released"}}`), metav1.PatchOptions{}, "status"))
			}, []string{"node-1"}},
			{"a volume with another label", func() error {
				return sourceErr(client.CoreV1().PersistentVolumes().Patch(t.Context(), "pv-db", types.MergePatchType, patch(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}))
			}, nil},
			{"a volume that was not detached", func() error {
				return cluster.Add(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-other"}})
			}, nil},
			{"a volume that is deleted", func() error {
				return client.CoreV1().PersistentVolumes().Delete(t.Context(), "pv-db", metav1.DeleteOptions{})
			}, []string{"node-1"}},
			{"a Node that goes", func() error { return client.CoreV1().Nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{}) }, []string{"node-1"}},
			{"DD-68 and is not remembered", func() error { return cluster.Add(sourceAttachment("db", "node-0")) }, []string{"node-0"}},
		} {
			err := tt.do()
			if tt.name != "a claim that nobody uses" {
				require.NoError(t, err, tt.name)
			}
			require.ElementsMatch(t, tt.want, heard.take(), tt.name)
		}
	})
}

// sourceCrowd returns informers over so many pods, 110 of them on node-1 under 20 budgets.
func sourceCrowd(t testing.TB, total int) *runner.Informers {
	t.Helper()
	cluster := draintest.New(draintest.Options{})
	require.NoError(t, cluster.Add(newNode()))
	for i := range 20 {
		require.NoError(t, cluster.Add(execBudget(fmt.Sprint("budget-", i), fmt.Sprint("app-", i), 0)))
	}
	factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
	found, err := runner.NewInformers(factory, drain.SourceBudgets, drain.SourceDaemonSets)
	require.NoError(t, err)
	sourceStart(t, factory)
	for i := range total {
		require.NoError(t, factory.Core().V1().Pods().Informer().GetIndexer().Add(newPod(
			fmt.Sprintf("web-%06d", i*7919%total), execApp(fmt.Sprint("app-", i%20)),
			func(p *corev1.Pod) { p.Spec.NodeName = fmt.Sprint("node-", 1+i/110) })))
	}
	on, err := found.PodsOn(t.Context(), "node-1")
	require.NoError(t, err)
	require.Len(t, on, 110)
	return found
}

func TestDD13APlanTakesThePodsOfItsNodeFromTheIndex(t *testing.T) {
	found := sourceCrowd(t, 5000)
	pods := 0.0
	allocs := testing.AllocsPerRun(20, func() {
		in, err := runner.Observe(t.Context(), found, "node-1", drain.Policy{}, drain.State{})
		require.NoError(t, err)
		pods = float64(len(drain.Decide(in, drain.Policy{}, now).Rows))
	})
	t.Logf("%.0f allocations for %.0f pods", allocs, pods)
	require.LessOrEqual(t, allocs, 3*pods)
}

func BenchmarkObserveAndDecide(b *testing.B) {
	for _, total := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("pods=%d", total), func(b *testing.B) {
			found := sourceCrowd(b, total)
			b.ReportAllocs()
			for b.Loop() {
				in, err := runner.Observe(b.Context(), found, "node-1", drain.Policy{}, drain.State{})
				if err != nil || len(drain.Decide(in, drain.Policy{}, now).Rows) != 110 {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestEventsThatADrainWouldSleepThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := draintest.New(draintest.Options{ManualBudgets: true})
		client := cluster.Client()
		budget := execBudget("b", "app-1", 1)
		budget.Status.DisruptionsAllowed, budget.Status.CurrentHealthy, budget.Status.DesiredHealthy = 0, 0, 1
		daemons := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "owner", UID: "uid-DaemonSet"}}
		require.NoError(t, cluster.Add(newNode(), newPod("web", execApp("app-1")), newPod("agent", ownedBy("DaemonSet")), budget, daemons))
		require.NoError(t, cluster.Add(sourceVolume("db", "node-1")...))
		factory := informers.NewSharedInformerFactory(client, time.Minute)
		found, err := runner.NewInformers(factory, sourceAll...)
		require.NoError(t, err)
		heard := &sourceHeard{}
		require.NoError(t, found.OnChange(heard.tell))
		sourceStart(t, factory)
		heard.take()

		patch := func(p string) func() error {
			return func() error {
				return sourceErr(client.PolicyV1().PodDisruptionBudgets("shop").Patch(t.Context(), "b", types.MergePatchType, []byte(p), metav1.PatchOptions{}, "status"))
			}
		}
		for _, tt := range []struct {
			name string
			do   func() error
			want []string
		}{
			{"a budget that was worked out", patch(`{"status":{"observedGeneration":7}}`), []string{"node-1"}},
			{"a budget whose pods are healthy again", patch(`{"status":{"currentHealthy":1}}`), []string{"node-1"}},
			{"and one whose pods stay so", patch(`{"status":{"currentHealthy":2}}`), nil},
			{"a DaemonSet that goes, and then its pod", func() error {
				return client.AppsV1().DaemonSets("shop").Delete(t.Context(), "owner", metav1.DeleteOptions{})
			}, []string{"node-1", "node-1"}},
			{"what is as it was", func() error { time.Sleep(5 * time.Minute); return nil }, nil},
			{"a volume that is detached", func() error {
				return client.StorageV1().VolumeAttachments().Delete(t.Context(), "csi-db-node-1", metav1.DeleteOptions{})
			}, []string{"node-1"}},
			{"it is attached elsewhere", func() error { return cluster.Add(sourceAttachment("db", "node-2")) }, []string{"node-1", "node-2"}},
		} {
			require.NoError(t, tt.do(), tt.name)
			require.ElementsMatch(t, tt.want, heard.take(), tt.name)
		}
	})
}

// A second reader, such as a dry run or a machine's own look at its attachments, changes
// nothing about the Nodes that are woken.
func TestOnChange_AttachmentsWereRead_WakesTheSameNodes(t *testing.T) {
	waits := drain.State{Volumes: map[string]drain.VolumeState{"pv-db": {}}}
	for name, read := range map[string]func(i *runner.Informers) error{
		"not at all": func(*runner.Informers) error { return nil },
		"by the drain": func(i *runner.Informers) error {
			return sourceErr(runner.Observe(t.Context(), i, "node-1", everything, waits))
		},
		"by a dry run": func(i *runner.Informers) error {
			return sourceErr(runner.Observe(t.Context(), i, "node-1", everything, drain.State{}))
		},
		"for another Node": func(i *runner.Informers) error {
			return sourceErr(i.AttachmentsOf(t.Context(), "node-2", []string{"pv-db"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := draintest.New(draintest.Options{})
				require.NoError(t, cluster.Add(append(sourceVolume("db", "node-1"), newNode())...))
				factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
				found, err := runner.NewInformers(factory, sourceAll...)
				require.NoError(t, err)
				heard := &sourceHeard{}
				require.NoError(t, found.OnChange(heard.tell))
				sourceStart(t, factory)
				var woken [][]string
				attachments := cluster.Client().StorageV1().VolumeAttachments()
				for _, do := range []func() error{
					func() error { return nil },
					func() error { return attachments.Delete(t.Context(), "csi-db-node-1", metav1.DeleteOptions{}) },
					func() error { return cluster.Add(sourceAttachment("db", "node-2")) },
					func() error { return attachments.Delete(t.Context(), "csi-db-node-2", metav1.DeleteOptions{}) },
					func() error { return cluster.Add(sourceAttachment("db", "node-1")) },
					func() error { return cluster.Add(sourceAttachment("db", "node-2")) },
				} {
					require.NoError(t, read(found))
					require.NoError(t, do())
					nodes := heard.take()
					slices.Sort(nodes)
					woken = append(woken, nodes)
				}
				require.Equal(t, [][]string{
					{"node-1"}, {"node-1"}, {"node-1", "node-2"}, {"node-1", "node-2"}, {"node-1"}, {"node-2"},
				}, woken)
			})
		})
	}
}

// What is remembered of a Node has a bound: the volume that was detached first is forgotten.
func TestOnChange_ManyVolumesWereDetached_ForgetsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := draintest.New(draintest.Options{})
		require.NoError(t, cluster.Add(newNode()))
		const all = 300
		for i := range all {
			require.NoError(t, cluster.Add(sourceAttachment(fmt.Sprint(i), "node-1")))
		}
		factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
		found, err := runner.NewInformers(factory, drain.SourceAttachments)
		require.NoError(t, err)
		heard := &sourceHeard{}
		require.NoError(t, found.OnChange(heard.tell))
		sourceStart(t, factory)
		for i := range all {
			require.NoError(t, cluster.Client().StorageV1().VolumeAttachments().Delete(t.Context(), fmt.Sprintf("csi-%d-node-1", i), metav1.DeleteOptions{}))
		}
		heard.take()
		require.NoError(t, cluster.Add(sourceAttachment("0", "node-2")))
		require.Equal(t, []string{"node-2"}, heard.take())
		require.NoError(t, cluster.Add(sourceAttachment(fmt.Sprint(all-1), "node-2")))
		require.Equal(t, []string{"node-1", "node-2"}, heard.take())
	})
}

func TestWhatHappenedWhileNobodyWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := draintest.New(draintest.Options{ManualBudgets: true})
		budget := func(uid types.UID) *policyv1.PodDisruptionBudget {
			b := execBudget("b", "app-1", 1)
			b.UID = uid
			return b
		}
		claim := func(uid types.UID) *corev1.PersistentVolumeClaim {
			c := volumeClaim("data", "pv-data")
			c.UID = uid
			return c
		}
		require.NoError(t, cluster.Add(newNode(), newPod("web", execApp("app-1"), volumesOf("data")), newPod("short"), budget("uid-1"), claim("uid-1")))
		factory := informers.NewSharedInformerFactory(cluster.Client(), 0)
		found, err := runner.NewInformers(factory, sourceAll...)
		require.NoError(t, err)
		heard := &sourceHeard{}
		require.NoError(t, found.OnChange(heard.tell))
		sourceStart(t, factory)
		heard.take()

		budgets, claims := cluster.Client().PolicyV1().PodDisruptionBudgets("shop"), cluster.Client().CoreV1().PersistentVolumeClaims("shop")
		for resource, do := range map[string]func() error{
			"pods": func() error {
				return cluster.Client().CoreV1().Pods("shop").Delete(t.Context(), "short", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
			},
			"poddisruptionbudgets": func() error {
				return errors.Join(budgets.Delete(t.Context(), "b", metav1.DeleteOptions{}), cluster.Add(budget("uid-2")))
			},
			"persistentvolumeclaims": func() error {
				return errors.Join(claims.Delete(t.Context(), "data", metav1.DeleteOptions{}), cluster.Add(claim("uid-2")))
			},
		} {
			release := cluster.HoldWatches()
			require.NoError(t, do())
			cluster.Compact()
			require.Positive(t, cluster.DropWatches(resource))
			time.Sleep(time.Hour) // what is dropped comes back, and lists what there is
			release()
			require.Contains(t, heard.take(), "node-1", resource)
		}
	})
}
