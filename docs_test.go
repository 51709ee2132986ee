// SPDX-License-Identifier: Apache-2.0

package machinist_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withoutExample are packages that need none, each with the reason.
var withoutExample = map[string]string{
	".": "the map of the packages; it holds no code",
}

func TestDocs_EveryPackage_HasCommentExampleAndFieldDocs(t *testing.T) {
	for _, dir := range documentedPackages(t) {
		t.Run(dir, func(t *testing.T) {
			fset, sources, tests := parsePackage(t, dir)
			pkg, err := doc.NewFromFiles(fset, append(sources, tests...), sdk+"/"+dir, doc.PreserveAST)
			require.NoError(t, err)
			if !strings.HasPrefix(pkg.Doc, "Package "+pkg.Name+" ") {
				t.Errorf("%s: no package comment that begins with %q", dir, "Package "+pkg.Name)
			}
			if doc.Examples(tests...) == nil && withoutExample[dir] == "" {
				t.Errorf("%s: no Example", dir)
			}
			for _, f := range sources {
				for _, missing := range undocumented(fset, f) {
					t.Error(missing)
				}
			}
		})
	}
}

// documentedPackages are those that an importer sees and that people wrote.
func documentedPackages(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, p := range listPackages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, sdk), "/")
		if p.DepOnly || generatedPackage(dir) || strings.HasPrefix(dir, "internal/") {
			continue
		}
		if dir == "" {
			dir = "."
		}
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return dirs
}

// parsePackage parses the files of a folder, but for generated ones.
func parsePackage(t *testing.T, dir string) (fset *token.FileSet, sources, tests []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
	require.NoError(t, err)
	fset = token.NewFileSet()
	for _, path := range paths {
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		require.NoError(t, err)
		switch {
		case ast.IsGenerated(file):
		case strings.HasSuffix(path, "_test.go"):
			tests = append(tests, file)
		default:
			sources = append(sources, file)
		}
	}
	return fset, sources, tests
}

// undocumented lists the exported fields of structs and methods of interfaces without a
// comment. A comment covers the names on the lines right below it, too; that of a type covers
// its only member. The linter looks for the comments of functions, types and values.
func undocumented(fset *token.FileSet, file *ast.File) []string {
	u := undocumentedNames{fset: fset}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.TypeSpec); ok && s.Name.IsExported() {
			u.members(s)
		}
		_, local := n.(*ast.BlockStmt)
		return !local
	})
	return u.found
}

type undocumentedNames struct {
	fset  *token.FileSet
	found []string
}

func (u *undocumentedNames) members(s *ast.TypeSpec) {
	var fields *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return
	}
	if len(fields.List) == 1 {
		return
	}
	last := -1
	for _, f := range fields.List {
		last = u.names(f, f.Names, f.Doc != nil || f.Comment != nil, last)
	}
}

// names reports the exported ones among names unless they are covered, and
// returns the line down to which the comment reaches.
func (u *undocumentedNames) names(n ast.Node, names []*ast.Ident, covered bool, last int) int {
	line, end := u.fset.Position(n.Pos()).Line, u.fset.Position(n.End()).Line
	if covered || last >= 0 && line == last+1 {
		return end
	}
	for _, name := range names {
		if name.IsExported() {
			u.found = append(u.found, fmt.Sprintf("%s: %s has no comment", u.fset.Position(n.Pos()), name.Name))
		}
	}
	return -1
}
