// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/programs/manager/app"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
)

// The main function of a provider's machine controller, but for its driver.
func ExampleRun() {
	os.Args = []string{"machine-controller", "--port=0", "--target-kubeconfig=none"} // for the example

	s := options.NewMCServer()
	s.AddFlags(pflag.CommandLine)
	pflag.Parse()
	if err := app.Run(s, drivertest.NewCloud(drivertest.CloudOptions{})); err != nil {
		fmt.Println(err) // and os.Exit(1)
	}
	// Output:
	// invalid flag: --control-kubeconfig: required if --target-kubeconfig is "none"
	// invalid flag: --port: 0 is not between 1 and 65535
}
