// SPDX-License-Identifier: Apache-2.0

package draining_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/draining"
)

// TestMain removes the pause of client-go between two errors. It is measured from the last error of
// the process, and the time of a synctest bubble may be years before that.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // there is no other way
	goleak.VerifyTestMain(m)
}

func TestDrain_Node_EvictsAndReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, testPod("web-1", "node-1"), testPod("web-2", "node-2"))
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1"), r.errOut)
		require.False(t, r.there("web-1"))
		require.True(t, r.there("web-2"))
		require.True(t, r.node().Spec.Unschedulable)
		r.out.line(t, "draining node node-1 of 1 pod")
		r.out.line(t, "cordoned node node-1")
		r.out.line(t, "evicting shop/web-1")
		r.out.line(t, "evicted shop/web-1")
		r.out.line(t, "node node-1 drained")
		require.Empty(t, r.errOut.String())
		for line := range strings.Lines(r.out.String()) {
			_, err := time.Parse(time.TimeOnly, line[:8])
			require.NoError(t, err, line)
		}
	})
}

func TestDrain_BudgetExhausted_ReportsAfterOneRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, blocked()...)
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		status := r.start(ctx, "node-1", "--force-after=1h")
		line := r.out.line(t, "waiting for shop/web-1")
		for _, words := range []string{
			"DisruptionBudget", "budget shop/web-budget", "allows 0", "1 of 2 healthy",
			"next: evicted as soon as the budget allows it",
		} {
			require.Contains(t, line, words)
		}
		require.Regexp(t, `; since (\S+ )?\d\d:\d\d:\d\d; next: `, line)
		require.Regexp(t, `, deleted at (\S+ )?\d\d:\d\d:\d\d$`, strings.TrimSpace(line))
		require.Less(t, time.Since(began), 5*time.Second, "one round does not take as long as a repetition")
		require.Equal(t, 1, strings.Count(r.out.String(), "waiting for shop/web-1"))
		cancel()
		require.Equal(t, cli.Failed, r.ends(status))
		require.True(t, r.there("web-1"))
	})
}

func TestDrain_BudgetFreed_Continues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, blocked()...)
		status := r.start(t.Context(), "node-1")
		r.out.line(t, "waiting for shop/web-1", "shop/web-budget")
		freed := time.Now()
		r.free()
		require.Equal(t, cli.Done, r.ends(status), r.errOut)
		require.Less(t, time.Since(freed), 3*time.Second)
		require.False(t, r.there("web-1"))
		r.out.line(t, "evicted shop/web-1")
	})
}

func TestTimeout_Holds_AreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, append(blocked(), testPod("job", "node-1", stuck, func(p *corev1.Pod) { p.Labels = nil }))...)
		require.Equal(t, cli.Failed, r.run(t.Context(), "node-1", "--timeout=500ms"))
		r.errOut.line(t, "error: node node-1: not drained after 500ms; it waits for")
		r.errOut.line(t, "shop/web-1: DisruptionBudget", "shop/web-budget", "since")
		r.errOut.line(t, "shop/job")
		require.NotContains(t, r.out.String(), "node node-1 drained")
		require.True(t, r.node().Spec.Unschedulable, "without --undo the Node stays cordoned")
	})
}

func TestTimeout_PodsNotListed_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, testPod("web-1", "node-1"))
		r.cluster.Inject(draintest.Fault{Kind: draintest.Unavailable, Resource: "pods", Skip: 1})
		require.Equal(t, cli.Failed, r.run(t.Context(), "node-1", "--timeout=300ms"))
		r.errOut.line(t, "error: node node-1: not drained after 300ms", "unable to handle the request")
		r.cluster.ClearFaults()
		require.True(t, r.there("web-1"))
	})
}

func TestForce_Deadline_DeletesDespiteBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, blocked()...)
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--force-after=300ms"), r.errOut)
		require.False(t, r.there("web-1"))
		r.out.line(t, "waiting for shop/web-1", "deleted at")
		r.out.line(t, "escalates")
		r.out.line(t, "deleting shop/web-1 (IgnoreBudgets)")
		r.out.line(t, "deleted shop/web-1")
	})
}

func TestForceDelete_Pods_AreRemovedFromTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, testPod("web-1", "node-1"))
		r.cluster.SetNodeSilent("node-1", true)
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--force-delete-after=300ms"), r.errOut)
		r.out.line(t, "evicting shop/web-1")
		r.out.line(t, "force-deleted shop/web-1")
	})
}

