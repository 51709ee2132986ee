// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// pluginFolder builds the plugin once, and returns its folder.
var pluginFolder = sync.OnceValues(func() (string, error) {
	folder, err := cluster.ControlPlane.TempDir("plugin-")
	if err != nil {
		return "", err
	}
	ctx := context.Background()
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/machinist-dev/machinist/examples").Output()
	if err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", filepath.Join(folder, "kubectl-machines"), ".")
	build.Dir = filepath.Join(strings.TrimSpace(string(dir)), "kubectl-machines")
	build.Env = append(os.Environ(), "GOWORK=off", "PWD="+build.Dir)
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return folder, nil
})

// plugin returns a function that runs kubectl machines in the namespace of an environment, with the plugin
// alone in $PATH. It returns the exit status and what is printed.
func plugin(t *testing.T, s *env.Env) func(args ...string) (status int, text string) {
	t.Helper()
	program, config := kubectlFiles(t)
	folder, err := pluginFolder()
	require.NoError(t, err)
	return func(args ...string) (int, string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, append(append([]string{"machines"}, args...), "--kubeconfig="+config, "--namespace="+s.Namespace)...)
		cmd.Env = []string{"PATH=" + folder, "HOME=" + t.TempDir()}
		var text bytes.Buffer
		cmd.Stdout, cmd.Stderr = &text, &text
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			require.NoError(t, err, "kubectl machines %s", strings.Join(args, " "))
		}
		return cmd.ProcessState.ExitCode(), text.String()
	}
}

// progress returns the message of the condition Progressing.
func progress(d *v1alpha1.MachineDeployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == v1alpha1.MachineDeploymentProgressing {
			return c.Message
		}
	}
	return ""
}

func TestPlugin_Rollouts_TextsAreThoseOfTheObjects(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "plugin", fastOptions())
	s.StartManager(t, "manager")
	run := plugin(t, s)
	done := func(args ...string) string {
		t.Helper()
		status, text := run(args...)
		require.Zero(t, status, "%s", text)
		return text
	}
	d := s.Deployment("workers", "small", 3, 1, 0)
	d.Spec.ProgressDeadlineSeconds = new(int32(5))
	deploy(t, s, d)
	require.Contains(t, done("rollout", "status", "workers", "--timeout=2m"), "machinedeployment workers: Complete: 3 of 3 machines updated, 3 available\n")

	require.Contains(t, done("rollout", "pause", "workers"), "machinedeployment.machine.sapcloud.io/workers paused\n")
	require.True(t, deploymentNamed(t, s, "workers").Spec.Paused)
	s.Wait(t, patience, "it is paused", deploymentIs(s, "workers", observed))
	roll(t, s, "workers", "large")
	s.Wait(t, patience, "it stays paused", deploymentIs(s, "workers", observed))
	require.Equal(t, "machinedeployment workers: Paused: spec.paused is true: only changes of spec.replicas are carried out\n",
		done("rollout", "status", "workers", "--watch=false"))
	status, text := run("rollout", "undo", "workers")
	require.Equal(t, 2, status)
	require.Equal(t, "error: machinedeployment workers is paused: resume it first, with kubectl machines rollout resume workers\n", text)

	remove := s.Cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Code: codes.ResourceExhausted, Message: "no large VMs in this zone"})
	require.Contains(t, done("rollout", "resume", "workers"), "machinedeployment.machine.sapcloud.io/workers resumed\n")
	status, text = run("rollout", "status", "workers", "--timeout=2m")
	require.Equal(t, 1, status, text)
	require.Contains(t, text, "error: the rollout of machinedeployment workers is stuck; kubectl machines rollout undo workers restores the previous template\n")
	s.Wait(t, patience, "the controller says so", deploymentIs(s, "workers", progressIs(v1alpha1.ConditionFalse, v1alpha1.ProgressDeadlineExceeded)))
	s.Wait(t, patience, "in the same words", deploymentIs(s, "workers", func(d *v1alpha1.MachineDeployment) bool {
		status, text = run("rollout", "status", "workers", "--watch=false")
		return strings.Contains(text, "machinedeployment workers: Stuck: "+progress(d)+"\n")
	}))
	require.Contains(t, text, "no large VMs in this zone")

	require.Contains(t, done("rollout", "undo", "workers"), "machinedeployment.machine.sapcloud.io/workers rolled back\n")
	s.Wait(t, patience, "it is done with", rolledBack(s, "workers"))
	remove()
	require.Contains(t, done("rollout", "status", "workers", "--timeout=2m"), "Complete: 3 of 3 machines updated, 3 available\n")
	require.Equal(t, "small", deploymentNamed(t, s, "workers").Spec.Template.Spec.Class.Name)
	history := done("rollout", "history", "workers")
	require.Contains(t, history, setOf(t, s, "small").Annotations[v1alpha1.RevisionAnnotation]+" (current)")
	require.Contains(t, history, "spec.class.name: large -> small")

	victim := machines(t, s)[0]
	require.Contains(t, done("replace", victim.Name, "--timeout=2m"), "machine "+victim.Name+" is replaced\n")
	require.NotContains(t, names(machines(t, s)), victim.Name)
	require.Contains(t, done("rollout", "status", "workers", "--timeout=2m"), "Complete: 3 of 3 machines updated, 3 available\n")
	status, text = run("simulate", "workers", "--live", "-o=summary")
	require.Zero(t, status, text)
	require.Contains(t, text, "(median of 3 machines)")
	removeAll(t, s)
}

