// SPDX-License-Identifier: Apache-2.0

package draining_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/draining"
)

// A dry run, for programs.
func ExampleNew() {
	demo, err := newDemoCluster(clocktesting.NewFakeClock(time.Now()))
	if err != nil {
		fmt.Println(err)
		return
	}
	var out, errOut bytes.Buffer
	e := cli.New(nil, &out, &errOut)
	e.Connect = func() (cli.Clients, error) { return cli.Clients{Clients: explain.Clients{Target: demo.client}}, nil }
	status := e.Run(context.Background(), draining.New(e), []string{"node-1", "--dry-run", "--output=json"})
	var d drain.Decision
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		fmt.Println(err)
	}
	fmt.Println("refused:", status == cli.Refused)
	for _, row := range d.Rows {
		fmt.Println(row.Action, row.Namespace+"/"+row.Name, row.Reason)
	}
	// Output:
	// refused: true
	// ignore kube-system/agent-node-1 Stays
	// ignore kube-system/proxy-node-1 Stays
	// block shop/debug Unmanaged
	// evict shop/ledger-a Evictable
	// block shop/search-a LocalStorage
	// evict shop/web-a Evictable
	// wait shop/web-b DisruptionBudget
}
