// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

const root = "../../.."

// readmeCommands returns the commands of README.md that use a kubeconfig, which is replaced.
func readmeCommands(t *testing.T, name, kubeconfig string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^    ((?:go run|kubectl) [^#\n]*`+name+`[^#\n]*)`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, strings.ReplaceAll(strings.TrimSpace(m[1]), name, kubeconfig))
	}
	return all
}

// begin starts a command of the README in the root of the repository. The returned function
// interrupts it and its children, as Ctrl-C does, and waits.
func begin(t *testing.T, command string) (end func()) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "bash", "-c", command) //nolint:gosec // from README.md
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Minute
	require.NoError(t, cmd.Start())
	ended := false
	end = func() {
		if !ended {
			ended = true
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
			_ = cmd.Wait() // go run exits with 1 after Ctrl-C
		}
	}
	t.Cleanup(end)
	return end
}

// eventually runs a command until it succeeds, with output that contains a text.
func eventually(t *testing.T, command, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		cmd := exec.CommandContext(ctx, "bash", "-c", command) //nolint:gosec // from README.md
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err == nil && strings.Contains(string(out), text) {
			return
		}
		select {
		case <-ctx.Done():
			require.FailNow(t, "command does not succeed", "%s: %v: %s", command, err, out)
		case <-tick.C:
		}
	}
}

// prepare lets commands use the workspace of the repository and kubectl.
func prepare(t *testing.T) {
	t.Helper()
	kubectl, err := controlplane.Kubectl(t.Context(), os.Stderr)
	require.NoError(t, err)
	t.Setenv("GOWORK", "")
	t.Setenv("PATH", filepath.Dir(kubectl)+":"+os.Getenv("PATH"))
}

// TestReadme_Cluster_ThreeMachinesRun runs the commands of the README: a control plane, a simulated
// cloud, a manager, and a deployment of three machines.
func TestReadme_Cluster_ThreeMachinesRun(t *testing.T) {
	prepare(t)
	kubeconfig := filepath.Join(t.TempDir(), "cluster")
	commands := readmeCommands(t, "/tmp/cluster", kubeconfig)
	require.Len(t, commands, 5)
	up, serve, install, manager, apply := commands[0], commands[1], commands[2], commands[3], commands[4]
	ask := "kubectl --kubeconfig " + kubeconfig

	endUp := begin(t, up)
	eventually(t, ask+" get namespaces", "kube-system")
	endServe := begin(t, serve)
	eventually(t, install, "the machine objects are served")
	endManager := begin(t, manager)
	eventually(t, apply, "machinedeployment.machine.sapcloud.io/workers")
	eventually(t, ask+" wait --for=condition=Available machinedeployment/workers --timeout=5s", "condition met")
	eventually(t, ask+" get machines --no-headers | awk '$2 == \"Running\"' | wc -l", "3")
	eventually(t, ask+" get nodes --no-headers | wc -l", "3")
	endManager()
	endServe()
	endUp()
	require.NoFileExists(t, kubeconfig)
}

// TestReadme_Kubelets_RollAndDelete runs the commands of the README for kubelets: five machines, a
// StatefulSet with a budget, a rollout, and a deletion that leaves no process.
func TestReadme_Kubelets_RollAndDelete(t *testing.T) {
	prepare(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubelets")
	commands := readmeCommands(t, "/tmp/kubelets", kubeconfig)
	require.Len(t, commands, 6)
	up, machines, pods, roll, get, remove := commands[0], commands[1], commands[2], commands[3], commands[4], commands[5]
	ask := "kubectl --kubeconfig " + kubeconfig
	complete := ask + " get machinedeployment workers -o jsonpath='{.metadata.generation} {.status.observedGeneration} {.status.replicas} {.status.updatedReplicas} {.status.availableReplicas}' | " +
		"awk '$1 == $2 { print $3, $4, $5 }'"

	endUp := begin(t, up)
	eventually(t, machines, "machinedeployment.machine.sapcloud.io/workers")
	eventually(t, complete, "5 5 5")
	require.Len(t, kubeletProcesses(t), 5)
	eventually(t, pods, "statefulset.apps/db")
	eventually(t, ask+" get statefulset db -o jsonpath='{.status.readyReplicas}'", "3")
	eventually(t, roll, "patched")
	eventually(t, complete, "5 5 5")
	eventually(t, get, "Running")
	eventually(t, ask+" get statefulset db -o jsonpath='{.status.readyReplicas}'", "3")
	eventually(t, remove, "deleted")
	eventually(t, ask+" get machines,nodes", "No resources found")
	require.Empty(t, kubeletProcesses(t))
	endUp()
	require.NoFileExists(t, kubeconfig)
}

// kubeletProcesses returns the processes of kubemark on this computer.
func kubeletProcesses(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=,args=").Output()
	require.NoError(t, err)
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "--morph=kubelet") {
			found = append(found, line)
		}
	}
	return found
}
