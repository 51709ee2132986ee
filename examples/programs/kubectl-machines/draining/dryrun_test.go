// SPDX-License-Identifier: Apache-2.0

package draining_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/draining"
)

var update = flag.Bool("update", false, "write testdata")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// dryRun runs a dry run in the demo cluster at noon.
func dryRun(t *testing.T, args ...string) (status int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	c := clocktesting.NewFakeClock(noon)
	demo, err := newDemoCluster(c)
	require.NoError(t, err)
	in := env(&o, &e, demo.client)
	in.Clock = c
	status = in.Run(t.Context(), draining.New(in), append([]string{"node-1", "--dry-run"}, args...))
	return status, o.String(), e.String()
}

func TestDryRun_WholeCluster_PrintsThePlan(t *testing.T) {
	all := []string{"--force", "--delete-emptydir-data", "--wait-for-volumes", "--force-after=10m", "--timeout=30m"}
	cases := []struct {
		name   string
		args   []string
		status int
	}{
		{"cautious", nil, cli.Refused},
		{"all", all, cli.Done},
		{"all-json", append([]string{"-o=json"}, all...), cli.Done},
		{"all-yaml", append([]string{"-o=yaml"}, all...), cli.Done},
		{"one", []string{"--pod-selector=app=web", "-o", "table"}, cli.Done},
		{"at-once", []string{"--pod-selector=app=web", "--disable-eviction", "--grace-period=5", "-o=table"}, cli.Done},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			status, out, errOut := dryRun(t, c.args...)
			require.Equal(t, c.status, status, errOut)
			golden(t, c.name+".golden", out+errOut)
			again, same, _ := dryRun(t, c.args...)
			require.Equal(t, status, again)
			require.Equal(t, out, same, "the same cluster, the same plan")
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path) //nolint:gosec // a name of this test
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), got))
}

func TestOutput_JSONAndYAML_Equal(t *testing.T) {
	_, text, _ := dryRun(t, "-o", "json")
	_, other, _ := dryRun(t, "-o", "yaml")
	fromYAML, err := yaml.YAMLToJSON([]byte(other))
	require.NoError(t, err)
	require.JSONEq(t, text, string(fromYAML))
	var d struct {
		drain.Decision
		Feasible  bool
		Obstacles []string
	}
	require.NoError(t, json.Unmarshal([]byte(text), &d))
	require.Equal(t, "node-1", d.Node)
	require.False(t, d.Feasible)
	require.Equal(t, []string{"pod/shop/debug", "pod/shop/search-a"}, d.Obstacles)
}

func TestDryRun_AnyFormat_NoWrites(t *testing.T) {
	for _, format := range []string{"table", "json", "yaml"} {
		r := newHarness(t, append(blocked(), testPod("debug", "node-1", unmanaged))...)
		require.Equal(t, cli.Refused, r.run(t.Context(), "node-1", "--dry-run", "-o", format))
		require.Equal(t, cli.Done, r.run(t.Context(), "node/node-1", "--dry-run=client", "--force", "-o", format), r.errOut)
		require.Empty(t, r.writes())
	}
}

func TestDryRun_BudgetExhausted_NamesBudgetAndNextStep(t *testing.T) {
	r := newHarness(t, blocked()...)
	require.Equal(t, cli.Done, r.run(t.Context(), "node-1", "--dry-run", "--force-after=10m"), r.errOut)
	r.out.line(t, "web-1", "wait", "DisruptionBudget", "budget shop/web-budget allows 0", "deleted at")
	r.out.line(t, "shop/web-budget", "allows 0", "1 of 2 healthy", "1 desired")
}

func TestDryRun_Server_PrintsTheServersResponses(t *testing.T) {
	r := newHarness(t, testPod("web-1", "node-1"), testPod("job", "node-1"))
	r.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "pods/eviction", Name: "job"})
	require.Equal(t, cli.Refused, r.run(t.Context(), "node-1", "--dry-run=server"))
	r.out.line(t, "web-1", "evict", "Evictable")
	r.out.line(t, "job", "Forbidden")
	r.errOut.line(t, "shop/job: Forbidden")
	requests := 0
	for _, a := range r.client.Actions() {
		if a.GetVerb() == "create" && a.GetSubresource() == "eviction" {
			requests++
		}
	}
	require.Equal(t, 2, requests)
	require.Empty(t, r.writes())

	r.cluster.Inject(draintest.Fault{Kind: draintest.Forbidden, Resource: "nodes", Verb: "patch"})
	require.Equal(t, cli.Failed, r.run(t.Context(), "node-1", "--dry-run=server"))
	r.errOut.line(t, "node node-1", "cordon", "forbidden")
}

func TestDryRun_SeveralNodes_OneDocumentEach(t *testing.T) {
	r := newHarness(t, testPod("web-1", "node-1"), testPod("web-2", "node-2"))
	require.Equal(t, cli.Done, r.run(t.Context(), "-l", "zone=a", "--dry-run", "-o", "json"), r.errOut)
	var nodes []string
	for decoder := json.NewDecoder(strings.NewReader(r.out.String())); decoder.More(); {
		var d drain.Decision
		require.NoError(t, decoder.Decode(&d))
		nodes = append(nodes, d.Node)
	}
	require.Equal(t, []string{"node-1", "node-2"}, nodes)
}
