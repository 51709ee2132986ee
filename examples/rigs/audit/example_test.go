// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"errors"
	"fmt"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
)

// A VM appears in the cloud that no Machine object accounts for.
func ExampleCheck() {
	history := drivertest.History{{Seq: 1, Kind: drivertest.VMCreated, VM: drivertest.VM{ProviderID: "vm-1", Machine: "m", UID: "5d1f"}}}
	figures, err := audit.Check(audit.Log{}, history, drivertest.Snapshot{}, audit.Options{})
	fmt.Println(figures)
	var violation audit.Violation
	if errors.As(err, &violation) {
		fmt.Printf("%s: %s\n", violation.Bound, violation)
	}
	// Output:
	// 0 machines, at most 0 and 1 VMs at a time, 0 changes seen
	// Guarded: VM vm-1 of machine m was created without a Machine with finalizer
}
