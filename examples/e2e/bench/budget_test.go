// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
)

// request returns a request of a kind.
func request(kind write, name string, code int) controlplane.Request {
	return controlplane.Request{Resource: kind.resource, Subresource: kind.subresource, Verb: kind.verb, Name: name, Code: code}
}

// requests returns n requests of a kind.
func requests(n int, kind write) (all []controlplane.Request) {
	for range n {
		all = append(all, request(kind, "", 200))
	}
	return all
}

func TestBudget_Lines_EachWithReasonAndOnce(t *testing.T) {
	seen := map[write]bool{}
	for _, b := range budgets {
		require.NotEmpty(t, b.why, b.of)
		require.False(t, seen[b.of], "%s has two lines", b.of)
		require.NotEqual(t, "watch", b.of.verb)
		seen[b.of] = true
		require.NotEqual(t, [3]atMost{}, [3]atMost{b.create, b.roll, b.scale}, "%s is never allowed", b.of)
		require.Equal(t, [4]atMost{b.create, b.roll, b.scale, {}}, [4]atMost{b.in(creation), b.in(rollout), b.in(toZero), b.in(deletion)})
	}
}

func TestBudget_Requests_EachAboveIsSaid(t *testing.T) {
	create, status, other := write{"machines", "", "create"}, write{"machines", "status", "update"}, write{"pods", "", "create"}
	table := []budget{{of: create, create: atMost{1, 2}, why: "because"}, {of: status, create: atMost{0.5, 0}, roll: atMost{1, 0}, why: "why not"}}
	tests := map[string]struct {
		phase    string
		requests []controlplane.Request
		over     []string
		prints   string
	}{
		"nothing":                  {creation, nil, nil, `machines/status +0\.00 +0\.50 +0 +5 +0 +why not`},
		"the most":                 {creation, append(requests(12, create), requests(5, status)...), nil, `create machines +1\.20 +1\.00 +12 +12 +0 +because`},
		"one more":                 {creation, requests(13, create), []string{"create: 13 of create machines, at most 12 are allowed"}, `! create machines`},
		"in the wrong phase":       {rollout, requests(1, create), []string{"roll: 1 of create machines, at most 0 are allowed"}, `! create machines`},
		"in a phase without lines": {deletion, requests(1, status), []string{"delete: 1 of update machines/status, at most 0 are allowed"}, ``},
		"another kind":             {creation, requests(1, other), []string{"create: 1 of create pods, at most 0 are allowed"}, `! create pods .*no line of the budget allows it`},
		"watches":                  {creation, requests(9, write{"machines", "", "watch"}), nil, `0\.00 requests for each machine`},
		"an Event of a machine": {
			creation, []controlplane.Request{request(write{"events", "", "create"}, "a.b.18c1", 201)},
			[]string{"create: 1 of create events of machines, at most 0 are allowed"}, ``,
		},
		"an Event of another": {
			creation, []controlplane.Request{request(write{"events", "", "create"}, "a.18c1", 201)},
			[]string{"create: 1 of create events, at most 0 are allowed"}, ``,
		},
		"conflicts": {
			creation, []controlplane.Request{request(create, "", 409), request(status, "", 409)}, nil, `0\.20 requests for each machine, 1 conflicts \(50\.00 %\)`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			p := phase{name: test.phase, machines: 10, requests: test.requests}
			require.Equal(t, test.over, p.overspent(table, map[string]bool{"a.b": true}))
			p.printSpending(&out, table, map[string]bool{"a.b": true})
			require.Regexp(t, test.prints, out.String())
		})
	}
}

// TestBudget_SmallFleet_Kept plays the phases with a manager and a control plane. A write that is new for
// each machine is above every line.
func TestBudget_SmallFleet_Kept(t *testing.T) {
	const size = 20
	for _, b := range budgets {
		for _, most := range []atMost{b.create, b.roll, b.scale} {
			if b.of.resource == "machines" || b.of.resource == "nodes" || b.of.resource == "secrets" || b.of.resource == "pods" {
				require.Less(t, most.once, size, "%s: one more for each machine would not be seen", b.of)
			}
		}
	}
	c, err := controlplane.Start(t.Context(), controlplane.Options{NodeMonitorGracePeriod: settings{}.nodeGrace()})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Stop()) }()
	cluster, err := env.Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, cluster.Close()) }()
	s, err := parse(nil, &bytes.Buffer{})
	require.NoError(t, err)
	s.timeout, s.settling = 5*time.Minute, 3*time.Second
	p := fleetOf(size)
	for i := range p.phases {
		p.phases[i].idles = false // a minute
	}
	r := result{title: p.title, planned: p.lives(), budgeted: p.budgeted}
	_, err = r.play(t.Context(), cluster, s, p)
	require.NoError(t, err)
	require.Len(t, r.phases, 3)
	for _, p := range r.phases {
		var out bytes.Buffer
		p.printSpending(&out, budgets, r.names)
		require.Empty(t, p.overspent(budgets, r.names), out.String())
		require.GreaterOrEqual(t, len(p.requests), 7*size, "the audit log has missed requests")
	}
}