func TestDisableEviction_Budgets_IgnoredAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, blocked()...)
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--disable-eviction"), r.errOut)
		r.errOut.line(t, "warning", "whatever PodDisruptionBudgets allow")
		r.out.line(t, "deleted shop/web-1")
		for _, w := range r.cluster.History() {
			require.NotEqual(t, "eviction", w.Subresource)
		}
	})
}

func TestDrain_CannotEnd_RefusedWithoutWrites(t *testing.T) {
	never := oneHealthy()
	never.Spec.MinAvailable, never.Spec.MaxUnavailable = nil, new(intstr.FromInt32(0))
	twice := oneHealthy()
	twice.Name = "other-budget"
	keep := func(p *corev1.Pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"} }
	cases := []struct {
		name    string
		objects []runtime.Object
		says    []string
		helps   []string
	}{
		{"a pod without controller",
			[]runtime.Object{testPod("debug", "node-1", unmanaged)}, []string{"shop/debug: Unmanaged", "--force evicts it"}, []string{"--force"}},
		{"local data",
			[]runtime.Object{testPod("cache", "node-1", emptyDir)},
			[]string{"shop/cache: LocalStorage", "--delete-emptydir-data evicts it"}, []string{"--delete-emptydir-data"}},
		{"a protected pod",
			[]runtime.Object{testPod("long", "node-1", keep)},
			[]string{"shop/long: DoNotDisrupt", "--honor-do-not-disrupt=false"}, []string{"--honor-do-not-disrupt=false"}},
		{"a budget that never allows anything",
			[]runtime.Object{never, testPod("web-1", "node-1")}, []string{"shop/web-1: BudgetNeverAllows", "shop/web-budget"}, []string{"--force-after=100ms"}},
		{"two budgets for one pod",
			[]runtime.Object{oneHealthy(), twice, testPod("web-1", "node-1"), testPod("web-2", "node-2")},
			[]string{"shop/web-1: OverlappingBudgets", "shop/web-budget", "shop/other-budget"}, []string{"--disable-eviction"}},
	}
	for _, c := range cases {
		t.Run(c.name, bubble(func(t *testing.T) {
			r := newHarness(t, append(c.objects, testPod("good", "node-1", func(p *corev1.Pod) { p.Labels = nil }))...)
			require.Equal(t, cli.Refused, r.run(t.Context(), "node-1"))
			require.Contains(t, r.errOut.String(), "nothing was changed")
			for _, words := range c.says {
				require.Contains(t, r.errOut.String(), words)
			}
			require.Empty(t, r.out.String())
			require.Empty(t, r.writes())
			require.Equal(t, cli.Done, r.run(t.Context(), append(c.helps, "node-1")...), r.errOut)
		}))
	}
}

func TestRefusal_EachObstacle_IsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, testPod("a", "node-1", unmanaged), testPod("b", "node-1", emptyDir), testPod("c", "node-1", unmanaged))
		require.Equal(t, cli.Refused, r.run(t.Context(), "node-1"))
		for _, pod := range []string{"shop/a", "shop/b", "shop/c"} {
			r.errOut.line(t, pod+":")
		}
	})
}

func TestNode_Missing_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t)
		require.Equal(t, cli.Refused, r.run(t.Context(), "node-7"))
		require.Contains(t, r.errOut.String(), "node node-7 is not drained, and nothing was changed: it does not exist")
		require.Empty(t, r.writes())
	})
}

func TestDrain_RequestForbidden_Fails(t *testing.T) {
	for _, resource := range []string{"nodes", "pods"} {
		t.Run(resource, bubble(func(t *testing.T) {
			r := newHarness(t, testPod("web-1", "node-1"))
			r.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: resource})
			require.Equal(t, cli.Failed, r.run(t.Context(), "node-1"))
			require.Contains(t, r.errOut.String(), "forbidden")
			require.Empty(t, r.writes())
		}))
	}
	t.Run("evictions", bubble(func(t *testing.T) {
		r := newHarness(t, testPod("web-1", "node-1"))
		r.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "pods/eviction"})
		require.Equal(t, cli.Failed, r.run(t.Context(), "node-1", "--timeout=500ms"))
		r.errOut.line(t, "shop/web-1", "Forbidden")
	}))
	t.Run("the cordon", bubble(func(t *testing.T) {
		r := newHarness(t, testPod("web-1", "node-1"))
		r.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "nodes", Verb: "patch"})
		require.Equal(t, cli.Failed, r.run(t.Context(), "node-1", "--timeout=500ms"))
		r.out.line(t, "could not cordon node node-1")
		require.True(t, r.there("web-1"))
	}))
}

