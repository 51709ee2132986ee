// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// run runs the program with a cluster that has some objects.
func run(t *testing.T, args ...string) (status int, text string) {
	t.Helper()
	cluster, machines := machinetest.New(draintest.Options{})
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	require.NoError(t, cluster.Add(&v1alpha1.MachineDeployment{ObjectMeta: named("workers")}, &v1alpha1.MachineSet{ObjectMeta: named("workers-1")},
		&v1alpha1.Machine{ObjectMeta: named("workers-1-a")}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}))
	var out bytes.Buffer
	e := cli.New(nil, &out, &out)
	e.Connect = func() (cli.Clients, error) {
		return cli.Clients{Namespace: "shop", Clients: explain.Clients{Machines: machines, Control: cluster.Client(), Target: cluster.Client()}}, nil
	}
	status = e.Run(t.Context(), root(e), args)
	return status, out.String()
}

func TestHelp_EachCommand_ShortWithExamples(t *testing.T) {
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[2:]
		_, text := run(t, append(path, "--help")...)
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "      --allow-missing-template-keys") || strings.HasPrefix(line, "      --template") || strings.HasPrefix(line, "  -o, --output") {
				continue // flags of kubectl
			}
			require.LessOrEqual(t, utf8.RuneCountInString(line), 140, line)
		}
		require.NotContains(t, text, "--insecure-skip-tls-verify", "flags that few need are hidden")
		if !cmd.HasSubCommands() {
			require.Contains(t, text, "Examples:\n  kubectl machines "+strings.Join(path, " "), text)
		}
		for _, sub := range cmd.Commands() {
			each(sub)
		}
	}
	each(root(cli.New(nil, &bytes.Buffer{}, &bytes.Buffer{})))
}

func TestCompletion_Names_OfTheCluster(t *testing.T) {
	for args, want := range map[string]string{
		"rollout status ": "workers\n", "replace ": "workers-1-a\n", "preserve workers-1-a ": "now\nwhen-failed\nfalse\nremove\n", "uncordon ": "node-1\n",
		"retry ": "workers-1-a\nmachineset/workers-1\nmachinedeployment/workers\n", "simulate ": "workers\n", "drain node-1 ": "",
	} {
		status, text := run(t, append([]string{cobra.ShellCompRequestCmd}, strings.Split(args, " ")...)...)
		require.Equal(t, cli.Done, status)
		require.True(t, strings.HasPrefix(text, want+":4\n"), "%s: %s", args, text)
	}
}

func TestRun_Unreachable_OneLineOfError(t *testing.T) {
	for says, args := range map[string][]string{
		"/no/such/file": {"drain", "node-1", "--kubeconfig=/no/such/file"}, "--target-kubeconfig": {"drain", "node-1", "--server=http://127.0.0.1:1", "--target-kubeconfig=/no/such/file"},
		"connection refused": {"rollout", "pause", "workers", "--server=http://127.0.0.1:1"}, "unknown flag: --chunk": {"replace", "m", "--chunk=1"},
		`unknown command "dance"`: {"dance"}, "there are no Nodes": {"drain", "node-1", "--server=http://127.0.0.1:1", "--target-kubeconfig=none"},
	} {
		var out, errOut bytes.Buffer
		e := cli.New(nil, &out, &errOut)
		require.NotEqual(t, cli.Done, e.Run(t.Context(), root(e), args))
		require.Contains(t, errOut.String(), says)
		require.True(t, strings.HasPrefix(errOut.String(), "error: "), errOut.String())
		require.Equal(t, 1, strings.Count(errOut.String(), "\n"), errOut.String())
		require.Empty(t, out.String())
	}
}

// TestExplain_Dumps_TextsOfTheDocumentation runs the commands of docs/operations.md.
func TestExplain_Dumps_TextsOfTheDocumentation(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	texts, err := filepath.Glob("examples/internal/explain/testdata/*.txt")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(texts), 20)
	for _, file := range texts {
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		args := []string{"tree", "-n", "shop", "-f", strings.Replace(file, ".tree.txt", ".yaml", 1)}
		if !strings.HasSuffix(file, ".tree.txt") {
			line, text, _ := strings.Cut(string(want), "\n")
			args, want = strings.Fields(strings.TrimPrefix(line, "$ kubectl machines ")), []byte(text)
		}
		status, text := run(t, args...)
		require.Zero(t, status, text)
		require.Equal(t, string(want), text, args)
	}
}

func TestExplain_Live_OnlyWhatExists(t *testing.T) {
	status, text := run(t, "tree")
	require.Zero(t, status, text)
	require.Contains(t, text, "machinedeployment/workers")
	status, text = run(t, "explain", "node/node-1")
	require.Zero(t, status, text)
	require.Contains(t, text, "no machine has this Node")
	for _, args := range [][]string{
		{"explain", "machine/none"}, {"explain", "pod/x"}, {"explain", "machine/x", "--at", "noon"}, {"tree", "--at", "2026-03-01T12:00:00Z"}, {"tree", "-f", "none.yaml"},
	} {
		status, text = run(t, args...)
		require.NotZero(t, status, args)
		require.True(t, strings.HasPrefix(text, "error: "), text)
	}
}
