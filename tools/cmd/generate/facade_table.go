// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"path"
	"strings"
)

//go:embed facade.txt
var facadeTable string

// facadePackage is a section of the table: a package of MCM and its names.
type facadePackage struct {
	// path is relative to the module of MCM.
	path string
	// target is the import path of the package that has the names, or empty.
	target string
	rows   []facadeRow
}

// facadeRow is a name of MCM, and the import path and the name of what it stands for. The name * is
// all exported names.
type facadeRow struct{ name, path, target string }

// name returns the name of the package.
func (p facadePackage) name() string { return path.Base(p.path) }

// parseTable returns the sections of a table.
func parseTable(text string) ([]facadePackage, error) {
	var packages []facadePackage
	for n, line := range strings.Split(text, "\n") {
		left, right, _ := strings.Cut(strings.TrimSpace(line), " = ")
		switch {
		case left == "" || left[0] == '#':
		case line[0] != '\t':
			packages = append(packages, facadePackage{path: left, target: importPath(right)})
		case len(packages) == 0 || packages[len(packages)-1].target == "":
			return nil, fmt.Errorf("line %d: %s belongs to no package", n+1, left)
		default:
			last := &packages[len(packages)-1]
			last.rows = append(last.rows, newRow(left, right, last.target))
		}
	}
	return packages, nil
}

func newRow(name, target, from string) facadeRow {
	if i := strings.LastIndexByte(target, '.'); i >= 0 {
		return facadeRow{name, importPath(target[:i]), target[i+1:]}
	}
	return facadeRow{name, from, name}
}

// importPath completes a path that is relative to the repository.
func importPath(p string) string {
	if first, _, _ := strings.Cut(p, "/"); p == "" || strings.Contains(first, ".") {
		return p
	}
	return module + "/" + p
}
