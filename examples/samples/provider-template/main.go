// SPDX-License-Identifier: Apache-2.0

// Machine-controller-acme creates and deletes the machines of a cluster in the Acme cloud.
package main

import (
	"fmt"
	"os"

	"github.com/machinist-dev/machinist/examples/programs/manager/app"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
	"github.com/spf13/pflag"

	"example.com/machine-controller-acme/acme"
)

func main() {
	s := options.NewMCServer()
	s.AddFlags(pflag.CommandLine)
	pflag.Parse()
	if err := app.Run(s, acme.NewDriver()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