func TestDrain_ForbiddenDuringDrain_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, testPod("web-1", "node-1"))
		r.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "pods", Verb: "list", Skip: 1})
		require.Equal(t, cli.Failed, r.run(t.Context(), "node-1"))
		line := r.errOut.line(t, "error: node node-1: not drained: ", "forbidden")
		require.Equal(t, 1, strings.Count(line, "node-1"+": not drained"))
		require.Empty(t, r.writes())
	})
}

func TestDrain_ListForbidden_NotEvaluated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, testPod("web-1", "node-1"))
		r.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "poddisruptionbudgets"})
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--dry-run"), r.errOut)
		r.out.line(t, "not evaluated: budgets")
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1"), r.errOut)
		r.out.line(t, ":", "not evaluated: budgets")
		r.out.line(t, "node node-1 drained")
	})
}

func TestInterrupt_Holds_AreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, blocked()...)
		ctx, cancel := context.WithCancel(t.Context())
		status := r.start(ctx, "node-1")
		r.out.line(t, "waiting for shop/web-1")
		r.out.line(t, "cordoned node node-1")
		synctest.Wait() // until it has observed its cordon
		cancel()
		require.Equal(t, cli.Failed, r.ends(status))
		r.errOut.line(t, "error: node node-1: interrupted; it waits for shop/web-1: DisruptionBudget", "shop/web-budget", "since")
		require.True(t, r.node().Spec.Unschedulable)
		require.True(t, r.there("web-1"))
	})
}

func TestUndo_Cordon_OnlyItsOwn(t *testing.T) {
	cases := []struct {
		name string
		args []string
	}{
		{"a cordon", []string{"node-1", "--undo"}},
		{"a cordon of a named owner", []string{"node-1", "--undo", "--owner=kured"}},
		{"a taint", []string{"node-1", "--undo", "--owner=kured", "--taint=example.com/reboot"}},
	}
	for _, c := range cases {
		t.Run("after an interruption: "+c.name, bubble(func(t *testing.T) {
			r := newHarness(t, blocked()...)
			before := r.node()
			ctx, cancel := context.WithCancel(t.Context())
			status := r.start(ctx, c.args...)
			r.out.line(t, "waiting for shop/web-1")
			synctest.Wait()
			require.NotEmpty(t, cmp.Diff(bare(before), bare(r.node())), "the node is cordoned")
			cancel()
			require.Equal(t, cli.Failed, r.ends(status))
			require.Empty(t, cmp.Diff(bare(before), bare(r.node())))
			r.out.line(t, "uncordoned node node-1")
			require.NotContains(t, r.errOut.String(), "the cordon stays")
		}))
		t.Run("after the time is over: "+c.name, bubble(func(t *testing.T) {
			r := newHarness(t, blocked()...)
			before := r.node()
			require.Equal(t, cli.Failed, r.run(t.Context(), append(c.args, "--timeout=300ms")...))
			require.Empty(t, cmp.Diff(bare(before), bare(r.node())))
		}))
	}
	t.Run("not after a successful drain", bubble(func(t *testing.T) {
		r := newHarness(t, testPod("web-1", "node-1"))
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--undo"), r.errOut)
		require.True(t, r.node().Spec.Unschedulable)
	}))
	t.Run("not the cordon of a user", bubble(func(t *testing.T) {
		r := newHarness(t, blocked()...)
		_, err := r.client.CoreV1().Nodes().Patch(t.Context(), "node-1", "application/merge-patch+json", []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		before := r.node()
		require.Equal(t, cli.Failed, r.run(t.Context(), "node-1", "--undo", "--timeout=300ms"))
		require.True(t, r.node().Spec.Unschedulable)
		require.Empty(t, cmp.Diff(bare(before), bare(r.node())))
	}))
	t.Run("or prints why it cannot", bubble(func(t *testing.T) {
		r := newHarness(t, blocked()...)
		ctx, cancel := context.WithCancel(t.Context())
		status := r.start(ctx, "node-1", "--undo")
		r.out.line(t, "waiting for shop/web-1")
		synctest.Wait()
		r.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "nodes"})
		cancel()
		require.Equal(t, cli.Failed, r.ends(status))
		r.errOut.line(t, "the cordon stays", "forbidden")
	}))
}

// bare returns a Node without the fields that every write changes.
func bare(n *corev1.Node) *corev1.Node {
	n = n.DeepCopy()
	n.ResourceVersion, n.ManagedFields = "", nil
	if len(n.Annotations) == 0 {
		n.Annotations = nil
	}
	return n
}

