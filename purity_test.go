// SPDX-License-Identifier: Apache-2.0

package machinist_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// purePackages decide. Of their functions only those that take a context may do
// I/O or wait; the others may do neither, and none may start a goroutine.
var purePackages = []string{
	"codes", "codes/status", "permits", "nodeops", "machine", "machineset", "deployment", "deployment/deploymenttest", "safety", "drain",
	"internal/claims", "internal/recorded", "internal/rollout",
}

// bannedCalls are functions by import path. Printing into a writer is fine, since
// none comes from anywhere but the arguments. Those of time, which a function with
// a context may call, are in waitingCalls.
var bannedCalls = map[string][]string{
	"context": {"Background", "TODO"},
	"fmt":     {"Print", "Println", "Printf"},
}

var waitingCalls = []string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "NewTicker", "Tick", "AfterFunc"}

// bannedImports are import paths that no file of a pure package names. The table
// in imports_test.go bans more, for all packages.
var bannedImports = []string{"log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "net", "syscall"}

func TestPurity_PurePackages_NoClockRandomnessGoroutineOutput(t *testing.T) {
	for _, pkg := range purePackages {
		for _, path := range sourceFiles(t, pkg) {
			require.Empty(t, impurities(t, path), path)
		}
	}
}

func TestPurity_ForbiddenCode_IsFound(t *testing.T) {
	const head = "package p\nimport (\"context\"; \"fmt\"; clock \"time\")\n"
	for name, tc := range map[string]struct{ source, want string }{
		"a clock":                       {"func f() { clock.Now() }", "time.Now"},
		"a clock as a value":            {"var now = clock.Now", "time.Now"},
		"a goroutine":                   {"func f() { go f() }", "starts a goroutine"},
		"a goroutine next to a context": {"func f(ctx context.Context) { go f(ctx) }", "starts a goroutine"},
		"a channel":                     {"func f(c chan int) {}", "uses a channel"},
		"a select":                      {"func f() { select {} }", "waits in a select"},
		"a context out of nowhere":      {"func f() { fmt.Sprint(context.Background()) }", "context.Background"},
		"printing":                      {"func f() { fmt.Println() }", "fmt.Println"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.go")
			require.NoError(t, os.WriteFile(path, []byte(head+tc.source), 0o600))
			found := impurities(t, path)
			require.Len(t, found, 1)
			require.Contains(t, found[0], tc.want)
		})
	}
	path := filepath.Join(t.TempDir(), "p.go")
	require.NoError(t, os.WriteFile(path, []byte(head+
		"func f(ctx context.Context) { select { case <-ctx.Done(): case <-clock.After(1): }; fmt.Sprint() }"), 0o600))
	require.Empty(t, impurities(t, path), "a function with a context may wait")
}

// sourceFiles returns the files of a package that are not tests. A package that
// does not exist has none.
func sourceFiles(t testing.TB, pkg string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(pkg), "*.go"))
	require.NoError(t, err)
	return slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
}

// impurities returns what a file does that its package must not.
func impurities(t testing.TB, path string) []string {
	t.Helper()
	p := purity{fset: token.NewFileSet(), imports: map[string]string{}}
	file, err := parser.ParseFile(p.fset, path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, spec := range file.Imports {
		p.addImport(spec)
	}
	for _, decl := range file.Decls {
		p.walk(decl, false)
	}
	return p.found
}

// purity looks at one file.
type purity struct {
	fset    *token.FileSet
	imports map[string]string // local name to import path
	found   []string
}

func (p *purity) report(n ast.Node, format string, args ...any) {
	p.found = append(p.found, fmt.Sprintf("%s: ", p.fset.Position(n.Pos()))+fmt.Sprintf(format, args...))
}

func (p *purity) addImport(spec *ast.ImportSpec) {
	path, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return
	}
	if slices.Contains(bannedImports, path) {
		p.report(spec, "imports %s", path)
	}
	name := path[strings.LastIndex(path, "/")+1:]
	if spec.Name != nil {
		name = spec.Name.Name
	}
	p.imports[name] = path
}

// walk looks at a node; mayWait is true inside of a function with a context.
func (p *purity) walk(root ast.Node, mayWait bool) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil && takesContext(p, n.Type) {
				p.walk(n.Body, true)
				return false
			}
		case *ast.FuncLit:
			if !mayWait && takesContext(p, n.Type) {
				p.walk(n.Body, true)
				return false
			}
		case *ast.GoStmt:
			p.report(n, "starts a goroutine")
		case *ast.ChanType:
			if !mayWait {
				p.report(n, "uses a channel")
			}
		case *ast.SelectStmt:
			if !mayWait {
				p.report(n, "waits in a select")
			}
		case *ast.SelectorExpr:
			p.selector(n, mayWait)
		}
		return true
	})
}

func (p *purity) selector(n *ast.SelectorExpr, mayWait bool) {
	x, ok := n.X.(*ast.Ident)
	if !ok {
		return
	}
	path, name := p.imports[x.Name], n.Sel.Name
	switch {
	case path == "time" && slices.Contains(waitingCalls, name) && !mayWait,
		slices.Contains(bannedCalls[path], name):
		p.report(n, "uses %s.%s", path, name)
	}
}

// takesContext reports whether a parameter is a context.
func takesContext(p *purity, f *ast.FuncType) bool {
	return slices.ContainsFunc(f.Params.List, func(param *ast.Field) bool {
		s, ok := param.Type.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != "Context" {
			return false
		}
		x, ok := s.X.(*ast.Ident)
		return ok && p.imports[x.Name] == "context"
	})
}
