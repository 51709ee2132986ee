// SPDX-License-Identifier: Apache-2.0

package machinist_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// imported returns the packages of this module that each package in the picture imports,
// without those that another imported package brings along.
func imported(t *testing.T) map[string][]string {
	t.Helper()
	name := func(path string) string {
		if path == sdk {
			return "machinist"
		}
		return strings.TrimPrefix(path, sdk+"/")
	}
	all := map[string][]string{}
	for _, p := range listPackages(t) {
		dir := name(p.ImportPath)
		if !strings.HasPrefix(p.ImportPath, sdk) || strings.HasPrefix(dir, "internal/") || generatedPackage(dir) {
			continue
		}
		all[dir] = nil
		for _, i := range p.Imports {
			if dep := name(i); strings.HasPrefix(i, sdk) && !strings.HasPrefix(dep, "internal/") && !generatedPackage(dep) {
				all[dir] = append(all[dir], dep)
			}
		}
	}
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		return slices.ContainsFunc(all[from], func(d string) bool { return d == to || reaches(d, to) })
	}
	shortest := map[string][]string{}
	for dir, deps := range all {
		shortest[dir] = nil
		for _, d := range deps {
			if !slices.ContainsFunc(deps, func(other string) bool { return reaches(other, d) }) {
				shortest[dir] = append(shortest[dir], d)
			}
		}
		slices.Sort(shortest[dir])
	}
	return shortest
}

// drawn returns the arrows of the picture in docs/concepts.md, and its packages.
func drawn(t *testing.T) map[string][]string {
	t.Helper()
	_, picture, found := strings.Cut(docsPage(t, "concepts.md"), "```mermaid\n")
	require.True(t, found)
	picture, _, _ = strings.Cut(picture, "```")
	paths := map[string]string{}
	for _, m := range regexp.MustCompile(`(\w+)\["([^"]+)"\]`).FindAllStringSubmatch(picture, -1) {
		paths[m[1]] = m[2]
	}
	path := func(node string) string {
		if p, ok := paths[node]; ok {
			return p
		}
		return node
	}
	arrows := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^ +(\w+)(?:\[[^\]]+\])?(?: --> (\w+)(?:\[[^\]]+\])?)?$`).FindAllStringSubmatch(picture, -1) {
		from := path(m[1])
		if m[1] == "end" {
			continue
		}
		arrows[from] = slices.Clip(arrows[from])
		if m[2] != "" {
			arrows[from] = append(arrows[from], path(m[2]))
			arrows[path(m[2])] = slices.Clip(arrows[path(m[2])])
		}
	}
	for _, to := range arrows {
		slices.Sort(to)
	}
	return arrows
}

func docsPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("docs", name))
	require.NoError(t, err)
	return string(text)
}

func TestConcepts_Picture_ShowsTheImports(t *testing.T) {
	want, have := imported(t), drawn(t)
	for _, dir := range slices.Sorted(maps.Keys(want)) {
		drawnHere, ok := have[dir]
		require.True(t, ok, "docs/concepts.md does not draw package %s", dir)
		require.ElementsMatch(t, want[dir], drawnHere, "imports of %s", dir)
	}
	require.Len(t, have, len(want), "docs/concepts.md draws packages that do not exist")
}

func TestConcepts_Glossary_IsShortAndSorted(t *testing.T) {
	_, table, _ := strings.Cut(docsPage(t, "concepts.md"), "## Glossary\n")
	_, table, _ = strings.Cut(table, "|---|---|\n")
	var words []string
	for line := range strings.Lines(table) {
		word, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		words = append(words, word)
	}
	require.LessOrEqual(t, len(words), 40)
	require.Greater(t, len(words), 20)
	require.True(t, slices.IsSorted(words), "%v", words)
}

// TestDocs_Pages_AreShort leaves out parity.md, which is a table for reference.
func TestDocs_Pages_AreShort(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, page := range pages {
		name := filepath.Base(page)
		if lines := strings.Count(docsPage(t, name), "\n"); name != "parity.md" && lines > 250 {
			t.Errorf("%s has %d lines, and may have 250", page, lines)
		}
	}
}
