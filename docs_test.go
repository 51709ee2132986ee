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

func TestEveryPackageHasACommentAndAnExampleAndEveryExportedNameIsDocumented(t *testing.T) {
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

// undocumented lists the exported names of a file without a comment: those of
// the package, the fields of structs and the methods of interfaces. A comment
// covers the names on the lines right below it, too; that of a group of
// constants covers the group; that of a type covers its only member.
func undocumented(fset *token.FileSet, file *ast.File) []string {
	u := undocumentedNames{fset: fset}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
				u.report(d.Name, "func "+d.Name.Name)
			}
		case *ast.GenDecl:
			u.genDecl(d)
		}
	}
	return u.found
}

type undocumentedNames struct {
	fset  *token.FileSet
	found []string
}

func (u *undocumentedNames) report(n ast.Node, what string) {
	u.found = append(u.found, fmt.Sprintf("%s: %s has no comment", u.fset.Position(n.Pos()), what))
}

func (u *undocumentedNames) genDecl(d *ast.GenDecl) {
	last := -1 // the line of the last name that is covered by a comment
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
				u.report(s, "type "+s.Name.Name)
			}
			if s.Name.IsExported() {
				u.members(s)
			}
		case *ast.ValueSpec:
			covered := s.Doc != nil || s.Comment != nil || d.Doc != nil
			last = u.names(s, s.Names, covered, last)
		}
	}
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
			u.report(name, name.Name)
		}
	}
	return -1
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	switch x := t.(type) {
	case *ast.IndexExpr:
		t = x.X
	case *ast.IndexListExpr:
		t = x.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}
