// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned/fake"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

var update = flag.Bool("update", false, "write golden files")

// TestMain removes the pause of client-go between two errors, which is measured by the real clock.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // there is no other way
	goleak.VerifyTestMain(m)
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// harness is a cluster that shows a simulated world, and the output of commands.
type harness struct {
	t        *testing.T
	world    *deploymenttest.World
	cluster  *draintest.Cluster
	machines *fake.Clientset
	clock    *clocktesting.FakeClock
	noNodes  bool

	out, errOut bytes.Buffer
}

// workers returns a deployment of three machines with a surge.
func workers(surge int) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "workers"}}
	d.Spec.Replicas = 3
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "workers"}}
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	d.Spec.Template.Spec.Class = v1alpha1.ClassSpec{Kind: v1alpha1.MachineClassKind, Name: "small"}
	d.Spec.ProgressDeadlineSeconds = new(int32(600))
	d.Spec.Strategy.Type = v1alpha1.RollingUpdateMachineDeploymentStrategyType
	d.Spec.Strategy.RollingUpdate = &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{
		MaxSurge: new(intstr.FromInt(surge)), MaxUnavailable: new(intstr.FromInt(1 - min(surge, 1))),
	}}
	return d
}

// newHarness returns a cluster with the machines of a deployment, all of which are available.
func newHarness(t *testing.T, surge int, m deploymenttest.Model) *harness {
	t.Helper()
	h := &harness{t: t, clock: clocktesting.NewFakeClock(noon)}
	h.cluster, h.machines = machinetest.New(draintest.Options{Clock: h.clock})
	m.Start = noon
	var err error
	h.world, err = deploymenttest.New(workers(surge), m)
	require.NoError(t, err)
	h.world.Run(time.Hour)
	return h
}

// roll changes the template, and lets time pass.
func (h *harness) roll(class string, d time.Duration) {
	h.t.Helper()
	require.NoError(h.t, h.world.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = class }))
	h.world.Run(d)
}

// show puts what the world has into the cluster.
func (h *harness) show() *harness {
	h.t.Helper()
	objects := []runtime.Object{h.world.Deployment().DeepCopy()}
	for _, s := range h.world.Sets() {
		objects = append(objects, s.DeepCopy())
	}
	for _, m := range h.world.Machines() {
		objects = append(objects, m.DeepCopy())
	}
	for _, n := range h.world.Nodes() {
		objects = append(objects, n.DeepCopy())
	}
	for _, o := range objects {
		o.(metav1.Object).SetResourceVersion("") //nolint:forcetypeassert // all are
	}
	h.clock.SetTime(h.world.Now())
	require.NoError(h.t, h.cluster.Add(objects...))
	return h
}

// env returns the environment of a command, whose output is kept.
func (h *harness) env() *cli.Env {
	e := cli.New(nil, &h.out, &h.errOut)
	e.Clock, e.Zone = h.clock, time.UTC
	e.Connect = func() (cli.Clients, error) {
		c := cli.Clients{Namespace: "shop", Clients: explain.Clients{Machines: h.machines, Control: h.cluster.Client(), Target: h.cluster.Client()}}
		if h.noNodes {
			c.Target = nil
		}
		return c, nil
	}
	return e
}

// run runs a command and returns its exit status and what it printed.
func (h *harness) run(command func(*cli.Env) *cobra.Command, args ...string) (status int, text string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	h.out.Reset()
	h.errOut.Reset()
	e := h.env()
	status = e.Run(ctx, command(e), args)
	return status, h.out.String() + h.errOut.String()
}

// deployment returns the deployment of the cluster.
func (h *harness) deployment() *v1alpha1.MachineDeployment {
	h.t.Helper()
	d, err := h.machines.MachineV1alpha1().MachineDeployments("shop").Get(h.t.Context(), "workers", metav1.GetOptions{})
	require.NoError(h.t, err)
	return d
}

// golden compares a text with a golden file, which -update writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), got))
}