func TestPodSelector_OtherPods_Stay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := testPod("other", "node-1", unmanaged, func(p *corev1.Pod) { p.Labels = map[string]string{"app": "other"} })
		r := newHarness(t, testPod("web-1", "node-1"), other)
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--pod-selector=app=web"), r.errOut)
		require.False(t, r.there("web-1"))
		require.True(t, r.there("other"))
	})
}

func TestPod_ClusterAPIDrainLabel_IsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		skipped := func(p *corev1.Pod) { p.Labels = map[string]string{"cluster.x-k8s.io/drain": "skip"} }
		r := newHarness(t, testPod("web-1", "node-1", skipped))
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1"), r.errOut)
		require.True(t, r.there("web-1"))
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--cluster-api-labels=false"), r.errOut)
		require.False(t, r.there("web-1"))
	})
}

func TestSkipWaitForDelete_OldDeletion_NotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := testPod("old", "node-1", stuck, func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Hour)}
			p.DeletionGracePeriodSeconds = new(int64(0))
		})
		r := newHarness(t, old)
		require.Equal(t, cli.Failed, r.run(t.Context(), "node-1", "--timeout=300ms"))
		r.errOut.line(t, "shop/old")
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--skip-wait-for-delete-timeout=60"), r.errOut)
		r.out.line(t, "node node-1 drained, except for", "shop/old")
	})
}

func TestGracePeriod_Flag_ShortensThatOfPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, testPod("web-1", "node-1"))
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--grace-period=5"), r.errOut)
		for _, w := range r.cluster.History() {
			if p, ok := w.After.(*corev1.Pod); ok && p.DeletionGracePeriodSeconds != nil && w.ByClient() {
				require.Equal(t, int64(5), *p.DeletionGracePeriodSeconds)
			}
		}
	})
}

func TestVolumes_WaitFlag_IsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, claimed()...)
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--wait-for-volumes"), r.errOut)
		_, err := r.client.StorageV1().VolumeAttachments().Get(t.Context(), "attached-1", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), err)
		r.out.line(t, "waiting for volumeattachment/attached-1")
		r.out.line(t, "detached volumeattachment/attached-1")
	})
}

// claimed returns a pod on node-1 with a volume that is attached to it.
func claimed() []runtime.Object {
	pod := testPod("books", "node-1", func(p *corev1.Pod) {
		p.Labels = nil
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}
	})
	return []runtime.Object{
		pod,
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "disk-1"},
		},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk-1"}},
		&storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "attached-1"},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: "csi.example.com", NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("disk-1")},
			},
			Status: storagev1.VolumeAttachmentStatus{Attached: true},
		},
	}
}

func TestDrain_WholeCluster_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, errOut := newScreen(), newScreen()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		demo, err := newDemoCluster(clock.RealClock{})
		require.NoError(t, err)
		defer demo.run(ctx)()
		e := env(out, errOut, demo.client)
		require.Equal(t, cli.Done, e.Run(ctx, draining.New(e), []string{"node-1", "--force", "--delete-emptydir-data", "--wait-for-volumes"}), errOut)
		out.line(t, "waiting for shop/web-b", "budget shop/web allows")
		out.line(t, "evicted shop/web-a")
		out.line(t, "evicted shop/web-b")
		out.line(t, "detached")
		out.line(t, "node node-1 drained")
	})
}

func TestDrain_AfterKubectlUncordon_StartsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, testPod("web-1", "node-1"))
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--force", "--undo"), r.errOut)
		_, err := r.client.CoreV1().Nodes().Patch(t.Context(), "node-1", types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--undo", "--dry-run"), r.errOut)
		require.False(t, r.node().Spec.Unschedulable)
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--undo"), r.errOut)
		require.True(t, r.node().Spec.Unschedulable)
	})
}

func TestDrain_SeveralNodes_AllCordonedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, testPod("web-1", "node-1"), testPod("web-2", "node-2"))
		require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "node/node-2", "node-1"), r.errOut)
		require.False(t, r.there("web-1"))
		require.False(t, r.there("web-2"))
		var order []string
		for _, w := range r.cluster.History() {
			if w.ByClient() {
				order = append(order, w.Resource.Resource+" "+w.Name)
			}
		}
		require.Equal(t, []string{"nodes node-1", "nodes node-2", "pods web-1", "pods web-2"}, slices.Compact(order))
	})
}

func TestDrain_SelectorAndOneFails_OthersAreDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, testPod("job", "node-1", stuck, func(p *corev1.Pod) { p.Labels = nil }), testPod("web-2", "node-2"))
		require.Equal(t, cli.Failed, r.run(t.Context(), "--selector=zone=a", "--timeout=500ms", "--undo"))
		r.errOut.line(t, "error: node node-1: not drained after 500ms", "shop/job")
		r.out.line(t, "uncordoned node node-1")
		r.out.line(t, "node node-2 drained")
		require.False(t, r.node().Spec.Unschedulable)
		require.False(t, r.there("web-2"))
	})
}

