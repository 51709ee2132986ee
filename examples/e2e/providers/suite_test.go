// SPDX-License-Identifier: Apache-2.0

package providers_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/examples/programs/manager/apptest"
	"github.com/machinist-dev/machinist/examples/rigs/cloud/kubelets"
)

func TestSuite_Provider_NineChecksPass(t *testing.T) {
	w := newWorld(t, nil)
	r := w.suite(w.environment())
	want := map[string]string{"BeforeSuite": "passed", "AfterSuite": "passed"}
	for _, c := range apptest.Checks() {
		want[c.Name] = "passed"
	}
	require.Len(t, want, 9+2)
	require.Equal(t, want, r.states())
	w.nothingLeft()
}

// leaking is a driver that deletes no VM of test-machine: it stops the VM, and does not find it any more.
type leaking struct {
	driver.Driver

	fleet *kubelets.Fleet
	left  atomic.Bool
}

func (l *leaking) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if req.Machine.Name != "test-machine" {
		return l.Driver.DeleteMachine(ctx, req)
	}
	l.left.Store(l.fleet.Cloud.Stop(req.Machine.Spec.ProviderID))
	return &driver.DeleteMachineResponse{}, nil
}

func (l *leaking) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	if l.left.Load() && req.Machine.Name == "test-machine" {
		return nil, status.Error(codes.NotFound, "no such VM")
	}
	return l.Driver.GetMachineStatus(ctx, req)
}

func leakingCloud(fleet *kubelets.Fleet) driver.Driver {
	return &leaking{Driver: fleet.Cloud, fleet: fleet}
}

const (
	oneMachine = "machine creation adds one Node"
	noMachine  = "machine deletion removes its Node"
	noOrphans  = "no orphaned resources are left"
)

func TestRun_DriverInThisProcess_NineChecksPass(t *testing.T) {
	w := newWorld(t, nil)
	logs := t.TempDir()
	require.True(t, t.Run("cloud", func(t *testing.T) {
		apptest.Run(t, apptest.Options{
			ControlKubeconfig: w.kubeconfig, Namespace: w.namespace, Class: w.class, Driver: w.fleet.Cloud, LogDir: logs, Interval: time.Second,
		})
	}))
	log, err := os.ReadFile(filepath.Join(logs, "mcm_process.log"))
	require.NoError(t, err)
	require.Contains(t, string(log), "kind=machineset", "controllers of sets")
	require.Contains(t, string(log), "create the VM", "controllers of machines")
	w.nothingLeft()
}

// TestSuite_Seed_DeploymentIsPausedAndRestored runs the suite beside an installation, first with success, and then with a machine
// controller that cannot start.
func TestSuite_Seed_DeploymentIsPausedAndRestored(t *testing.T) {
	w := newWorld(t, nil)
	w.installSeed()
	environment := append(w.environment(), "MACHINECLASS_V1=", "IS_CONTROL_CLUSTER_SEED=true", "MACHINE_CONTROLLER_MANAGER_DEPLOYMENT_NAME="+seedDeployment,
		"GNA_SECRET_NAME=agent", "TAGS_ARE_STRINGS=true")
	paused := int32(-1)
	w.whenJoined(func() {
		paused = *w.seed().Spec.Replicas
		require.Equal(t, "true", w.seed().Annotations["dependency-watchdog.gardener.cloud/ignore-scaling"])
		class, err := w.machines.MachineV1alpha1().MachineClasses(w.namespace).Get(t.Context(), "test-mc-v2", metav1.GetOptions{})
		require.NoError(t, err)
		require.JSONEq(t, `{"tags":["test","kubernetes-io-cluster-test","kubernetes-io-role-integration-test"]}`, string(class.ProviderSpec.Raw))
		node, err := w.client.CoreV1().Nodes().Get(t.Context(), "test-machine", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "agent", node.Labels["worker.gardener.cloud/gardener-node-agent-secret-name"])
	})
	require.True(t, w.suite(environment, "-ginkgo.focus="+oneMachine+"|"+noMachine).SuiteSucceeded)
	require.Zero(t, paused)
	restored := func() {
		require.EqualValues(t, 2, *w.seed().Spec.Replicas)
		require.Equal(t, map[string]string{"theirs": "theirs"}, withoutRevision(w.seed().Annotations))
		classes, err := w.machines.MachineV1alpha1().MachineClasses(w.namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, classes.Items, 1, "the definitions and the class of the seed stay")
	}
	restored()
	require.False(t, w.suite(append(environment, "ACME_URL=https://127.0.0.1")).SuiteSucceeded)
	restored()
}

