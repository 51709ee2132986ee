// SPDX-License-Identifier: Apache-2.0

package nodetools_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/machinist-dev/machinist/nodeops"
)

// ownedBy reports whether an owner has a claim on the Node.
func ownedBy(node *corev1.Node, owner string) bool {
	return slices.ContainsFunc(nodeops.Cordons(node), func(c nodeops.Claim) bool { return c.Owner == owner })
}

// TestReboot_EachNode_OneAtATimeAfterAKill has two Nodes that need a reboot, and a PodDisruptionBudget that holds the
// first one until its daemon was killed.
func TestReboot_EachNode_OneAtATimeAfterAKill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.deploy("web", 4, 4)
	folder := t.TempDir()
	log := filepath.Join(folder, "log")
	daemons := map[string]*tool{}
	x := w.newTool("reboot")
	start := func(node string) {
		file := filepath.Join(folder, node)
		daemons[node] = &tool{world: w, program: x.program, kubeconfig: x.kubeconfig}
		daemons[node].start("--kubeconfig", x.kubeconfig, "--node", node, "--namespace", metav1.NamespaceDefault, "--required", file, "--ttl", "20s",
			"--command", "echo "+node+" >> "+log+"; rm "+file)
	}
	rebooting := w.nodes[:2]
	for _, node := range rebooting {
		require.NoError(t, os.WriteFile(filepath.Join(folder, node), nil, 0o600))
		start(node)
	}
	cordoned := func() (names []string) {
		for _, node := range rebooting {
			if ownedBy(w.node(node), "reboot") {
				names = append(names, node)
			}
		}
		require.LessOrEqual(t, len(names), 1, "one at a time")
		return names
	}
	w.until("a Node is cordoned", func() bool { return len(cordoned()) == 1 })
	first := cordoned()[0]
	w.until("the budget holds the drain", func() bool { return strings.Contains(daemons[first].out.String(), "to evict (DisruptionBudget)") })
	daemons[first].kill()
	for range 50 { // the lock outlives its holder
		require.Equal(t, []string{first}, cordoned())
		time.Sleep(100 * time.Millisecond)
	}
	w.budget("web", 3)
	start(first)
	w.until("both are rebooted and open", func() bool {
		text, _ := os.ReadFile(log)
		return len(cordoned()) == 0 && strings.Count(string(text), "\n") == 2
	})
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, first, strings.Fields(string(text))[0])
	for _, node := range rebooting {
		require.False(t, w.node(node).Spec.Unschedulable)
	}
	w.until("the lock is free", func() bool {
		lease, err := w.client.CoordinationV1().Leases(metav1.NamespaceDefault).Get(t.Context(), "reboot", metav1.GetOptions{})
		require.NoError(t, err)
		return lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == ""
	})
}

