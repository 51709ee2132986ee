// SPDX-License-Identifier: Apache-2.0

package machinesalone_test

import (
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/programs/manager/install"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// output has what a process has written.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// TestPrograms_OfOneConcern_DoIt runs the programs in the comments of packages, each of which reconciles one
// concern of all namespaces.
func TestPrograms_OfOneConcern_DoIt(t *testing.T) {
	const namespace = "shop"
	config := plane.Config()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	machines, err := versioned.NewForConfig(config)
	require.NoError(t, err)
	definitions, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	require.NoError(t, install.Definitions(t.Context(), definitions))
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	cloud, api := drivertest.NewCloud(drivertest.CloudOptions{}), machines.MachineV1alpha1()
	_, err = client.CoreV1().Secrets(namespace).Create(t.Context(), cloud.Secret(namespace, "small"), metav1.CreateOptions{})
	require.NoError(t, err)
	class := cloud.MachineClass(namespace, "small")
	class.Finalizers = []string{v1alpha1.MCMFinalizerName} // no program here adds it
	_, err = api.MachineClasses(namespace).Create(t.Context(), class, metav1.CreateOptions{})
	require.NoError(t, err)
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	m.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}
	_, err = api.Machines(namespace).Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)
	server := env.Proxy(t, config)
	for _, program := range []struct {
		pkg  string
		done func(printed string) bool
	}{
		{"safety/runner", func(printed string) bool {
			return strings.Contains(printed, "waits for vm/simulated:///shop/lost/1: WaitingForGrace")
		}},
		{"machine/runner", func(string) bool {
			m, err := api.Machines(namespace).Get(t.Context(), "worker-1", metav1.GetOptions{})
			return err == nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineAvailable && m.Spec.ProviderID != ""
		}},
	} {
		out := &output{}
		cmd := exec.CommandContext(t.Context(), env.Documented(t.Context(), t, program.pkg, server)) //nolint:gosec // just built
		cmd.Stdout, cmd.Stderr = out, out
		require.NoError(t, cmd.Start())
		for end := time.Now().Add(time.Minute); !program.done(out.String()); time.Sleep(100 * time.Millisecond) {
			require.True(t, time.Now().Before(end), "%s printed: %s", program.pkg, out)
		}
		_ = cmd.Process.Kill() // it does not end by itself
		_ = cmd.Wait()
	}
}
