// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

func admin(t *testing.T, c *controlplane.ControlPlane) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config())
	require.NoError(t, err)
	return client
}

func put(t *testing.T, client kubernetes.Interface, namespace, name string) {
	t.Helper()
	_, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestVersions_Server_Matches(t *testing.T) {
	version, err := admin(t, cp).Discovery().ServerVersion()
	require.NoError(t, err)
	require.Equal(t, cp.Version(), version.GitVersion)
	require.Equal(t, "v"+version.Major+"."+version.Minor, cp.Version()[:strings.LastIndex(cp.Version(), ".")])
}

func TestServiceAccount_Roles_AreEnforced(t *testing.T) {
	namespace := cp.Namespace(t, "rbac")
	client := admin(t, cp)
	cfg, err := cp.ServiceAccount(t.Context(), namespace, "default")
	require.NoError(t, err)
	account, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	_, err = account.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "default"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := account.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, 10*time.Second, 20*time.Millisecond)
	_, err = account.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}

func TestServiceAccount_Missing_NoConfig(t *testing.T) {
	_, err := cp.ServiceAccount(t.Context(), "default", "missing")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestServer_NoTLSOrCredentials_Refused(t *testing.T) {
	host := cp.Config().Host
	get := func(client *http.Client, url string) (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	code, err := get(http.DefaultClient, strings.Replace(host, "https:", "http:", 1)+"/api")
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, code)
	_, err = get(http.DefaultClient, host+"/api")
	require.ErrorContains(t, err, "certificate")
	blind := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	code, err = get(blind, host+"/api/v1/namespaces")
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, code)
	_, err = get(blind, cp.EtcdURL()+"/health")
	require.ErrorContains(t, err, "certificate")
}

func TestEtcd_KilledAndStarted_KeepsData(t *testing.T) {
	namespace := cp.Namespace(t, "etcd")
	client := admin(t, cp)
	url := cp.EtcdURL()
	put(t, client, namespace, "before")
	require.ErrorIs(t, cp.StartEtcd(t.Context()), controlplane.ErrRunning)
	require.NoError(t, cp.KillEtcd())
	require.NoError(t, cp.KillEtcd(), "a second time")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, "before", metav1.GetOptions{})
	require.Error(t, err)
	require.NoError(t, cp.StartEtcd(t.Context()))
	require.Equal(t, url, cp.EtcdURL())
	require.Eventually(t, func() bool {
		_, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "before", metav1.GetOptions{})
		return err == nil
	}, 60*time.Second, 50*time.Millisecond)
	put(t, client, namespace, "after")
}

func TestRestart_PortDataWatches_Kept(t *testing.T) {
	namespace := cp.Namespace(t, "restart")
	client := admin(t, cp)
	host := cp.Config().Host
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	lister := factory.Core().V1().ConfigMaps().Lister().ConfigMaps(namespace)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	put(t, client, namespace, "before")
	require.ErrorIs(t, cp.StartAPIServer(t.Context()), controlplane.ErrRunning)
	require.NoError(t, cp.StopAPIServer(t.Context()))
	require.NoError(t, cp.StopAPIServer(t.Context()), "twice is as good as once")
	_, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "before", metav1.GetOptions{})
	require.ErrorContains(t, err, "connection refused")
	require.NoError(t, cp.StartAPIServer(t.Context()))
	require.Equal(t, host, cp.Config().Host)
	_, err = client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "before", metav1.GetOptions{})
	require.NoError(t, err)
	put(t, client, namespace, "after")
	require.Eventually(t, func() bool {
		_, err := lister.Get("after")
		return err == nil
	}, 60*time.Second, 50*time.Millisecond)
	cp.Namespace(t, "the-controller-manager-is-back")
	names := func() []string {
		requests, err := cp.Requests()
		require.NoError(t, err)
		var names []string
		for _, r := range requests {
			if r.Namespace == namespace && r.Resource == "configmaps" && r.Verb == "create" && r.User == "admin" {
				names = append(names, r.Name)
			}
		}
		return names
	}
	require.Eventually(t, func() bool { return slices.Equal(names(), []string{"before", "after"}) }, 5*time.Second, 50*time.Millisecond)
}

