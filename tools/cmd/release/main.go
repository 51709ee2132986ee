// SPDX-License-Identifier: Apache-2.0

// Release says what stands in the way of a release, and prints its steps or makes them:
//
//	go run ./cmd/release v0.2.0             # in the folder tools
//	go run ./cmd/release -do v0.2.0
//	go run ./cmd/release -proxy FOLDER v0.2.0   # nothing but a module proxy with what is here
//
// It pushes nothing.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/machinist-dev/machinist/tools/release"
)

func main() {
	do := flag.Bool("do", false, "make the steps instead of printing them")
	proxy := flag.String("proxy", "", "write a module proxy into this folder, and check nothing")
	root := flag.String("C", "..", "the repository")
	flag.Parse()
	if flag.NArg() != 1 || *do && *proxy != "" {
		fmt.Fprintln(os.Stderr, "release [-do|-proxy FOLDER] vX.Y.Z")
		os.Exit(2)
	}
	if err := run(*root, *proxy, flag.Arg(0), *do); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root, proxy, version string, do bool) error {
	if proxy != "" {
		return release.Proxy(root, proxy, version)
	}
	if err := release.Check(root, version); err != nil {
		return err
	}
	steps := release.Steps(version, time.Now())
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
