// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/drain/command"
)

// A dry run in the demo cluster, for programs.
func ExampleCommand_Run() {
	var out, errOut bytes.Buffer
	c := command.Command{Out: &out, ErrOut: &errOut}
	status := c.Run(context.Background(), []string{"node-1", "--embedded", "--dry-run", "--output=json"})
	var d drain.Decision
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		fmt.Println(err)
	}
	fmt.Println("refused:", status == command.Refused)
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