func TestAudit_Requests_HaveUserAndResource(t *testing.T) {
	namespace := cp.Namespace(t, "audit")
	client := admin(t, cp)
	put(t, client, namespace, "one")
	_, err := client.CoordinationV1().Leases(namespace).Get(t.Context(), "none", metav1.GetOptions{})
	require.Error(t, err)
	cfg, err := cp.ServiceAccount(t.Context(), namespace, "default")
	require.NoError(t, err)
	cfg.UserAgent = "another"
	account, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	_, err = account.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.Error(t, err)
	watch, err := client.CoreV1().Secrets(namespace).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(watch.Stop)
	want := []controlplane.Request{
		{User: "admin", Verb: "create", Resource: "configmaps", Namespace: namespace, Name: "one", Code: 201},
		{User: "admin", Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: namespace, Name: "none", Code: 404},
		{User: "admin", Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: namespace, Name: "default", Code: 201},
		{User: "system:serviceaccount:" + namespace + ":default", UserAgent: "another", Verb: "list", Resource: "nodes", Code: 403},
		{User: "admin", Verb: "watch", Resource: "secrets", Namespace: namespace, Code: 200},
	}
	require.Eventually(t, func() bool {
		requests, err := cp.Requests()
		require.NoError(t, err)
		return !slices.ContainsFunc(want, func(w controlplane.Request) bool {
			return !slices.ContainsFunc(requests, func(r controlplane.Request) bool {
				ok := !r.Time.IsZero() && (r.Latency > 0) == (w.Verb != "watch")
				r.Time, r.Latency = time.Time{}, 0
				if w.UserAgent == "" {
					r.UserAgent = ""
				}
				return ok && r == w
			})
		})
	}, 10*time.Second, 50*time.Millisecond)
}

func TestKubeconfig_SameAccessAsConfig(t *testing.T) {
	text, err := controlplane.Kubeconfig(cp.Config())
	require.NoError(t, err)
	cfg, err := clientcmd.RESTConfigFromKubeConfig(text)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	_, err = client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = controlplane.Kubeconfig(nil)
	require.Error(t, err)
}

func TestConfig_Changed_OthersAreNot(t *testing.T) {
	cfg := cp.Config()
	cfg.Host = "elsewhere"
	require.NotEqual(t, cfg.Host, cp.Config().Host)
}

func TestControlPlane_Two_AreIndependent(t *testing.T) {
	other, err := controlplane.Start(t.Context(), controlplane.Options{LogDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Stop() })
	namespace := cp.Namespace(t, "here")
	_, err = admin(t, other).CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	stranger := cp.Config()
	stranger.CAData = other.Config().CAData
	client, err := kubernetes.NewForConfig(stranger)
	require.NoError(t, err)
	_, err = client.Discovery().ServerVersion()
	require.ErrorContains(t, err, "certificate")
	requests, err := other.Requests()
	require.NoError(t, err)
	require.NotEmpty(t, requests)
	require.NoError(t, other.Stop())
	require.NoError(t, other.Stop(), "twice is as good as once")
	require.NoDirExists(t, other.DataFolder())
	_, err = other.TempDir("")
	require.ErrorIs(t, err, controlplane.ErrStopped)
	require.ErrorIs(t, other.StartAPIServer(t.Context()), controlplane.ErrStopped)
	require.ErrorIs(t, other.StopAPIServer(t.Context()), controlplane.ErrStopped)
	require.ErrorIs(t, other.KillEtcd(), controlplane.ErrStopped)
	require.ErrorIs(t, other.StartEtcd(t.Context()), controlplane.ErrStopped)
	_, err = other.Requests()
	require.NoError(t, err, "the logs are in a folder of the caller's")
	_, err = admin(t, cp).Discovery().ServerVersion()
	require.NoError(t, err)
}

func TestStart_Canceled_LeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := controlplane.Start(ctx, controlplane.Options{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	left, err := filepath.Glob(filepath.Join(temp, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestStop_Requests_Fail(t *testing.T) {
	var c controlplane.ControlPlane
	require.NoError(t, c.Stop())
	require.Empty(t, c.Config().Host)
	_, err := c.ServiceAccount(t.Context(), "a", "b")
	require.ErrorIs(t, err, controlplane.ErrStopped)
	_, err = c.TempDir("")
	require.ErrorIs(t, err, controlplane.ErrStopped)
	require.ErrorIs(t, c.StartAPIServer(t.Context()), controlplane.ErrStopped)
	require.ErrorIs(t, c.StopAPIServer(t.Context()), controlplane.ErrStopped)
	_, err = c.Requests()
	require.Error(t, err)
}

// TestLacks_WatchList_AsTheServer asserts that the table of the releases is right about this server: it
// either sends lists as watches, or refuses to.
func TestLacks_WatchList_AsTheServer(t *testing.T) {
	namespace := cp.Namespace(t, "watch-list")
	yes, whole := true, int64(1)
	w, err := admin(t, cp).CoreV1().ConfigMaps(namespace).Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true, TimeoutSeconds: &whole,
	})
	if cp.Lacks(controlplane.WatchList) != "" {
		require.True(t, apierrors.IsInvalid(err), "%v", err)
		return
	}
	require.NoError(t, err)
	w.Stop()
}
