// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// pluginFolder builds the plugin once, and returns its folder.
var pluginFolder = sync.OnceValues(func() (string, error) {
	folder, err := cluster.ControlPlane.TempDir("plugin-")
	if err != nil {
		return "", err
	}
	return folder, env.Build(context.Background(), "programs/kubectl-machines", filepath.Join(folder, "kubectl-machines"), ".")
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

// said returns what a command prints that succeeds.
func said(t *testing.T, run func(args ...string) (int, string), args ...string) string {
	t.Helper()
	status, text := run(args...)
	require.Zero(t, status, "%s", text)
	return text
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
	done := func(args ...string) string { return said(t, run, args...) }
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

	change(t, s, "workers", `{"spec":{"progressDeadlineSeconds":120}}`) // what follows may be slow, and is not stuck
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

// waitOf returns what the status of a machine says that it waits for, without its times, or "".
func waitOf(m *v1alpha1.Machine) string {
	_, text, _ := strings.Cut(facts.WithoutDetails(m.Status.LastOperation.Description), facts.WaitsMark)
	return text
}

// when returns the condition that f returns true.
func when(f func() bool) env.Condition {
	return func(context.Context) (string, error) {
		if f() {
			return "", nil
		}
		return "it is not so yet", nil
	}
}

// TestPlugin_Explain_TextsAreThoseOfTheStatus compares what kubectl machines explain and kubectl get print
// with the status of the object, in situations that a user has to end.
func TestPlugin_Explain_TextsAreThoseOfTheStatus(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "explain", fastOptions())
	s.StartManager(t, "manager")
	run := plugin(t, s)
	program, config := kubectlFiles(t)
	// waits blocks until the only machine waits for something, and compares the texts.
	waits := func(what, reason string) {
		t.Helper()
		var m v1alpha1.Machine
		s.Wait(t, patience, what, when(func() bool {
			all := machines(t, s)
			if len(all) == 0 {
				return false
			}
			m = all[0]
			c := facts.ConditionOf(m.Status.Conditions, v1alpha1.MachineWaiting)
			return c != nil && c.Reason == reason && waitOf(&m) != ""
		}))
		c := facts.ConditionOf(m.Status.Conditions, v1alpha1.MachineWaiting)
		status, text := run("explain", "machine/"+m.Name)
		require.Zero(t, status, text)
		first, _, _ := strings.Cut(waitOf(&m), ": ")
		require.Contains(t, text, "waits for   "+first+": "+reason+": ", "%s: %s", waitOf(&m), text)
		status, text = run("tree")
		require.Zero(t, status, text)
		require.Contains(t, text, first+": "+reason)
		table, err := exec.CommandContext(t.Context(), program, "get", "machines", m.Name, "--kubeconfig="+config, "--namespace="+s.Namespace).CombinedOutput()
		require.NoError(t, err, "%s", table)
		require.Contains(t, string(table), c.Message)
	}
	remove := s.Cloud.Inject(drivertest.Fault{Operation: driver.OpCreateMachine, Code: codes.ResourceExhausted, Message: "no small VMs in this zone"})
	require.NoError(t, s.Class(t.Context(), "small"))
	_, err := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Create(t.Context(), s.Deployment("workers", "small", 1, 1, 0), metav1.CreateOptions{})
	require.NoError(t, err)
	waits("for quota", "ProviderFailed")
	remove()
	status, text := run("retry", "machinedeployment/workers")
	require.Zero(t, status, text)
	s.Wait(t, patience, "the retry succeeds", deploymentIs(s, "workers", func(d *v1alpha1.MachineDeployment) bool { return d.Status.AvailableReplicas == 1 }))
	require.NotContains(t, deploymentNamed(t, s, "workers").Annotations, v1alpha1.RetryNowAnnotation)

	_, err = s.Client.AppsV1().ReplicaSets(s.Namespace).Create(t.Context(), s.ReplicaSet("app", 1), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Create(t.Context(), s.Budget("app", 1), metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the pod is ready", ready(s, "app", 1))
	s.Wait(t, patience, "the budget knows it", counted(s, "app", 1))
	old := machines(t, s)[0].Name
	change(t, s, "workers", `{"spec":{"replicas":0}}`)
	waits("for the budget", "BudgetNeverAllows")
	require.NoError(t, s.Client.PolicyV1().PodDisruptionBudgets(s.Namespace).Delete(t.Context(), "app", metav1.DeleteOptions{}))
	s.Wait(t, patience, "the drain ends", when(func() bool { return !slices.Contains(names(machines(t, s)), old) }))

	secrets := s.Client.CoreV1().Secrets(s.Namespace)
	secret, err := secrets.Get(t.Context(), "small", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, secrets.Delete(t.Context(), "small", metav1.DeleteOptions{}))
	_, err = secrets.Patch(t.Context(), "small", mergePatch, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), err)
	s.Wait(t, patience, "the Secret is gone", when(func() bool {
		_, err := secrets.Get(t.Context(), "small", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}))
	change(t, s, "workers", `{"spec":{"replicas":1}}`)
	waits("for the Secret", "ClassUnusable")
	secret.ObjectMeta = metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}
	_, err = secrets.Create(t.Context(), secret, metav1.CreateOptions{})
	require.NoError(t, err)
	s.Wait(t, patience, "the corrected Secret is noticed", deploymentIs(s, "workers", func(d *v1alpha1.MachineDeployment) bool { return d.Status.AvailableReplicas == 1 }))
	removeAll(t, s)
}

// TestPlugin_FrozenDeployment_TextsAreThoseOfTheStatus compares what the commands say of a deployment and a set that
// create too many machines with their labels and conditions, before and after the freeze.
func TestPlugin_FrozenDeployment_TextsAreThoseOfTheStatus(t *testing.T) {
	t.Parallel()
	o := fastOptions()
	o.Bounds = audit.Options{ByHand: 4}
	o.Flags = append(o.Flags, "--machine-safety-overshooting-period=2s")
	o.AllowDenied = func(r controlplane.Request) bool { // the policy of this scenario
		return r.Verb == "delete" && r.Resource == "machines" && (r.Code == http.StatusUnprocessableEntity || r.Code == http.StatusForbidden)
	}
	s := cluster.Set(t, "pluginfrozen", o)
	s.StartManager(t, "manager")
	run := plugin(t, s)
	deploy(t, s, s.Deployment("workers", "small", 1, 1, 0))
	set := setOf(t, s, "small")
	complete := time.Now()
	s.Wait(t, patience, "requests under way have ended", when(func() bool { return time.Since(complete) > 15*time.Second }))
	end := keepMachines(t, s)
	for i := range 4 {
		m := s.Machine(fmt.Sprint("byhand-", i), "small")
		m.Labels = set.Spec.Template.Labels
		create(t, s, m)
	}
	s.Wait(t, patience, "set and deployment are frozen", frozen(s, "workers", true))
	roll(t, s, "workers", "large")
	const hold = "machinedeployment/workers: Frozen: label freeze=True: no set is created and none grows"
	s.Wait(t, patience, "the roll-out waits", deploymentIs(s, "workers", func(d *v1alpha1.MachineDeployment) bool {
		return strings.HasSuffix(progress(d), ", 5 available, waits for "+hold)
	}))
	written := "Progressing: " + progress(deploymentNamed(t, s, "workers"))
	text := said(t, run, "explain", "machinedeployment/workers")
	require.Contains(t, text, "\ndecides     nothing ("+written+")\nwaits for   "+hold+", since ")
	require.Contains(t, said(t, run, "tree"), hold+" (")
	require.Equal(t, "machinedeployment workers: "+written+"\n", said(t, run, "rollout", "status", "workers", "--watch=false"))
	require.Equal(t, "Frozen", said(t, run, "explain", "machinedeployment/workers", "-o=jsonpath={.objects[0].waitsFor[*].reason}"))

	end()
	require.Contains(t, said(t, run, "rollout", "status", "workers", "--timeout=2m"), "Complete: 1 of 1 machines updated, 1 available\n")
	require.NotContains(t, said(t, run, "tree"), "Frozen")
	removeAll(t, s)
}

// TestPlugin_FrozenController_TextsAreThoseOfTheStatus takes the cluster of the Nodes away from the manager alone.
func TestPlugin_FrozenController_TextsAreThoseOfTheStatus(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "pluginfreeze", fastOptions())
	g, kubeconfig := openGateway(t)
	s.StartManager(t, "manager", "--control-kubeconfig="+admin(t), "--target-kubeconfig="+kubeconfig,
		"--machine-safety-apiserver-statuscheck-timeout=10s", "--machine-safety-apiserver-statuscheck-period=10s")
	run := plugin(t, s)
	deploy(t, s, s.Deployment("workers", "small", 1, 1, 0))
	g.blocked.Lock()
	s.Wait(t, patience, "the deployment says so", controllerFrozen(s, "workers", true))
	change(t, s, "workers", `{"spec":{"replicas":2}}`)
	s.Wait(t, patience, "the change is observed", deploymentIs(s, "workers", observed))
	d := deploymentNamed(t, s, "workers")
	i := slices.IndexFunc(d.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
		return c.Type == v1alpha1.MachineDeploymentControllerFrozen
	})
	_, server, found := strings.Cut(d.Status.Conditions[i].Message, "deletions go on: ")
	require.True(t, found, d.Status.Conditions[i].Message)
	want := "api-server: Frozen: nothing is created, failed or replaced: " + server
	for _, subject := range []string{"machinedeployment/workers", "machine/" + machines(t, s)[0].Name} {
		text := said(t, run, "explain", subject)
		require.Contains(t, text, "waits for   "+want+", since "+d.Status.Conditions[i].LastTransitionTime.UTC().Format(time.RFC3339))
		require.Contains(t, text, "\ndecides     nothing (Frozen")
	}
	require.Contains(t, said(t, run, "tree"), want)
	require.Equal(t, "machinedeployment workers: ControllerFrozen: "+d.Status.Conditions[i].Message+"\n", said(t, run, "rollout", "status", "workers", "--watch=false"))
	g.blocked.Unlock()
	require.Contains(t, said(t, run, "rollout", "status", "workers", "--timeout=2m"), "Complete: 2 of 2 machines updated, 2 available\n")
	require.NotContains(t, said(t, run, "tree"), "Frozen")
	removeAll(t, s)
}
