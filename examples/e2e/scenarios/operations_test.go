// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// manifestFolder is where the kustomizations are.
const manifestFolder = "../../programs/manager/manifests/"

// kustomize returns what kubectl apply -k would apply.
func kustomize(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	require.NoError(t, err)
	text, err := resources.AsYaml()
	require.NoError(t, err)
	return decode(t, text)
}

// overlay returns the folder of a kustomization that a user writes: programs with HTTPS, and with
// images of a registry.
func overlay(t *testing.T, base string) string {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	absolute, err := filepath.Abs(manifestFolder)
	require.NoError(t, err)
	relative, err := filepath.Rel(folder, absolute) // kustomize takes no absolute path
	require.NoError(t, err)
	text := fmt.Sprintf(`resources: [%[1]s/%[2]s]
components: [%[1]s/tls]
images: [{name: manager, newName: registry.example/manager, newTag: v1}]
`, relative, base)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600))
	return folder
}

func TestKustomize_Definitions_AreThoseOfThePackage(t *testing.T) {
	t.Parallel()
	want, err := manifests.Definitions()
	require.NoError(t, err)
	text, err := manifests.YAML(want)
	require.NoError(t, err)
	have := map[string]map[string]any{}
	for _, o := range kustomize(t, "../../../machine/v1alpha1") {
		have[o.GetName()] = o.Object
	}
	require.Len(t, have, len(v1alpha1.CRDs()))
	for _, o := range decode(t, text) {
		require.Empty(t, lost("", o.Object, have[o.GetName()]))
	}
}

func TestKustomize_EachFolder_AcceptedByTheAPIServer(t *testing.T) {
	said := &warnings{}
	config := cluster.ControlPlane.Config()
	config.WarningHandler = said
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	ctx := t.Context()
	for folder, programs := range map[string][]string{
		"one-program": {manifests.ServiceAccount}, "two-programs": {manifests.MachineController, manifests.MachineControllerManager},
	} {
		plain := kustomize(t, filepath.Join(manifestFolder, folder))
		want := map[string]*unstructured.Unstructured{}
		for _, program := range programs {
			of := manifests.Installation{Program: program, Machines: "default"}
			access, err := manifests.Access(of)
			require.NoError(t, err)
			running, err := manifests.Deployment(of)
			require.NoError(t, err)
			for _, o := range append(access, running...) {
				want[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o
			}
		}
		require.Len(t, plain, len(want), "what the program prints is what kustomize builds")
		secured := kustomize(t, overlay(t, folder))
		require.Len(t, secured, len(want))
		for _, o := range append(plain, secured...) {
			name := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
			require.Contains(t, want, name)
			apply := metav1.ApplyOptions{FieldManager: "kustomize", Force: true, DryRun: []string{metav1.DryRunAll}}
			if o.GetKind() == "Namespace" {
				apply.DryRun = nil // the others are in it
				t.Cleanup(func() {
					err := resource(client, o).Delete(context.WithoutCancel(ctx), o.GetName(), metav1.DeleteOptions{})
					require.True(t, err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err), "%v", err)
				})
			}
			have, err := resource(client, o).Apply(ctx, o.GetName(), o, apply)
			require.NoError(t, err, name)
			require.Empty(t, lost("", o.Object, have.Object), "%s: the API server knows all fields", name)
		}
		for _, o := range secured {
			if o.GetKind() == "Deployment" {
				requireSecured(t, o)
			}
		}
	}
	require.Empty(t, said.said, "neither a deprecated version nor a pod that the restricted profile forbids")
}

// requireSecured checks what the component tls and a user's image make of a Deployment.
func requireSecured(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	text := fmt.Sprint(containers...)
	for _, part := range []string{"--tls-cert-file=/tls/tls.crt", "--tls-private-key-file=/tls/tls.key", "mountPath:/tls"} {
		require.Contains(t, text, part)
	}
	if o.GetName() == manifests.ServiceAccount {
		require.Contains(t, text, "image:registry.example/manager:v1")
	}
	require.Equal(t, 2, strings.Count(text, "scheme:HTTPS"))
}

// classified remembers how the API server classified the last request.
type classified struct {
	next http.RoundTripper

	mu            sync.Mutex
	schema, level string // UIDs
}

func (c *classified) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(r)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.schema, c.level = response.Header.Get("X-Kubernetes-Pf-Flowschema-Uid"), response.Header.Get("X-Kubernetes-Pf-Prioritylevel-Uid")
	}
	return response, err
}

func TestFlowSchema_RequestsOfPrograms_HaveTheirOwnPriority(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "flows", env.Options{})
	ctx, flows := t.Context(), s.Client.FlowcontrolV1()
	admin, err := dynamic.NewForConfig(cluster.ControlPlane.Config())
	require.NoError(t, err)
	objects, err := manifests.Deployment(manifests.Installation{Machines: s.Namespace})
	require.NoError(t, err)
	for _, o := range objects {
		if kind := o.GetKind(); kind == "FlowSchema" || kind == "PriorityLevelConfiguration" {
			_, err := resource(admin, o).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "kubectl"})
			require.NoError(t, err)
			if kind == "FlowSchema" {
				t.Cleanup(func() {
					require.NoError(t, resource(admin, o).Delete(context.WithoutCancel(ctx), o.GetName(), metav1.DeleteOptions{}))
				})
			}
		}
	}
	config, err := cluster.ControlPlane.ServiceAccount(ctx, s.ManagerNamespace(), manifests.ServiceAccount)
	require.NoError(t, err)
	seen := &classified{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		seen.next = next
		return seen
	})
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		level string
		ask   func(context.Context) error
	}{
		manifests.ServiceAccount + "." + s.Namespace: {"machinist", func(ctx context.Context) error {
			_, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
			return err
		}},
		manifests.ServiceAccount + "-lease." + s.Namespace: {"leader-election", func(ctx context.Context) error {
			_, err := client.CoordinationV1().Leases(s.ManagerNamespace()).Get(ctx, "machine-controller", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				err = nil
			}
			return err
		}},
	} {
		schema, err := flows.FlowSchemas().Get(ctx, name, metav1.GetOptions{})
		require.NoError(t, err)
		level, err := flows.PriorityLevelConfigurations().Get(ctx, tc.level, metav1.GetOptions{})
		require.NoError(t, err)
		s.Wait(t, patience, "requests belong to "+name, func(ctx context.Context) (string, error) {
			if err := tc.ask(ctx); err != nil {
				return "the request failed", err
			}
			seen.mu.Lock()
			defer seen.mu.Unlock()
			if seen.schema != string(schema.UID) || seen.level != string(level.UID) {
				return "another flow schema matches", nil
			}
			return "", nil
		})
	}
}

