// SPDX-License-Identifier: Apache-2.0

package nodetools_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/nodeops"
)

// roleOf returns the role of rights such as "create pods/eviction".
func roleOf(rights ...string) (role rbacv1.ClusterRole) {
	for _, right := range rights {
		verb, resource, _ := strings.Cut(right, " ")
		role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{""}, Resources: []string{resource}})
	}
	return role
}

// TestRights_EachCall_WithItsRightsAndWithoutOne makes the calls of docs/drain.md with exactly the rights that it
// requires, and then without each of them.
func TestRights_EachCall_WithItsRightsAndWithoutOne(t *testing.T) { //nolint:tparallel // its rows drain the same Nodes
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "drain.md"))
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(page), "## Rights\n")
	table, _, _ = strings.Cut(table, "\n## ")
	w := newWorld(t, 2)
	w.deploy("web", 2, 0)
	drains := func(policy drain.Policy) func(context.Context, runner.Executor, string) error {
		return func(ctx context.Context, e runner.Executor, node string) error {
			_, err := e.Run(ctx, node, policy)
			return err
		}
	}
	owned := nodeops.Cordon{Owner: "rights"}
	eviction := []string{"get nodes", "list pods", "patch nodes", "create pods/eviction"}
	for i, c := range []struct {
		name   string
		rights []string
		call   func(ctx context.Context, e runner.Executor, node string) error
	}{
		{"Run", eviction, drains(drain.Policy{})},
		{"Run with an owner", eviction, drains(drain.Policy{Cordon: owned})},
		{"Run with deletions", []string{"get nodes", "list pods", "patch nodes", "delete pods"}, drains(drain.Policy{Ladder: drain.Ladder{{Action: drain.IgnoreBudgets}}})},
		{"Uncordon", []string{"get nodes", "patch nodes"}, func(ctx context.Context, e runner.Executor, node string) error {
			_ = drains(drain.Policy{Cordon: owned})(ctx, runner.Executor{Client: runner.NewClient(w.client)}, node)
			return e.Uncordon(ctx, node, owned.Owner)
		}},
	} {
		for missing := range len(c.rights) + 1 {
			rights := slices.Clone(c.rights)
			name, lost := c.name, ""
			if missing > 0 {
				lost = rights[missing-1]
				rights = slices.Delete(rights, missing-1, missing)
				name += " without " + lost
			}
			t.Run(name, func(t *testing.T) {
				w.until("the pods are available", func() bool { return w.available("web") == 2 })
				node := w.nodeOf("web")
				client, err := kubernetes.NewForConfig(w.as(fmt.Sprintf("r-%d-%d", i, missing), roleOf(rights...)))
				require.NoError(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err = c.call(ctx, runner.Executor{Client: runner.NewClient(client)}, node)
				if lost == "" {
					require.NoError(t, err)
				} else {
					var refused *runner.RefusedError
					require.ErrorAs(t, err, &refused)
					require.Equal(t, lost, refused.Verb+" "+refused.Resource)
					require.Contains(t, table, "`"+lost+"`", "docs/drain.md")
				}
				admin := runner.Executor{Client: runner.NewClient(w.client)}
				require.NoError(t, admin.Uncordon(t.Context(), node, owned.Owner))
				require.NoError(t, admin.Uncordon(t.Context(), node, ""))
			})
		}
	}
}
