// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/machinist-dev/machinist/examples/drain/command"
)

// A dry run in the town in memory, for programs: can node-1 be drained, and if not, why?
func ExampleCommand_Run() {
	var out, errOut bytes.Buffer
	d := command.Command{Out: &out, ErrOut: &errOut}
	status := d.Run(context.Background(), []string{"node-1", "--embedded", "--dry-run", "--output=json"})
	var plan command.Document
	if err := json.Unmarshal(out.Bytes(), &plan); err != nil {
		fmt.Println(err)
	}
	fmt.Println("refused:", status == command.Refused, "feasible:", plan.Feasible)
	for _, p := range plan.Pods {
		fmt.Println(p.Action, p.Namespace+"/"+p.Name, p.Reason)
	}
	fmt.Println("obstacles:", plan.Obstacles)
	// Output:
	// refused: true feasible: false
	// ignore kube-system/agent-node-1 Stays
	// ignore kube-system/proxy-node-1 Stays
	// block shop/debug Unmanaged
	// evict shop/ledger-a Evictable
	// block shop/search-a LocalStorage
	// evict shop/web-a Evictable
	// wait shop/web-b DisruptionBudget
	// obstacles: [shop/debug shop/search-a]
}