// TestSpot_Notice_EvictsWhatItCan has one app whose PodDisruptionBudget never allows an eviction.
func TestSpot_Notice_EvictsWhatItCan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.deploy("web", 4, 2)
	w.deploy("stuck", 2, 2)
	var notice atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(r http.ResponseWriter, _ *http.Request) {
		if !notice.Load() {
			r.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	node := w.nodeOf("stuck")
	evicted := w.pods("web", node)
	x := w.newTool("spot")
	args := []string{"--kubeconfig", x.kubeconfig, "--node", node, "--notice", server.URL, "--left", "30s"}
	x.start(args...)
	time.Sleep(2 * time.Second)
	require.False(t, w.node(node).Spec.Unschedulable, "there is no notice")
	notice.Store(true)
	w.until("it is cordoned", func() bool { return ownedBy(w.node(node), "spot") })
	x.kill()
	started := time.Now()
	x.start(args...)
	require.NoError(t, <-x.ended)
	require.Less(t, time.Since(started), 30*time.Second)
	require.Contains(t, x.out.String(), "left: pod/"+w.ns+"/stuck-")
	require.NotContains(t, x.out.String(), "left: pod/"+w.ns+"/web-")
	after := w.node(node)
	require.True(t, after.Spec.Unschedulable)
	require.Contains(t, after.Labels, corev1.LabelNodeExcludeBalancers)
	require.NotEmpty(t, w.pods("stuck", node))
	for _, pod := range w.pods("web", node) {
		require.False(t, slices.ContainsFunc(evicted, func(p corev1.Pod) bool { return p.UID == pod.UID && pod.DeletionTimestamp == nil }), pod.Name)
	}
}

// TestUpdate_OwnNode_GoesLast plays the kubelet of the pod of the updater: each of its pods is a process.
func TestUpdate_OwnNode_GoesLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.deploy("web", 4, 3)
	w.deploy("updater", 1, 0)
	log := filepath.Join(t.TempDir(), "log")
	x := w.newTool("update")
	run := func(pod corev1.Pod) (done bool) {
		x.start("--kubeconfig", x.kubeconfig, "--pod", w.ns+"/"+pod.Name, "--selector", "world="+w.ns, "--version", "42", "--command", "echo $NODE >> "+log)
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			select {
			case err := <-x.ended:
				require.NoError(t, err)
				return true
			default:
			}
			now, err := w.client.CoreV1().Pods(w.ns).Get(t.Context(), pod.Name, metav1.GetOptions{})
			if err != nil || now.DeletionTimestamp != nil {
				x.kill()
				return false
			}
		}
		t.Fatal("neither evicted nor done")
		return false
	}
	var own []string
	for done := false; !done; {
		require.Less(t, len(own), 5)
		var pods []corev1.Pod
		w.until("there is a pod", func() bool {
			pods = slices.DeleteFunc(w.pods("updater", ""), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || p.Spec.NodeName == "" })
			return len(pods) == 1
		})
		own = append(own, pods[0].Spec.NodeName)
		done = run(pods[0])
	}
	require.Greater(t, len(own), 1, "it has evicted itself")
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	updated := strings.Fields(string(text))
	require.ElementsMatch(t, w.nodes, updated, "each Node once")
	require.Equal(t, own[0], updated[2], "the Node of the first pod is the last one")
	for _, node := range w.nodes {
		n := w.node(node)
		require.Equal(t, "42", n.Annotations["update.example.com/version"])
		require.False(t, n.Spec.Unschedulable)
	}
}

var maintenances = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "nodemaintenances"}

// TestMaintenance_Status_NamesEachPodThatWaits has an operator over controller-runtime that is killed while a
// PodDisruptionBudget holds the drain.
func TestMaintenance_Status_NamesEachPodThatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.deploy("web", 4, 4)
	x := w.newTool("maintenance")
	objects, err := dynamic.NewForConfig(plane.Config())
	require.NoError(t, err)
	definition := &unstructured.Unstructured{}
	text, err := os.ReadFile(filepath.Join("..", "..", "samples", "nodetools", "maintenance", "definition.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, definition))
	definitions := objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	_, err = definitions.Create(t.Context(), definition, metav1.CreateOptions{})
	require.NoError(t, err)
	node := w.nodes[0]
	m := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "NodeMaintenance", "metadata": map[string]any{"name": node}, "spec": map[string]any{"gracePeriodSeconds": int64(2)},
	}}
	w.until("it is created", func() bool {
		_, err := objects.Resource(maintenances).Create(t.Context(), m, metav1.CreateOptions{})
		return err == nil
	})
	status := func() (outcome string, waits []string) {
		m, err := objects.Resource(maintenances).Get(t.Context(), node, metav1.GetOptions{})
		require.NoError(t, err)
		outcome, _, _ = unstructured.NestedString(m.Object, "status", "outcome")
		waits, _, _ = unstructured.NestedStringSlice(m.Object, "status", "waitsFor")
		return outcome, waits
	}
	x.start()
	pods := w.pods("web", node)
	require.NotEmpty(t, pods)
	w.until("each pod waits", func() bool {
		_, waits := status()
		for _, pod := range pods {
			if !slices.ContainsFunc(waits, func(s string) bool { return strings.Contains(s, pod.Name+": BudgetNeverAllows") }) {
				return false
			}
		}
		return len(waits) == len(pods)
	})
	x.kill()
	require.True(t, w.node(node).Spec.Unschedulable)
	x.start()
	w.budget("web", 3)
	w.until("it is drained", func() bool {
		outcome, waits := status()
		return outcome == "Drained" && len(waits) == 0
	})
	require.Empty(t, w.pods("web", node))
	require.NoError(t, objects.Resource(maintenances).Delete(t.Context(), node, metav1.DeleteOptions{}))
	w.until("it is uncordoned", func() bool { return !w.node(node).Spec.Unschedulable })
	w.until("it is gone", func() bool {
		list, err := objects.Resource(maintenances).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
}
