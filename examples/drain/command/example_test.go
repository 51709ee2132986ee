// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"fmt"
	"os"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/machinist-dev/machinist/examples/drain/command"
)

// A dry run in the town in memory: what would go now, and what would wait.
func ExampleCommand_Run() {
	d := command.Command{
		Out: os.Stdout, ErrOut: os.Stdout, Zone: time.UTC,
		Clock: clocktesting.NewFakeClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
	}
	status := d.Run(context.Background(), []string{"--embedded", "--dry-run", "--pod-selector=app in (web,debug)"})
	fmt.Println(status == command.Refused)
	// Output:
	// node node-1, dry run: nothing is changed
	// first: cordon node node-1
	//
	// NAMESPACE    POD           VERDICT  REASON            NEXT  MESSAGE
	// kube-system  agent-node-1  ignore   DaemonSetPod      -
	// kube-system  proxy-node-1  ignore   MirrorPod         -
	// shop         debug         block    Unmanaged         -     no controller would create it again
	// shop         ledger-a      ignore   Rule              -     not in --pod-selector
	// shop         search-a      ignore   Rule              -     not in --pod-selector
	// shop         web-a         evict    Evictable         -
	// shop         web-b         wait     DisruptionBudget  -     budget shop/web allows 1 disruption: 3 of 3 healthy, 2 desired; other pods take that
	//
	// 0 of 3 pods gone; the node is not fenced yet; 1 unmanaged since 2026-03-01T12:00:00Z: shop/debug; 1 waits for budget shop/web (allows 1, 3 of 3 healthy, 2 desired) since 2026-03-01T12:00:00Z: shop/web-b; 1 asked to go (evict): shop/web-a
	// drain: node node-1 is not drained, and nothing was changed: shop/debug: Unmanaged: no controller would create it again; --force evicts it
	// true
}
