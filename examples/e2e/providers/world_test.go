// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
	"github.com/machinist-dev/machinist/examples/rigs/cloud/kubelets"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Run(m, controlplane.Options{}, func(c *controlplane.ControlPlane) { plane = c }))
}

// world is a namespace and a cloud with the Secret of a class. Tests with worlds run one after the other, because Nodes have no
// namespace.
type world struct {
	*testing.T
	namespace  string
	kubeconfig string
	fleet      *kubelets.Fleet
	url        string // of the cloud
	class      *v1alpha1.MachineClass
	client     kubernetes.Interface
	machines   versioned.Interface
}

// newWorld makes a world whose cloud is served behind wrap, unless that is nil.
func newWorld(t *testing.T, wrap func(*kubelets.Fleet) driver.Driver) *world {
	t.Helper()
	w := &world{T: t, namespace: plane.Namespace(t, "provider")}
	var err error
	w.client, err = kubernetes.NewForConfig(plane.Config())
	require.NoError(t, err)
	w.machines, err = versioned.NewForConfig(plane.Config())
	require.NoError(t, err)
	w.startCloud(wrap)

	admin, err := controlplane.Kubeconfig(plane.Config())
	require.NoError(t, err)
	w.kubeconfig = w.file("kubeconfig", admin)
	secret := w.fleet.Cloud.Secret(w.namespace, "test-mc-secret")
	secret.Data[machine.UserDataKey], err = env.BootstrapKubeconfig(plane.Config())
	require.NoError(t, err)
	_, err = w.client.CoreV1().Secrets(w.namespace).Create(t.Context(), secret, metav1.CreateOptions{})
	require.NoError(t, err)
	w.class = w.fleet.Cloud.MachineClass(w.namespace, "test-mc-v1")
	w.class.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.MachineClassKind}
	w.class.SecretRef = &corev1.SecretReference{Namespace: w.namespace, Name: secret.Name}
	return w
}

func (w *world) startCloud(wrap func(*kubelets.Fleet) driver.Driver) {
	w.Helper()
	kubemark, err := controlplane.Kubemark(w.Context(), os.Stderr)
	require.NoError(w, err)
	folder, err := plane.TempDir("vms-")
	require.NoError(w, err)
	w.fleet, err = kubelets.Open(kubelets.Options{Folder: folder, Kubemark: kubemark, Observe: func(err error) { w.Log(err) }})
	require.NoError(w, err)
	ctx, end := context.WithCancel(context.WithoutCancel(w.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = w.fleet.Run(ctx) }) // it ends with the context
	served := driver.Driver(w.fleet.Cloud)
	if wrap != nil {
		served = wrap(w.fleet)
	}
	server := httptest.NewServer(cloud.Handler(served))
	w.url = server.URL
	w.Cleanup(func() {
		server.Close()
		end()
		running.Wait()
		require.NoError(w, w.fleet.Close())
	})
}

// file writes a file for the test.
func (w *world) file(name string, data []byte) string {
	w.Helper()
	path := filepath.Join(w.TempDir(), name)
	require.NoError(w, os.WriteFile(path, data, 0o600))
	return path
}

// environment is that of the suite.
func (w *world) environment() []string {
	w.Helper()
	class, err := yaml.Marshal(w.class)
	require.NoError(w, err)
	return []string{
		"CONTROL_KUBECONFIG=" + w.kubeconfig, "CONTROL_CLUSTER_NAMESPACE=" + w.namespace, "TARGET_CLUSTER_NAME=test",
		"MACHINECLASS_V1=" + w.file("class.yaml", class), "ACME_URL=" + w.url,
	}
}

// project is a copy of the consumer of examples/mcm, which uses the modules of this repository.
var project = sync.OnceValues(func() (string, error) {
	folder, err := plane.TempDir("project-")
	if err != nil {
		return "", err
	}
	mcm, err := filepath.Abs("../../mcm")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(mcm, "testdata", "consumers", "provider"))); err != nil {
		return "", err
	}
	sums, err := os.ReadFile(filepath.Join(mcm, "go.sum"))
	if err != nil {
		return "", err
	}
	own, err := os.ReadFile(filepath.Join(folder, "go.sum"))
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(folder, "go.sum"), append(own, sums...), 0o600); err != nil {
		return "", err
	}
	const ours = "github.com/machinist-dev/machinist"
	for _, args := range [][]string{
		{
			"mod", "edit", "-replace=github.com/gardener/machine-controller-manager=" + mcm,
			"-replace=" + ours + "=" + filepath.Join(mcm, "..", ".."), "-replace=" + ours + "/examples=" + filepath.Join(mcm, ".."),
		},
		{"mod", "tidy"},
	} {
		cmd := exec.Command("go", args...) //nolint:noctx // it ends
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOWORK=off", "PWD="+folder)
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", &failed{cmd.String(), text, err}
		}
	}
	return folder, nil
})

