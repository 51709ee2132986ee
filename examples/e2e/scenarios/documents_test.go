// SPDX-License-Identifier: Apache-2.0

package scenarios_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/e2e/env"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// documentedCommand matches the kubectl commands of a page: indented lines, and code in a line.
var documentedCommand = regexp.MustCompile("(?m)^    (kubectl [^#\n]*)|`(kubectl (?:get|describe|annotate|apply) [^`]*)`")

// documentedCommands returns the kubectl commands of a page of docs.
func documentedCommands(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page)) //nolint:gosec // a name of this test
	require.NoError(t, err)
	var all []string
	for _, m := range documentedCommand.FindAllStringSubmatch(string(text), -1) {
		all = append(all, strings.Join(strings.Fields(m[1]+m[2]), " "))
	}
	return all
}

// kubectlFolder returns a folder with a program kubectl for a namespace.
func kubectlFolder(t *testing.T, namespace string) string {
	t.Helper()
	program, config := kubectlFiles(t)
	script := "#!/bin/sh\nexec " + program + " --kubeconfig=" + config + " --namespace=" + namespace + " \"$@\"\n"
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "kubectl"), []byte(script), 0o700)) //nolint:gosec // it is a program
	return folder
}

// runDocumented runs a command of a page with bash, in the root of the repository, with programs of
// a folder. Other scenarios share the cluster, so the server only checks what would be applied.
func runDocumented(ctx context.Context, folder, command string) (string, error) {
	command = strings.ReplaceAll(command, "kubectl apply", "kubectl apply --dry-run=server")
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command) //nolint:gosec // from the documents
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// saysProgress reports whether the condition Progressing has the message of a decision, whose reason comes before it.
// A complete rollout has the text of MCM.
func saysProgress(d *v1alpha1.MachineDeployment, decision string) bool {
	_, message, _ := strings.Cut(decision, " - ")
	return slices.ContainsFunc(d.Status.Conditions, func(c v1alpha1.MachineDeploymentCondition) bool {
		return c.Type == v1alpha1.MachineDeploymentProgressing && (c.Message == message || c.Reason == v1alpha1.NewMachineSetAvailable)
	})
}

// TestDocuments_KubectlCommands_Succeed runs the commands of the pages on a cluster that has the
// objects that they name.
func TestDocuments_KubectlCommands_Succeed(t *testing.T) {
	t.Parallel()
	s := cluster.Set(t, "documents", fastOptions())
	s.StartManager(t, "manager")
	d := s.Deployment("d", "small", 1, 1, 0)
	deploy(t, s, d)
	create(t, s, s.Machine("a", "small"))
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: v1alpha1.MachineSetSpec{
		Replicas: 1, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"set": "s"}}, Template: *d.Spec.Template.DeepCopy(),
	}}
	set.Spec.Template.Labels = map[string]string{"set": "s"}
	_, err := s.Machines.MachineV1alpha1().MachineSets(s.Namespace).Create(t.Context(), set, metav1.CreateOptions{})
	require.NoError(t, err)
	stuck := s.Deployment("workers", "nowhere", 1, 1, 0)
	stuck.Spec.ProgressDeadlineSeconds = new(int32(1))
	_, err = s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Create(t.Context(), stuck, metav1.CreateOptions{})
	require.NoError(t, err)
	folder, ran := kubectlFolder(t, s.Namespace), 0
	for _, page := range []string{"operations.md", "guards.md", "rollouts.md", "migrating.md"} {
		for _, command := range documentedCommands(t, page) {
			ran++
			s.Wait(t, patience, command, func(ctx context.Context) (string, error) {
				out, err := runDocumented(ctx, folder, command)
				if err != nil {
					return fmt.Sprintf("%v: %s", err, out), nil //nolint:nilerr // the command may need time
				}
				return "", nil
			})
		}
	}
	require.Greater(t, ran, 8)
	program := env.Documented(t.Context(), t, "deployment/runner", env.Proxy(t, cluster.ControlPlane.Config()))
	for name, want := range map[string]string{"d": "Complete - ", "workers": "Stuck - no progress within 1s, "} {
		s.Wait(t, patience, name, func(ctx context.Context) (string, error) {
			out, err := exec.CommandContext(ctx, program, s.Namespace, name).Output() //nolint:gosec // just built
			if !strings.HasPrefix(string(out), want) {
				return fmt.Sprintf("it prints %s: %v", out, err), nil
			}
			d, getErr := s.Machines.MachineV1alpha1().MachineDeployments(s.Namespace).Get(ctx, name, metav1.GetOptions{})
			if getErr != nil || !saysProgress(d, strings.TrimSuffix(strings.SplitN(string(out), "\n", 2)[0], "\n")) {
				return fmt.Sprintf("it prints %s, and the status has %v: %v", out, d.Status.Conditions, getErr), nil
			}
			return "", err
		})
	}
	removeAll(t, s)
}
