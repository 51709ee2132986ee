// SPDX-License-Identifier: Apache-2.0

// Command generate writes everything in the repository that is written by a
// program: the deep copies and CustomResourceDefinitions of machine/v1alpha1, the
// whole of machine/client, and the names of examples/mcm.
//
//	go run ./tools/cmd/generate          # write what has changed, delete what is stale
//	go run ./tools/cmd/generate -check   # write nothing, exit 1 naming what is stale
//
// The generators run in a scratch module which holds the hand-written types and
// nothing else. So a broken or half-written generated file cannot disturb them,
// and both modes differ only in what is done with the result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "write nothing; exit 1 if a generated file is not current")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *check)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run writes each part into a scratch directory and compares it with the repository, or makes the
// repository the same.
func run(ctx context.Context, check bool) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	stale := 0
	for _, p := range parts {
		changes, err := p.changes(ctx, root)
		if err != nil {
			return err
		}
		if !check {
			if err := apply(root, changes); err != nil {
				return err
			}
			continue
		}
		for _, c := range changes {
			fmt.Fprintln(os.Stderr, c)
		}
		stale += len(changes)
	}
	if stale > 0 {
		return fmt.Errorf("%d generated files are not current; run make generate", stale)
	}
	return nil
}

// changes returns what has to change in the repository.
func (p part) changes(ctx context.Context, root string) ([]change, error) {
	scratch, err := os.MkdirTemp("", "machinist-generate-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if err := p.write(ctx, root, scratch); err != nil {
		return nil, err
	}
	return p.compare(root, scratch)
}

// findRoot walks up from the working directory to the root of the SDK module.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if isRoot(dir) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside the repository: no go.mod of " + module + " above the working directory")
		}
		dir = parent
	}
}