func TestDrain_SeveralNodesOneInfeasible_NothingIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, testPod("web-1", "node-1"), testPod("debug", "node-2", unmanaged))
		require.Equal(t, cli.Refused, r.run(t.Context(), "node-1", "node-2"))
		r.errOut.line(t, "error: node node-2 is not drained, and nothing was changed: shop/debug: Unmanaged")
		require.Empty(t, r.writes())
		require.Equal(t, cli.Refused, r.run(t.Context(), "-l", "zone=b"))
		r.errOut.line(t, "error: selector zone=b is not drained", "no Node has these labels")
	})
}

func TestIgnoreDaemonSets_False_RefusesNodeWithDaemonPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		daemon := testPod("agent", "node-1", func(p *corev1.Pod) { p.OwnerReferences[0].Kind, p.Labels = "DaemonSet", nil })
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"}}
		r := newHarness(t, set, daemon, testPod("web-2", "node-2"))
		require.Equal(t, cli.Refused, r.run(t.Context(), "node-1", "--ignore-daemonsets=false"))
		r.errOut.line(t, "shop/agent: its DaemonSet would create it again; --ignore-daemonsets leaves it on the Node")
		require.Equal(t, cli.Done, r.run(t.Context(), "node-2", "--ignore-daemonsets=false"), r.errOut)
	})
}

func TestOutput_JSONWhileRunning_EachDecisionOnce(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		t.Run(format, bubble(func(t *testing.T) {
			r := newHarness(t, blocked()...)
			status := r.start(t.Context(), "node-1", "-o", format)
			synctest.Wait()
			r.free()
			require.Equal(t, cli.Done, r.ends(status), r.errOut)
			var outcomes []drain.Outcome
			var reasons []machinist.Reason
			decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(r.out.String()), 4096)
			for {
				var d drain.Decision
				err := decoder.Decode(&d)
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				require.Equal(t, "node-1", d.Node)
				outcomes = append(outcomes, d.Outcome)
				for _, row := range d.Rows {
					reasons = append(reasons, row.Reason)
				}
			}
			require.Equal(t, drain.Drained, outcomes[len(outcomes)-1])
			require.NotContains(t, outcomes[:len(outcomes)-1], drain.Drained)
			require.Contains(t, reasons, drain.ReasonBudget)
			require.Contains(t, reasons, drain.ReasonTerminating)
		}))
	}
}

func TestUncordon_Owners_TheLastOneUncordons(t *testing.T) {
	r := newHarness(t)
	for _, owner := range []string{"a", "b"} {
		synced := env(r.out, r.errOut, r.client)
		require.Equal(t, cli.Done, synced.Run(t.Context(), draining.New(synced), []string{"node-1", "--owner", owner}), r.errOut)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
		cordon bool
	}{
		{[]string{"node-1"}, cli.Refused, `error: node "node-1": cordoned by a: uncordon it with --owner`, true},
		{[]string{"node-1", "--owner=a"}, cli.Done, "node/node-1 uncordoned", true},
		{[]string{"node-1", "--owner=a"}, cli.Done, "node/node-1 is not cordoned", true},
		{[]string{"node/node-1", "--owner=b"}, cli.Done, "node/node-1 uncordoned", false},
		{[]string{"node-7"}, cli.Failed, `error: node "node-7": `, false},
		{[]string{"Node_1"}, cli.Refused, "not a valid name of a node", false},
		{nil, cli.Refused, "requires at least 1 arg", false},
	} {
		var out bytes.Buffer
		e := env(&out, &out, r.client)
		require.Equal(t, c.status, e.Run(t.Context(), draining.NewUncordon(e), c.args), out.String())
		require.Contains(t, out.String(), c.says)
		require.Equal(t, c.cordon, r.node().Spec.Unschedulable)
	}
	r.run(t.Context(), "node-1")
	require.True(t, r.node().Spec.Unschedulable)
	e := r.env()
	require.Equal(t, cli.Done, e.Run(t.Context(), draining.NewUncordon(e), []string{"node-1"}), "as kubectl does")
	require.False(t, r.node().Spec.Unschedulable)
	e = env(r.out, r.errOut, nil)
	require.Equal(t, cli.Refused, e.Run(t.Context(), draining.NewUncordon(e), []string{"node-1"}))
	r.errOut.line(t, "there are no Nodes: --target-kubeconfig is none")
}