func TestSuite_DriverLeavesAVM_OrphanCheckFails(t *testing.T) {
	w := newWorld(t, leakingCloud)
	w.edit("120, 1", "15, 1")
	r := w.suite(w.environment(), "-ginkgo.focus="+oneMachine+"|"+noMachine+"|"+noOrphans)
	states := r.states()
	require.Equal(t, []string{"passed", "passed", "failed", "passed"}, []string{states[oneMachine], states[noMachine], states[noOrphans], states["AfterSuite"]})
	require.Contains(t, r.failure(noOrphans), "waited 15s for the deletion of all resources in the cloud: orphaned: the tracker reports resources")
	require.Len(t, w.fleet.Cloud.Snapshot().VMs, 1)
	w.fleet.Cloud.Terminate(w.fleet.Cloud.Snapshot().VMs[0].ProviderID)
	w.nothingLeft()
}

func TestSuite_ControllerCannotStart_SetupFailsWithItsLog(t *testing.T) {
	w := newWorld(t, nil)
	r := w.suite(append(w.environment(), "ACME_URL=https://127.0.0.1"))
	require.Equal(t, "failed", r.states()["BeforeSuite"])
	require.NotContains(t, r.states(), oneMachine)
	require.NotContains(t, r.failure("BeforeSuite"), "may be left", "nothing was created")
	require.Contains(t, r.failure("BeforeSuite"), "machine-controller has ended: exit status 1; the end of ")
	require.Contains(t, r.failure("BeforeSuite"), `the scheme of "https://127.0.0.1" is not http`)
	w.nothingLeft()
}

func TestSuite_ControllerKilled_ChecksFailAndCleanupDeletesAll(t *testing.T) {
	w := newWorld(t, nil)
	w.edit("commons.BeforeEachCheck()", "ginkgo.BeforeEach(commons.BeforeEachCheck)") // which some suites have
	w.whenJoined(func() { w.kill("machine-controller") })
	r := w.suite(w.environment(), "-ginkgo.focus="+oneMachine+"|"+noMachine+"|"+noOrphans)
	states := r.states()
	require.Equal(t, []string{"failed", "passed"}, []string{states[noMachine], states["AfterSuite"]})
	require.Contains(t, r.failure(noMachine), "machine-controller has ended: signal: killed; the end of ")
	w.nothingLeft()
}

// TestSuite_TestKilled_NextOneDeletesWhatIsLeft kills the test, and not its machine controller.
func TestSuite_TestKilled_NextOneDeletesWhatIsLeft(t *testing.T) {
	w := newWorld(t, nil)
	t.Cleanup(w.deleteDefinitions)
	w.whenJoined(func() { w.kill("controller.test") })
	_, _, err := w.try(w.environment())
	require.Error(t, err)
	require.Eventually(t, func() bool { return len(w.processes("machine-controller")) == 0 }, time.Minute, 100*time.Millisecond, "it ends with the test")
	_, err = w.machines.MachineV1alpha1().Machines(w.namespace).Get(t.Context(), "test-machine", metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, w.fleet.Cloud.Snapshot().VMs, 1)

	r := w.suite(w.environment(), "-ginkgo.focus="+oneMachine+"|"+noMachine+"|"+noOrphans)
	require.True(t, r.SuiteSucceeded)
	require.Empty(t, w.fleet.Cloud.Snapshot().VMs)
}

func TestSuite_PreserveDefinitions_TheyStay(t *testing.T) {
	w := newWorld(t, nil)
	t.Cleanup(w.deleteDefinitions)
	r := w.suite(append(w.environment(), "PRESERVE_CRD_AT_END=true"), "-ginkgo.focus="+noOrphans)
	require.True(t, r.SuiteSucceeded)
	classes, err := w.machines.MachineV1alpha1().MachineClasses(w.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, classes.Items)
}
