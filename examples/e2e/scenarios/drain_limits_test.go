// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
)

func rule(groups, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs}
}

// user returns the client of a user with a ClusterRole.
func (w *drainWorld) user(t *testing.T, name string, rules ...rbacv1.PolicyRule) kubernetes.Interface {
	t.Helper()
	ctx, full := t.Context(), w.ns+"-"+name
	_, err := w.client.CoreV1().ServiceAccounts(w.ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: full}, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: full}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: full},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		_ = w.client.RbacV1().ClusterRoleBindings().Delete(ctx, full, metav1.DeleteOptions{})
		_ = w.client.RbacV1().ClusterRoles().Delete(ctx, full, metav1.DeleteOptions{})
	})
	config, err := w.control.ServiceAccount(ctx, w.ns, name)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	w.until(t, "the role of "+name+" counts", func(ctx context.Context) bool {
		_, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil
	})
	return client
}

var reads = rule([]string{""}, []string{"nodes", "pods"}, "get", "list", "watch", "patch")

// TestDrain_EvictionForbidden_Fails asserts that a forbidden request does not count as done.
func TestDrain_EvictionForbidden_Fails(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t, cluster.ControlPlane)
	pod := w.pod(t, "web", w.a)
	weak := w.user(t, "weak", reads)
	g := w.drains(t.Context(), weak, lenient).end(t)
	require.ErrorIs(t, g.err, runner.ErrObstacles)
	require.ErrorContains(t, g.err, "create pods/eviction of pod "+w.ns+"/web")
	require.Equal(t, drain.Draining, g.plan.Outcome)
	require.EqualValues(t, "Forbidden", row(t, g.plan, "web").Reason)
	require.True(t, w.there(t, pod))

	blind := w.user(t, "blind", rule([]string{""}, []string{"nodes"}, "get", "list", "watch", "patch"))
	g = w.drains(t.Context(), blind, lenient).end(t)
	require.True(t, apierrors.IsForbidden(g.err), "%v", g.err)
	require.NotEqual(t, drain.Drained, g.plan.Outcome)
	require.True(t, w.there(t, pod))
}

// TestDrain_NamespaceDeleting_PodIsDeleted asserts that a pod that cannot be evicted ends with its namespace.
func TestDrain_NamespaceDeleting_PodIsDeleted(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t, cluster.ControlPlane)
	other := w.control.Namespace(t, "going")
	pod := w.pod(t, "held", w.a, func(p *corev1.Pod) { p.Namespace = other })
	w.nodes.Silence(w.a, true) // its containers do not stop
	require.NoError(t, w.client.CoreV1().Namespaces().Delete(t.Context(), other, metav1.DeleteOptions{}))
	w.until(t, "its namespace takes it along", func(ctx context.Context) bool {
		now, err := w.client.CoreV1().Pods(other).Get(ctx, "held", metav1.GetOptions{})
		return err == nil && now.DeletionTimestamp != nil
	})
	results, err := runner.Executor{Client: runner.NewClient(w.client)}.Apply(t.Context(), drain.Decision{Node: w.a, Rows: []drain.Row{
		{Namespace: other, Name: "held", UID: pod.UID, Action: drain.Evict},
	}})
	require.NoError(t, err)
	reason, _, _ := results[0].Response()
	require.EqualValues(t, "Refused", reason, "%v", results[0].Err)

	g := w.drains(t.Context(), w.client, lenient)
	select {
	case <-g.ended:
		require.FailNow(t, "it is over", "%v", g.plan)
	case <-time.After(300 * time.Millisecond):
	}
	w.nodes.Silence(w.a, false)
	require.NoError(t, g.end(t).err)
	require.Equal(t, drain.Drained, g.plan.Outcome)
}

// TestDrain_NewPodOfSameName_IsNotTouched asserts that requests carry the UID of the pod.
func TestDrain_NewPodOfSameName_IsNotTouched(t *testing.T) {
	t.Parallel()
	w := newDrainWorld(t, cluster.ControlPlane)
	old := w.pod(t, "web-0", w.a)
	g := w.drains(t.Context(), w.client, lenient)
	w.until(t, "its controller makes it anew", func(ctx context.Context) bool {
		_, err := w.client.CoreV1().Pods(w.ns).Get(ctx, "web-0", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	successor := w.pod(t, "web-0", w.b)
	require.NoError(t, g.end(t).err)
	require.Equal(t, drain.Drained, g.plan.Outcome)
	require.True(t, w.there(t, successor))
	require.Len(t, w.asked(t, "web-0", http.StatusCreated), 1)

	// Who still sees the old one is told so, whatever is asked.
	for _, verdict := range []drain.Action{drain.Evict, drain.Delete, drain.ForceDelete} {
		results, err := runner.Executor{Client: runner.NewClient(w.client)}.Apply(t.Context(), drain.Decision{Node: w.a, Rows: []drain.Row{
			{Namespace: w.ns, Name: "web-0", UID: old.UID, Action: verdict, Grace: new(int64(0))},
		}})
		require.NoError(t, err)
		reason, _, _ := results[0].Response()
		require.EqualValues(t, "Refused", reason, "%s: %v", verdict, results[0].Err)
		require.True(t, w.there(t, successor))
	}
}
