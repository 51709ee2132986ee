// SPDX-License-Identifier: Apache-2.0

// Machine-controller runs the controllers of machines, classes and orphans over a simulated
// cloud. The machine-controller of a provider is this program with another driver.
//
//	go run ./examples/programs/machine-controller --simulated-cloud=URL --target-kubeconfig=FILE
//
// In a cluster that serves no sets and deployments it runs the machines alone. With them, it
// needs a machine-controller-manager beside it.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/machinist-dev/machinist/examples/programs/manager/app"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
)

func main() {
	s := options.NewMCServer()
	s.AddFlags(pflag.CommandLine)
	address := pflag.String("simulated-cloud", "", "URL of the simulated cloud; required")
	pflag.Parse()
	if err := run(s, *address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(s *options.MCServer, address string) error {
	driver, err := cloud.Dial(address)
	if err != nil {
		return fmt.Errorf("--simulated-cloud: %w", err)
	}
	defer driver.Close()
	return app.Run(s, driver)
}
