// SPDX-License-Identifier: Apache-2.0

// Words checks the language of the Go and Markdown files of this repository:
//
//	go run ./cmd/words       # in the folder tools
//
// It prints each finding as file:line: text and exits with 1 if there is any. It finds
// words for a person where a noun belongs, phrases of an old dialect, doc comments that do not
// begin with the name of their subject, identifiers in British spelling, and tests named after a
// number.
// Folders named testdata and generated files are left out.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := flag.String("C", "..", "the repository")
	flag.Parse()
	findings, err := check(context.Background(), *root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(2)
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		fmt.Fprintf(os.Stderr, "words: %d findings\n", len(findings))
		os.Exit(1)
	}
}

// check returns the findings in the files of the repository, sorted by path.
func check(ctx context.Context, root string) ([]string, error) {
	files, err := files(ctx, root)
	if err != nil {
		return nil, err
	}
	var findings []string
	used := map[string]int{}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		found, err := checkFile(name, text)
		if err != nil {
			return nil, err
		}
		findings = append(append(findings, found...), dialect(name, string(text), used)...)
	}
	for _, path := range slices.Sorted(maps.Keys(riddling)) {
		if used[path] == 0 {
			findings = append(findings, path+": has no phrase of the old dialect: remove it from riddling")
		}
	}
	return findings, nil
}

// files returns the Go and Markdown files that git tracks or would track, without testdata.
func files(ctx context.Context, root string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-co", "--exclude-standard", "--deduplicate", "*.go", "*.md")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var names []string
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
		if err == nil && !strings.Contains("/"+name, "/testdata/") {
			names = append(names, name)
		}
	}
	return names, nil
}

func checkFile(name string, text []byte) ([]string, error) {
	findings := persons(name, string(text))
	if !strings.HasSuffix(name, ".go") {
		return findings, nil
	}
	found, err := checkGo(name, text)
	return append(findings, found...), err
}
