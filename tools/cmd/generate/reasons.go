// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// reasonsPage is the page of all reasons.
const reasonsPage = "docs/reasons.md"

// reason is a constant of type machinist.Reason.
type reason struct {
	// name is that of the constant, word its value.
	name, word string
	// meaning and helps are from its comment. helps is empty for a reason that ends by itself.
	meaning, helps string
}

// writeReasons writes the page of all reasons into the scratch directory.
func writeReasons(_ context.Context, root, scratch string) error {
	page, err := reasonsOf(root)
	if err != nil {
		return err
	}
	return write(filepath.Join(scratch, reasonsPage), page)
}

// reasonsOf returns the page of the reasons in the packages below a folder.
func reasonsOf(root string) ([]byte, error) {
	var page bytes.Buffer
	page.WriteString(`# Reasons

Each decision and each hold has a reason: a stable word that programs can compare, with a message for people. The page has all of them, by package. It is written
by ` + "`make generate`" + ` from the comments of the constants. A name in brackets is the Go constant of a reason on which callers branch.
`)
	found := map[string][]reason{}
	var errs []error
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"examples", "tools", "testdata", "bin"}, d.Name())):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		reasons, err := reasonsIn(path)
		errs = append(errs, err)
		if len(reasons) > 0 {
			dir, _ := filepath.Rel(root, filepath.Dir(path)) // path is below root
			found[filepath.ToSlash(dir)] = append(found[filepath.ToSlash(dir)], reasons...)
		}
		return nil
	})
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&page, "\n## %s\n\n| Reason | Meaning | What helps |\n|---|---|---|\n", dir)
		slices.SortFunc(found[dir], func(a, b reason) int { return strings.Compare(a.word, b.word) })
		for _, r := range found[dir] {
			word := "`" + r.word + "`"
			if ast.IsExported(r.name) {
				word += " (`" + r.name + "`)"
			}
			fmt.Fprintf(&page, "| %s | %s | %s |\n", word, r.meaning, r.helps)
		}
	}
	return page.Bytes(), nil
}

// reasonsIn returns the reasons of one file. It returns an error for a reason whose comment does not
// say what it means, and for one that is no constant.
func reasonsIn(path string) ([]reason, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var (
		reasons []reason
		errs    []error
	)
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			s, ok := spec.(*ast.ValueSpec)
			if !ok || !isOurs(s.Type, "Reason") || len(s.Values) != 1 {
				continue
			}
			doc := s.Doc
			if doc == nil && !group.Lparen.IsValid() {
				doc = group.Doc
			}
			r, err := newReason(s.Names[0].Name, s.Values[0], doc.Text())
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", fset.Position(s.Pos()), err))
			}
			reasons = append(reasons, r)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		value, ok := n.(*ast.CompositeLit)
		if !ok || !isOurs(value.Type, "Hold") && !isOurs(value.Type, "Event") {
			return true
		}
		for _, e := range value.Elts {
			if field, ok := e.(*ast.KeyValueExpr); ok && isIdent(field.Key, "Reason") && isLiteral(field.Value) {
				errs = append(errs, fmt.Errorf("%s: a reason that is no constant has no meaning on the page", fset.Position(field.Pos())))
			}
		}
		return true
	})
	return reasons, errors.Join(errs...)
}

// newReason returns the reason of a constant. Its comment is "NAME means that …", and may have a
// paragraph "What helps: …".
func newReason(name string, value ast.Expr, comment string) (reason, error) {
	literal, ok := value.(*ast.BasicLit)
	if !ok {
		return reason{}, fmt.Errorf("%s is no literal", name)
	}
	word, err := strconv.Unquote(literal.Value)
	if err != nil {
		return reason{}, err
	}
	meaning, helps, _ := strings.Cut(comment, "\n\nWhat helps: ")
	meaning, ok = strings.CutPrefix(plain(meaning), name+" means that ")
	if !ok {
		return reason{}, fmt.Errorf("the comment of %s does not begin with %q", name, name+" means that")
	}
	return reason{name: name, word: word, meaning: sentence(meaning), helps: sentence(plain(helps))}, nil
}

// plain returns a comment as one line of a table: names in brackets become code.
func plain(comment string) string {
	text := strings.Join(strings.Fields(comment), " ")
	return strings.NewReplacer("[", "`", "]", "`", "|", "\\|").Replace(text)
}

// sentence returns a text with a capital letter at the beginning.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// isOurs reports whether an expression is this name of the root package.
func isOurs(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && isIdent(s.X, "machinist") && s.Sel.Name == name
}

func isIdent(e ast.Expr, name string) bool {
	i, ok := e.(*ast.Ident)
	return ok && i.Name == name
}

func isLiteral(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Kind == token.STRING
}
