// SPDX-License-Identifier: Apache-2.0

// Release says what stands in the way of a release, and prints its steps or makes them:
//
//	go run ./cmd/release v0.2.0       # in the folder tools
//	go run ./cmd/release -do v0.2.0
//
// It pushes nothing.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/machinist-dev/machinist/tools/release"
)

func main() {
	do := flag.Bool("do", false, "make the steps instead of printing them")
	root := flag.String("C", "..", "the repository")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "release [-do] vX.Y.Z")
		os.Exit(2)
	}
	if err := run(*root, flag.Arg(0), *do); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root, version string, do bool) error {
	if err := release.Check(root, version); err != nil {
		return err
	}
	steps := release.Steps(version)
	for i, s := range steps {
		fmt.Printf("%d. %s\n", i+1, s.Text)
	}
	if do {
		if err := release.Do(root, steps); err != nil {
			return err
		}
	}
	fmt.Printf("\nthen:\n%s\n", release.Last(version))
	return nil
}
