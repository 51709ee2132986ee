// SPDX-License-Identifier: Apache-2.0

// Mutants breaks the behavior that rows of docs/parity.md describe, one row at a time, and
// demands that the test of the row fails:
//
//	go run ./cmd/mutants            # in the folder tools: all of them
//	go run ./cmd/mutants DM-02 DS-1
//
// A mutant is a file testdata/mutants/ROW.txtar in the folder of the code that it changes:
//
//	What goes wrong.
//	file: create.go
//	test: machine TestName
//	-- old --
//	lines that occur exactly once in the file
//	-- new --
//	lines that take their place
//
// The file is in the folder that holds testdata, the test in the folder that is named. Files
// of the repository are not changed: the compiler gets another text for one of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"
	"time"
)

func main() {
	root := flag.String("C", "..", "the repository")
	verbose := flag.Bool("v", false, "print the output of each test")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *root, flag.Args(), *verbose)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run plays the mutants of the rows, or all of them, and prints a table.
func run(ctx context.Context, root string, rows []string, verbose bool) error {
	all, err := readMutants(root)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "ROW\tFILE\tTEST\tRESULT\tTIME")
	bad, played := 0, 0
	for _, m := range all {
		if len(rows) > 0 && !slices.Contains(rows, m.Row) && !slices.Contains(rows, m.Name) {
			continue
		}
		begin := time.Now()
		result, output := m.play(ctx, root)
		if result != killed {
			bad++
		}
		if verbose {
			fmt.Fprintf(os.Stderr, "%s", output)
		}
		played++
		fmt.Fprintf(table, "%s\t%s\t%s %s\t%s\t%.1fs\n", m.Name, m.path(), m.Package, m.Test, result, time.Since(begin).Seconds())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch {
	case played == 0:
		return fmt.Errorf("no mutant of %v", rows)
	case bad > 0:
		return fmt.Errorf("%d of %d mutants are not killed", bad, played)
	}
	fmt.Printf("%d mutants killed\n", played)
	return nil
}