func names(machines []v1alpha1.Machine) (all []string) {
	for i := range machines {
		all = append(all, machines[i].Name)
	}
	return all
}

func TestPlugin_DrainUnderBudget_RefusedWithItsNumbers(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "plugindrain", fastOptions())
	s.StartManager(t, "manager")
	run := plugin(t, s)
	deploy(t, s, s.Deployment("workers", "small", 2, 1, 1))
	_, err := s.Client.AppsV1().ReplicaSets(s.Namespace).Create(t.Context(), s.ReplicaSet("app", 4), metav1.CreateOptions{})
	require.NoError(t, err)
	budgets := s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace)
	_, err = budgets.Create(t.Context(), s.Budget("app", 4), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the pods are ready", ready(s, "app", 4))
	s.Wait(t, patience, "the budget knows them", counted(s, "app", 4))
	node := machines(t, s)[0].Labels[v1alpha1.NodeLabelKey]
	if len(podsOn(t, s, node)) == 0 { // then all are on the other
		node = machines(t, s)[1].Labels[v1alpha1.NodeLabelKey]
	}
	budget, err := budgets.Get(t.Context(), "app", metav1.GetOptions{})
	require.NoError(t, err)
	status, text := run("drain", node)
	require.Equal(t, 2, status, text)
	for _, p := range podsOn(t, s, node) {
		require.Contains(t, text, s.Namespace+"/"+p.Name+": BudgetNeverAllows: ")
	}
	require.Zero(t, budget.Status.DisruptionsAllowed)
	require.Contains(t, text, "budget "+s.Namespace+"/app")
	require.Contains(t, text, "change the PodDisruptionBudget, or delete the pod with --force-after")

	_, err = budgets.Patch(t.Context(), "app", mergePatch, []byte(`{"spec":{"minAvailable":3}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the budget allows one", counted(s, "app", 4))
	status, text = run("drain", node, "--timeout=2m")
	require.Zero(t, status, text)
	require.Contains(t, text, "node "+node+" drained\n")
	require.Empty(t, podsOn(t, s, node))
	status, text = run("uncordon", node)
	require.Zero(t, status, text)
	require.Equal(t, "node/"+node+" uncordoned\n", text)
	require.NoError(t, budgets.Delete(t.Context(), "app", metav1.DeleteOptions{}))
	removeAll(t, s)
}
