// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var cluster *env.Cluster

// atATime is how many scenarios are played at the same time: they wait more than
// they work.
const atATime = "8"

// nodeGrace is how long a Node may be silent until it is called unknown. It is the
// default of Kubernetes, as what comes of it is part of a scenario.
const nodeGrace = 50 * time.Second

func TestMain(m *testing.M) {
	if flag.Parse(); !given("test.parallel") {
		_ = flag.Set("test.parallel", atATime) // cannot fail: the flag exists, and this is a number
	}
	os.Exit(env.Run(m, controlplane.Options{NodeMonitorGracePeriod: nodeGrace}, func(h *env.Cluster) { cluster = h }))
}

// given reports whether a flag stands on the command line.
func given(name string) (yes bool) {
	flag.Visit(func(f *flag.Flag) { yes = yes || f.Name == name })
	return yes
}

// patience is long, since a busy computer may take minutes for what takes a second.
const patience = 2 * time.Minute

// namespacePatience is how long a namespace may take to go. The namespace controller tries again after up to
// a minute, whatever the machines do.
const namespacePatience = 5 * time.Minute

// fastOptions is a cloud where everything takes its time, but not long.
func fastOptions() env.Options {
	return env.Options{
		Cloud: drivertest.CloudOptions{
			CreateLatency: 300 * time.Millisecond, BootTime: 500 * time.Millisecond, Lag: 300 * time.Millisecond,
			DeleteLatency: 200 * time.Millisecond, ShutdownTime: 300 * time.Millisecond,
		},
		Nodes: env.Nodes{
			JoinAfter: 300 * time.Millisecond, LeaseInterval: 5 * time.Second, PodStartTime: 200 * time.Millisecond, PodStopTime: 300 * time.Millisecond,
		},
		Flags: []string{
			"--machine-settle-time=2s", "--machine-safety-orphan-vms-period=2s", "--machine-safety-orphan-vms-grace=5s",
		},
	}
}

// withShortLease lets another manager, or the next process of the same, lead soon after one
// was killed. A leader of theirs that the API server leaves waiting ends only after
// seconds: another control plane may be starting on the same machine.
func withShortLease(o env.Options) env.Options {
	o.Flags = append(o.Flags, "--leader-elect-lease-duration=12s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=500ms")
	return o
}

// deploy makes a class and a deployment of it, and waits until all machines run.
func deploy(t *testing.T, s *env.Env, d *v1alpha1.MachineDeployment) {
	t.Helper()
	require.NoError(t, s.Class(t.Context(), d.Spec.Template.Spec.Class.Name))
	_, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Create(t.Context(), d, metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "all machines run", s.Complete(d.Name))
}

// change patches a deployment.
func change(t *testing.T, s *env.Env, name, patch string) {
	t.Helper()
	_, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Patch(t.Context(), name, mergePatch, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

// roll lets a deployment use another class, which is made for it.
func roll(t *testing.T, s *env.Env, name, class string) {
	t.Helper()
	require.NoError(t, s.Class(t.Context(), class))
	change(t, s, name, `{"spec":{"template":{"spec":{"class":{"name":"`+class+`"}}}}}`)
}

// machines returns the machines of an environment.
func machines(t *testing.T, s *env.Env) []v1alpha1.Machine {
	t.Helper()
	list, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// running holds when a machine runs.
func running(s *env.Env, name string) env.Condition {
	return in(s, name, v1alpha1.MachineRunning)
}

// in holds when a machine is in a phase.
func in(s *env.Env, name string, phase v1alpha1.MachinePhase) env.Condition {
	return func(ctx context.Context) (string, error) {
		m, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || m.Status.CurrentStatus.Phase != phase {
			return "machine " + name + " is not " + string(phase), err
		}
		return "", nil
	}
}

// create makes a machine.
func create(t *testing.T, s *env.Env, m *v1alpha1.Machine) *v1alpha1.Machine {
	t.Helper()
	made, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)
	return made
}

// machine returns a machine as it is.
func machine(t *testing.T, s *env.Env, name string) *v1alpha1.Machine {
	t.Helper()
	m, err := s.Machines.MachineV1alpha1().Machines(s.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return m
}

// node returns the Node of a machine as it is.
func node(t *testing.T, s *env.Env, machine string) *corev1.Node {
	t.Helper()
	n, err := s.Client.CoreV1().Nodes().Get(t.Context(), s.NodeName(machine), metav1.GetOptions{})
	require.NoError(t, err)
	return n
}

// annotate sets an annotation of a machine.
func annotate(t *testing.T, s *env.Env, machine, key, value string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	require.NoError(t, err)
	_, err = s.Machines.MachineV1alpha1().Machines(s.Namespace).Patch(t.Context(), machine, mergePatch, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// phases returns the phases that a machine has gone through, as a client saw that
// looked on.
func phases(s *env.Env, uid types.UID) (all []v1alpha1.MachinePhase) {
	for _, c := range s.AuditLog().Changes {
		m, ok := c.Object.(*v1alpha1.Machine)
		if !ok || m.UID != uid {
			continue
		}
		if phase := m.Status.CurrentStatus.Phase; phase != "" && (len(all) == 0 || all[len(all)-1] != phase) {
			all = append(all, phase)
		}
	}
	return all
}

// went holds when a machine has gone through these phases, as a client saw that
// looked on: he may be a little behind.
func went(s *env.Env, uid types.UID, want ...v1alpha1.MachinePhase) env.Condition {
	return func(context.Context) (string, error) {
		if have := phases(s, uid); !slices.Equal(have, want) {
			return fmt.Sprintf("the phases were %v, not %v", have, want), nil
		}
		return "", nil
	}
}

// seconds is a timeout of a machine.
func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

// gone holds when a machine is gone.
func gone(s *env.Env, name string) env.Condition {
	return env.Gone("machine", s.Machines.MachineV1alpha1().Machines(s.Namespace).Get, name)
}

// removeAll deletes everything that a test has made, all at once, and waits until it
// is gone.
func removeAll(t *testing.T, s *env.Env) {
	t.Helper()
	ctx, api, all := t.Context(), s.Machines.MachineV1alpha1(), metav1.ListOptions{}
	require.NoError(t, api.MachineDeployments(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	require.NoError(t, api.MachineSets(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	require.NoError(t, api.Machines(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	require.NoError(t, api.MachineClasses(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	require.NoError(t, s.Client.CoreV1().Secrets(s.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	s.Wait(t, patience, "nothing is left", s.NothingLeft)
}

const mergePatch = types.MergePatchType