// writeCertificate writes a certificate with a name and its key, and returns their files.
func writeCertificate(t *testing.T, folder, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return certFile, keyFile
}

// served returns the name in the certificate that an address shows.
func served(ctx context.Context, address string) (string, error) {
	c, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", address) //nolint:gosec // it is looked at
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName, nil //nolint:forcetypeassert // it is one
}

// tokenOf makes a service account, and returns a token of it.
func tokenOf(t *testing.T, s *env.Env, name string) string {
	t.Helper()
	_, err := s.Client.CoreV1().ServiceAccounts(s.Namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	config, err := cluster.ControlPlane.ServiceAccount(t.Context(), s.Namespace, name)
	require.NoError(t, err)
	return config.BearerToken
}

// mayRead binds a service account to the role of those that read metrics.
func mayRead(t *testing.T, s *env.Env, name string) {
	t.Helper()
	ctx := t.Context()
	admin, err := dynamic.NewForConfig(cluster.ControlPlane.Config())
	require.NoError(t, err)
	objects, err := manifests.Deployment(manifests.Installation{Machines: s.Namespace})
	require.NoError(t, err)
	for _, o := range objects {
		if o.GetName() == manifests.MetricsReader {
			_, err := resource(admin, o).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "kubectl"})
			require.NoError(t, err)
		}
	}
	bindings := s.Client.RbacV1().ClusterRoleBindings()
	_, err = bindings.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-reads"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: manifests.MetricsReader},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, bindings.Delete(context.WithoutCancel(ctx), s.Namespace+"-reads", metav1.DeleteOptions{}))
	})
}

func TestMetrics_OverTLS_OnlyForTokensThatMay(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "scraped", fastOptions())
	folder := t.TempDir()
	certFile, keyFile := writeCertificate(t, folder, "first")
	flags := []string{"--tls-cert-file=" + certFile, "--tls-private-key-file=" + keyFile}
	sets := s.Program(manifests.MachineControllerManager, "sets", flags...)
	leader := s.StartManager(t, "leader", flags...)
	s.Wait(t, patience, "it leads", leads(leader.Log, 1))
	standby := s.StartManager(t, "standby", flags...)
	s.Start(t, sets)
	reader, other := tokenOf(t, s, "reader"), tokenOf(t, s, "other")
	mayRead(t, s, "reader")
	ctx := t.Context()
	for _, m := range []*env.Manager{leader, standby, sets} {
		for _, tc := range []struct {
			path, token string
			code        int
			text        string
		}{
			{"/healthz", "", http.StatusOK, "OK"},
			{"/readyz", "", http.StatusOK, "OK"},
			{"/metrics", "", http.StatusUnauthorized, "the request has no bearer token"},
			{"/metrics", "not-a-token", http.StatusUnauthorized, "does not know the token"},
			{"/metrics", other, http.StatusForbidden, "system:serviceaccount:" + s.Namespace + `:other" may not get /metrics`},
			{"/metrics", reader, http.StatusOK, "machinist_leader "},
		} {
			code, text, err := m.Get(ctx, tc.path, tc.token)
			require.NoError(t, err)
			require.Equal(t, tc.code, code, text)
			require.Contains(t, text, tc.text)
		}
		for _, token := range []string{reader, other, "not-a-token"} {
			require.NotContains(t, m.Log(), token)
		}
	}
	_, text, err := standby.Get(ctx, "/readyz?verbose", "")
	require.NoError(t, err)
	require.Contains(t, text, "stands by")
	require.Contains(t, text, "the last answer of the API server of the control cluster is ")

	writeCertificate(t, folder, "second")
	s.Wait(t, patience, "the new certificate is served", func(ctx context.Context) (string, error) {
		name, err := served(ctx, leader.Address())
		if name != "second" {
			return "the certificate is " + name, err
		}
		return "", err
	})
}

func TestProfiles_LoopbackPortAlone(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "profiled", env.Options{})
	port, err := controlplane.FreePort(t.Context())
	require.NoError(t, err)
	m := s.StartManager(t, "manager", "--profiling", "--profiling-port="+strconv.Itoa(port), "--address=0.0.0.0")
	code, _, err := m.Get(t.Context(), "/debug/pprof/", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, code)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/heap", port), nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	for _, address := range otherAddresses(t) {
		_, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		require.Error(t, err, address)
	}
	require.Contains(t, m.Log(), "every client that reaches the port can read the metrics")
}

// otherAddresses returns the addresses of this host that are not loopback, of IPv4.
func otherAddresses(t *testing.T) (out []string) {
	t.Helper()
	all, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			out = append(out, n.IP.String())
		}
	}
	return out
}