// failed is the end of a command.
type failed struct {
	command string
	text    []byte
	err     error
}

func (f *failed) Error() string { return f.command + ": " + f.err.Error() + ":\n" + string(f.text) }

// report is what ginkgo reports of a suite.
type report struct {
	SuiteSucceeded bool
	SpecReports    []struct {
		LeafNodeType, LeafNodeText, State string
		Failure                           struct{ Message string }
	}
}

// states returns how the nodes ended that have a type and text: "passed", "failed", "skipped".
func (r report) states() map[string]string {
	states := map[string]string{}
	for _, s := range r.SpecReports {
		name := s.LeafNodeText
		if s.LeafNodeType != "It" {
			name = s.LeafNodeType
		}
		states[name] = s.State
	}
	return states
}

// failure returns the failure of a node.
func (r report) failure(name string) string {
	for _, s := range r.SpecReports {
		if s.LeafNodeText == name || s.LeafNodeType == name {
			return s.Failure.Message
		}
	}
	return ""
}

// suite runs the integration test of the project to its end.
func (w *world) suite(environment []string, flags ...string) report {
	w.Helper()
	file, text, err := w.try(environment, flags...)
	data, readErr := os.ReadFile(file)
	require.NoError(w, readErr, text)
	var reports []report
	require.NoError(w, json.Unmarshal(data, &reports))
	require.Len(w, reports, 1)
	require.Equal(w, reports[0].SuiteSucceeded, err == nil)
	return reports[0]
}

// try runs the integration test. It returns the file of the report, what was printed, and how it ended.
func (w *world) try(environment []string, flags ...string) (file, text string, err error) {
	w.Helper()
	folder, err := project()
	require.NoError(w, err)
	file = filepath.Join(w.TempDir(), "report.json")
	cmd := exec.CommandContext(w.Context(), "go", append([]string{
		"test", "-count=1", "-timeout=15m", "./test/integration/controller", "-args", "-ginkgo.no-color", "-ginkgo.json-report=" + file,
	}, flags...)...)
	cmd.Dir, cmd.Env = folder, append(append(os.Environ(), "GOWORK=off", "PWD="+folder), environment...)
	out, err := cmd.CombinedOutput()
	w.Logf("%s", out)
	return file, string(out), err
}

// edit replaces a text in the suite of the project until the end of the test.
func (w *world) edit(old, replacement string) {
	w.Helper()
	folder, err := project()
	require.NoError(w, err)
	file := filepath.Join(folder, "test", "integration", "controller", "controller_test.go")
	before, err := os.ReadFile(file)
	require.NoError(w, err)
	require.Equal(w, 1, bytes.Count(before, []byte(old)))
	require.NoError(w, os.WriteFile(file, bytes.Replace(before, []byte(old), []byte(replacement), 1), 0o600))
	w.Cleanup(func() { require.NoError(w, os.WriteFile(file, before, 0o600)) })
}

// whenJoined calls a function once when test-machine has a Node that is ready.
func (w *world) whenJoined(f func()) {
	var watching sync.WaitGroup
	watching.Go(func() {
		for w.Context().Err() == nil {
			m, err := w.machines.MachineV1alpha1().Machines(w.namespace).Get(w.Context(), "test-machine", metav1.GetOptions{})
			if err == nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineRunning {
				f()
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	w.Cleanup(watching.Wait)
}

// kill kills the processes of this world that run a program.
func (w *world) kill(program string) {
	for _, pid := range w.processes(program) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			w.Error(err)
		}
	}
}

// processes returns the IDs of the processes of this world that run a program.
func (w *world) processes(program string) (ids []int) {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		w.Error(err)
	}
	for _, folder := range folders {
		command, _ := os.ReadFile(filepath.Join(folder, "cmdline")) // it may have ended
		environ, _ := os.ReadFile(filepath.Join(folder, "environ"))
		name, _, _ := strings.Cut(string(command), "\x00")
		id, err := strconv.Atoi(filepath.Base(folder))
		if filepath.Base(name) == program && bytes.Contains(environ, []byte("ACME_URL="+w.url)) && err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// nothingLeft asserts that neither objects nor Nodes, VMs, definitions or processes are left.
func (w *world) nothingLeft() {
	w.Helper()
	nodes, err := w.client.CoreV1().Nodes().List(w.Context(), metav1.ListOptions{})
	require.NoError(w, err)
	require.Empty(w, nodes.Items)
	require.Empty(w, w.fleet.Cloud.Snapshot().VMs)
	require.Empty(w, w.processes("machine-controller"))
	kinds, err := w.client.Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
	require.True(w, err != nil || len(kinds.APIResources) == 0, "the definitions are deleted")
}
