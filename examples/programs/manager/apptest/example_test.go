// SPDX-License-Identifier: Apache-2.0

package apptest_test

import (
	"fmt"

	"github.com/machinist-dev/machinist/examples/programs/manager/apptest"
)

// The names of the subtests of Run.
func ExampleChecks() {
	for _, check := range apptest.Checks() {
		fmt.Println(check.Name)
	}
	// Output:
	// machine creation adds one Node
	// machine deletion removes its Node
	// deletion of a missing machine changes nothing
	// deployment of 0 machines is scaled to 1
	// deployment is scaled to 6
	// deployment is scaled to 2, its set is frozen and unfrozen
	// deployment is updated to the next class with 4 machines
	// deployment deletion leaves the first Nodes
	// no orphaned resources are left
}
