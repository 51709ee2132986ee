// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/format"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	facadeModule = "github.com/gardener/machine-controller-manager"
	surfaceDir   = "internal/apisurface"
)

// writeSurface writes the tests of the API surface with the import paths of MCM.
func writeSurface(root, scratch string, table []facadePackage) error {
	tests, err := filepath.Glob(filepath.Join(root, surfaceDir, "*_test.go"))
	if err != nil {
		return err
	}
	oldPaths := importsOf(table)
	for _, name := range tests {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		text := strings.Replace(string(data), header, header+generatedHeader, 1)
		data, err = format.Source([]byte(oldPaths.Replace(text)))
		if err != nil {
			return err
		}
		if err := write(filepath.Join(scratch, facadeDir, filepath.Dir(rel), facadePrefix+filepath.Base(rel)), data); err != nil {
			return err
		}
	}
	return nil
}

// importsOf replaces the import paths of this project. A package of MCM that has another name than
// ours is imported by our name.
func importsOf(table []facadePackage) *strings.Replacer {
	old := map[string]string{}
	for _, p := range table {
		if !strings.HasPrefix(p.target, module) {
			continue
		}
		if old[p.target] == "" || p.name() == path.Base(p.target) {
			old[p.target] = p.path
		}
	}
	var pairs []string
	for target, p := range old {
		name := ""
		if path.Base(target) != path.Base(p) {
			name = path.Base(target) + " "
		}
		pairs = append(pairs, fmt.Sprintf("%q", target), fmt.Sprintf("%s%q", name, facadeModule+"/"+p))
	}
	return strings.NewReplacer(pairs...)
}
