// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/deployment/deploymenttest"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/simulation"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// live returns a cluster in which the pool is rolled for a while, and the time there. Machines take five
// minutes to join.
func live(t *testing.T, rolls time.Duration) func(args ...string) (status int, text string) {
	t.Helper()
	d, err := simulation.ReadDeployment([]byte(poolText(t)), "")
	require.NoError(t, err)
	d.Spec.Template.Spec.MachineConfiguration = &v1alpha1.MachineConfiguration{MachineCreationTimeout: &metav1.Duration{Duration: 7 * time.Minute}}
	w, err := deploymenttest.New(d, deploymenttest.Model{
		Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Join:  func(*v1alpha1.Machine) (time.Duration, bool) { return 5 * time.Minute, true },
	})
	require.NoError(t, err)
	w.Run(time.Hour)
	if rolls > 0 {
		require.NoError(t, w.Edit(func(d *v1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "large" }))
		w.Run(rolls)
	}
	objects := []runtime.Object{w.Deployment().DeepCopy()}
	for _, s := range w.Sets() {
		objects = append(objects, s.DeepCopy())
	}
	for _, m := range w.Machines() {
		objects = append(objects, m.DeepCopy())
	}
	for _, n := range w.Nodes() {
		objects = append(objects, n.DeepCopy())
	}
	for _, o := range objects {
		o.(metav1.Object).SetResourceVersion("") //nolint:forcetypeassert // all are
	}
	clock := clocktesting.NewFakeClock(w.Now())
	cluster, machines := machinetest.New(draintest.Options{Clock: clock})
	require.NoError(t, cluster.Add(objects...))
	return func(args ...string) (int, string) {
		t.Helper()
		var out bytes.Buffer
		e := cli.New(nil, &out, &out)
		e.Clock = clock
		e.Connect = func() (cli.Clients, error) {
			return cli.Clients{Namespace: "demo", Clients: explain.Clients{Machines: machines, Control: cluster.Client(), Target: cluster.Client()}}, nil
		}
		before := cluster.ResourceVersion()
		status := e.Run(t.Context(), simulation.New(e), args)
		require.Equal(t, before, cluster.ResourceVersion(), "it only reads")
		return status, out.String()
	}
}

func TestLive_RolloutGoesOn_WithTheTimesOfTheCluster(t *testing.T) {
	run := live(t, 6*time.Minute)
	status, text := run("pool", "--live")
	require.Equal(t, cli.Done, status, text)
	golden(t, "live-table", text)
	status, text = run("pool", "--live", "--class=huge", "--never", "-o=summary")
	require.Equal(t, cli.Failed, status, text)
	require.Contains(t, text, "class large -> huge")
	require.Contains(t, text, "error: stopped after ")
}

func TestLive_CompleteDeployment_AssumesANewClass(t *testing.T) {
	run := live(t, 0)
	status, text := run("machinedeployment/pool", "--live", "-o=summary", "--join=1m", "--at=0s=delete:oldest")
	require.Equal(t, cli.Done, status, text)
	require.Contains(t, text, "class small -> small-next (assumed: no --class or --to)")
	require.NotContains(t, text, "median")
	for args, says := range map[string]string{"other": `"other" not found`, "machine/x": `is not a machinedeployment`} {
		status, text = run(args, "--live")
		require.Equal(t, cli.Refused, status)
		require.Contains(t, text, says)
	}
}
