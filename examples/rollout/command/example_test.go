// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"context"
	"fmt"
	"os"

	"github.com/machinist-dev/machinist/examples/rollout/command"
)

// The machines of the new class never become available, and a user rolls back after an hour.
func ExampleCommand_Run() {
	c := command.Command{Out: os.Stdout, ErrOut: os.Stderr}
	status := c.Run(context.Background(), []string{"-f", "testdata/pool.yaml", "--never", "--at=1h=rollback", "-o=summary"})
	fmt.Println("status", status)
	// Output:
	// pool: 5 machines, class small -> small-next (assumed: no --class or --to), RollingUpdate (surge 2, unavailable 1)
	// complete after 1h4m
	// 4 machines created, 4 deleted
	// maximum of all machines: reached; minimum of available machines: reached
	// status 0
}
