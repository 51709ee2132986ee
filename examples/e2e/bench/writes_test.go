// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

func TestWrites_Requests_SuccessfulOnesCounted(t *testing.T) {
	of := writesOf([]controlplane.Request{
		{Verb: "create", Resource: "nodes", Code: 201},
		{Verb: "create", Resource: "nodes", Code: 409},
		{Verb: "patch", Resource: "nodes", Subresource: "status", Code: 200},
		{Verb: "patch", Resource: "nodes", Subresource: "status", Code: 200},
		{Verb: "get", Resource: "nodes", Code: 200},
		{Verb: "watch", Resource: "nodes", Code: 200},
		{Verb: "post", Code: 200},
	})
	require.Equal(t, writes{{"nodes", "", "create"}: 1, {"nodes", "status", "patch"}: 2}, of)
	require.Equal(t, 3, of.sum())
	require.Equal(t, "patch nodes/status", of.inOrder()[1].String())
}

func TestWrites_Shares_AddUpToTheWhole(t *testing.T) {
	create, update, status, remove := write{"machines", "", "create"}, write{"machines", "", "update"}, write{"machines", "status", "update"}, write{"machines", "", "delete"}
	for machines := 1; machines < 40; machines++ {
		of, sum := writes{create: machines, update: 3*machines + 1, status: 1, remove: 7}, writes{}
		for i := range machines {
			for w, n := range of.share(i, machines) {
				sum[w] += n
				require.InDelta(t, float64(of[w])/float64(machines), n, 1)
			}
		}
		require.Equal(t, of, sum)
		require.Equal(t, []write{create, update, status, remove}, of.inOrder())
	}
}
