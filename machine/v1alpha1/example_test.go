// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// The CustomResourceDefinitions are part of the package. Apply them with any client.
func ExampleCRDs() {
	for _, crd := range v1alpha1.CRDs() {
		fmt.Println(crd.Name, len(crd.YAML) > 0)
	}
	// Output:
	// machineclasses.machine.sapcloud.io true
	// machinedeployments.machine.sapcloud.io true
	// machines.machine.sapcloud.io true
	// machinesets.machine.sapcloud.io true
}
