// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/machinetest"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// environment returns a cluster that has some objects.
func environment(t *testing.T, out io.Writer) (*cli.Env, versioned.Interface) {
	t.Helper()
	cluster, machines := machinetest.New(draintest.Options{})
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	require.NoError(t, cluster.Add(&v1alpha1.MachineDeployment{ObjectMeta: named("workers")}, &v1alpha1.MachineSet{ObjectMeta: named("workers-1")},
		&v1alpha1.Machine{ObjectMeta: named("workers-1-a")}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}))
	e := cli.New(nil, out, out)
	e.Connect = func() (cli.Clients, error) {
		return cli.Clients{Namespace: "shop", Clients: explain.Clients{Machines: machines, Control: cluster.Client(), Target: cluster.Client()}}, nil
	}
	return e, machines
}

// run runs the program with a cluster.
func run(t *testing.T, args ...string) (status int, text string) {
	t.Helper()
	var out bytes.Buffer
	e, _ := environment(t, &out)
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

// TestExplain_Dumps_TextsOfTheDocumentation runs the commands of docs/operations.md, and those with -o json.
func TestExplain_Dumps_TextsOfTheDocumentation(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", ".."))
	const folder = "examples/internal/explain/testdata/"
	texts, err := filepath.Glob(folder + "*.txt")
	require.NoError(t, err)
	documents, err := filepath.Glob(folder + "*.json")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(texts), 20)
	require.Len(t, documents, 4)
	for _, file := range append(texts, documents...) {
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		name, kind, _ := strings.Cut(filepath.Base(file), ".")
		explained, err := os.ReadFile(folder + name + ".txt")
		require.NoError(t, err)
		line, text, _ := strings.Cut(string(explained), "\n")
		args := strings.Fields(strings.TrimPrefix(line, "$ kubectl machines "))
		switch kind {
		case "txt":
			want = []byte(text)
		case "json":
			args = append(args, "-n", "shop", "-o", "json")
		default:
			args = []string{"tree", "-n", "shop", "-f", folder + name + ".yaml", "-o", strings.TrimPrefix(strings.TrimSuffix(kind, "txt"), "tree.")}
		}
		status, text := run(t, args...)
		require.Zero(t, status, text)
		require.Equal(t, string(want), text, args)
	}
}

const budget = "../../internal/explain/testdata/budget.yaml"

func TestTree_Formats_OfTheObjects(t *testing.T) {
	for format, want := range map[string]string{
		"name": "machinedeployment.machine.sapcloud.io/workers\nmachineset.machine.sapcloud.io/workers-6d9bc\n" +
			"machine.machine.sapcloud.io/workers-6d9bc-m755q\nnode/workers-6d9bc-m755q\npod/web-n9mpb\n",
		"jsonpath={.objects[*].children[*].children[*].waitsFor[*].helps}":       "Another pod of the PodDisruptionBudget has to become healthy.",
		"go-template={{range .objects}}{{.kind}} {{.replicas.updated}}\n{{end}}": "MachineDeployment 1\n",
	} {
		status, text := run(t, "tree", "-f", budget, "-o", format)
		require.Zero(t, status, text)
		require.Equal(t, want, text)
	}
	status, text := run(t, "explain", "machine.machine.sapcloud.io/workers-6d9bc-m755q", "-f", budget, "-o=yaml")
	require.Zero(t, status, text)
	require.Contains(t, text, "\n  waitsFor:\n  - helps: Another pod of the PodDisruptionBudget has to become healthy.\n")
	status, text = run(t, "tree", "-f", budget, "-o=wide")
	require.Equal(t, cli.Refused, status)
	require.Contains(t, text, `unable to match a printer suitable for the output format "wide"`)
}

func TestExplain_ManagerFlags_SetTheLimits(t *testing.T) {
	explain := func(flags string) (int, string) {
		return run(t, "explain", "machine/workers-6d9bc-m755q", "-f", budget, "--manager-flags="+flags)
	}
	status, text := explain("")
	require.Zero(t, status, text)
	require.Contains(t, text, "deleted at 2000-01-01T02:02:00Z")
	require.Contains(t, text, "\nnote        with the default limits of the manager")
	status, text = explain("--namespace=shop --machine-drain-timeout=1h -v=2")
	require.Zero(t, status, text)
	require.Contains(t, text, "deleted at 2000-01-01T01:02:00Z")
	require.NotContains(t, text, "\nnote ")
	for flags, says := range map[string]string{"--machine-drain-timeout=-1h": "-1h0m0s is negative", "--drain=1h": "unknown flag: --drain"} {
		status, text = explain(flags)
		require.Equal(t, cli.Refused, status)
		require.Contains(t, text, "error: --manager-flags: ")
		require.Contains(t, text, says)
	}
}

// TestTree_Watch_PrintsWhatDiffers changes a machine while the command watches, and interrupts it.
func TestTree_Watch_PrintsWhatDiffers(t *testing.T) {
	for format, separator := range map[string]string{"": "\n\n", "json": "\n}\n{\n", "yaml": "\n---\n"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			var out bytes.Buffer
			e, machines := environment(t, &out)
			status := make(chan int)
			go func() { status <- e.Run(ctx, root(e), []string{"tree", "-w", "-o", format}) }() //nolint:contextcheck // of a completion
			time.Sleep(time.Minute)
			synctest.Wait()
			first := out.String()
			require.NotContains(t, first, separator, "only ages differ")
			_, err := machines.MachineV1alpha1().Machines("shop").Patch(t.Context(), "workers-1-a", types.MergePatchType,
				[]byte(`{"status":{"currentStatus":{"phase":"Running"}}}`), metav1.PatchOptions{}, "status")
			require.NoError(t, err)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			interrupt()
			require.Equal(t, cli.Done, <-status)
			require.Equal(t, 1, strings.Count(out.String(), separator), out.String())
			require.NotContains(t, first, "Running")
			require.Contains(t, out.String(), "Running")
		})
	}
	status, text := run(t, "tree", "-w", "-f", budget)
	require.Equal(t, cli.Refused, status)
	require.Equal(t, "error: --watch needs a cluster, and --filename is a dump\n", text)
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
