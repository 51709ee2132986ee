// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	load "golang.org/x/tools/go/packages"
)

// view is what pkg.go.dev shows of a package.
type view struct {
	*doc.Package
	texts []string
}

// views returns those of all packages that others import.
func views(t *testing.T) []view {
	t.Helper()
	var all []view
	for _, module := range []string{"../..", "../../examples"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Name}} {{.ImportPath}} {{.Dir}}", "./...")
		cmd.Dir, cmd.Env = module, append(os.Environ(), "GOWORK=off")
		out, err := cmd.Output()
		require.NoError(t, err)
		for line := range strings.Lines(string(out)) {
			name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			path, folder, _ := strings.Cut(rest, " ")
			if name != "main" && !strings.Contains(path+"/", "/internal/") {
				all = append(all, newView(t, path, folder))
			}
		}
	}
	return all
}

func newView(t *testing.T, path, folder string) view {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	files, set := []*ast.File{}, token.NewFileSet()
	for _, name := range names {
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(set, files, path)
	require.NoError(t, err)
	v := view{Package: p, texts: []string{p.Doc}}
	values := func(all []*doc.Value) {
		for _, d := range all {
			v.texts = append(v.texts, d.Doc)
		}
	}
	funcs := func(all []*doc.Func) {
		for _, d := range all {
			v.texts = append(v.texts, d.Doc)
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, d := range p.Types {
		v.texts = append(v.texts, d.Doc)
		values(d.Consts)
		values(d.Vars)
		funcs(d.Funcs)
		funcs(d.Methods)
	}
	return v
}

// examples returns those of the package and of its names.
func (v view) examples() []*doc.Example {
	all := v.Examples
	for _, f := range v.Funcs {
		all = append(all, f.Examples...)
	}
	for _, d := range v.Types {
		all = append(all, d.Examples...)
		for _, f := range append(d.Funcs, d.Methods...) {
			all = append(all, f.Examples...)
		}
	}
	return all
}

func TestView_EachPackage_HasASynopsis(t *testing.T) {
	for _, v := range views(t) {
		if s := v.Synopsis(v.Doc); !strings.HasPrefix(s, "Package "+v.Name+" ") {
			t.Errorf("%s: the synopsis is %q", v.ImportPath, s)
		}
	}
}

func TestView_EachExample_IsPlayable(t *testing.T) {
	examples := 0
	for _, v := range views(t) {
		for _, e := range v.examples() {
			examples++
			if e.Play == nil {
				t.Errorf("%s: Example%s is not playable: it uses what is declared outside of it", v.ImportPath, e.Name)
			}
		}
	}
	require.NotZero(t, examples)
}

// unresolved finds what looks like a link, in text that go/doc does not take for one.
var unresolved = regexp.MustCompile(`\[\*?[A-Za-z_][\w/]*(\.\w+)*\]`)

// TestView_EachLink_HasItsName follows the links of doc comments.
func TestView_EachLink_HasItsName(t *testing.T) {
	links := map[string]map[*comment.DocLink]string{} // by import path, with the package that has the link
	var paths []string
	for _, v := range views(t) {
		for _, text := range v.texts {
			walk(v.Parser().Parse(text).Content, func(x comment.Text) {
				switch x := x.(type) {
				case comment.Plain:
					for _, found := range unresolved.FindAllString(string(x), -1) {
						t.Errorf("%s: %s has no name to link", v.ImportPath, found)
					}
				case *comment.DocLink:
					path := x.ImportPath
					if path == "" {
						path = v.ImportPath
					}
					if links[path] == nil {
						links[path], paths = map[*comment.DocLink]string{}, append(paths, path)
					}
					links[path][x] = v.ImportPath
				}
			})
		}
	}
	loaded, err := load.Load(&load.Config{Mode: load.NeedName | load.NeedTypes | load.NeedImports | load.NeedDeps, Dir: "../../examples/e2e"}, paths...)
	require.NoError(t, err)
	for _, p := range loaded {
		for link, from := range links[p.PkgPath] {
			if !has(p.Types, link) {
				t.Errorf("%s: %s.%s.%s does not exist", from, p.PkgPath, link.Recv, link.Name)
			}
		}
		delete(links, p.PkgPath)
	}
	require.Empty(t, links, "packages that do not exist")
}

func has(p *types.Package, link *comment.DocLink) bool {
	if link.Name == "" {
		return p.Complete()
	}
	if link.Recv == "" {
		return p.Scope().Lookup(link.Name) != nil
	}
	receiver := p.Scope().Lookup(strings.TrimPrefix(link.Recv, "*"))
	if receiver == nil {
		return false
	}
	member, _, _ := types.LookupFieldOrMethod(receiver.Type(), true, p, link.Name)
	return member != nil
}

// walk calls a function with each text in blocks, also those inside links.
func walk(blocks []comment.Block, each func(comment.Text)) {
	texts := func(all []comment.Text) {
		for _, x := range all {
			each(x)
		}
	}
	for _, b := range blocks {
		switch b := b.(type) {
		case *comment.Paragraph:
			texts(b.Text)
		case *comment.Heading:
			texts(b.Text)
		case *comment.List:
			for _, item := range b.Items {
				walk(item.Content, each)
			}
		}
	}
}
