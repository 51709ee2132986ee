// SPDX-License-Identifier: Apache-2.0

// Machine-controller-manager runs the controllers of machine sets and machine deployments. It
// needs no driver: the machine-controller of a provider creates and deletes the VMs.
//
//	go run ./examples/programs/machine-controller-manager --target-kubeconfig=FILE
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/machinist-dev/machinist/examples/programs/manager/app"
	"github.com/machinist-dev/machinist/examples/programs/manager/options"
)

func main() {
	s := options.NewMCMServer()
	s.AddFlags(pflag.CommandLine)
	pflag.Parse()
	if err := app.Run(s, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
