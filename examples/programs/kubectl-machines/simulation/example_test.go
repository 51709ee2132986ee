// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"fmt"
	"os"

	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/simulation"
)

// The machines of the new class never become available, and a user rolls back after an hour.
func ExampleNew() {
	e := cli.New(os.Stdin, os.Stdout, os.Stderr)
	status := e.Run(context.Background(), simulation.New(e), []string{"-f", "testdata/pool.yaml", "--never", "--at=1h=rollback", "-o=summary"})
	fmt.Println("status", status)
	// Output:
	// pool: 5 machines, class small -> small-next (assumed: no --class or --to), RollingUpdate (surge 2, unavailable 1)
	// complete after 1h4m
	// 4 machines created, 4 deleted
	// maximum of all machines: reached; minimum of available machines: reached
	// status 0
}
