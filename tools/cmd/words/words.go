// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"unicode"
)

// personWords are written in halves, so that this file does not hold them.
var personWords = regexp.MustCompile(`(?i)\b(` + strings.Join([]string{
	"who" + "ever", "no" + "body", "some" + "body", "him" + "self", "who" + "m",
}, "|") + `)\b`)

// persons finds words that stand for a person where the controller, the user or the pod
// has to be named.
func persons(name, text string) []string {
	return lines(name, text, personWords, "name the controller, the user or the object")
}

// lines returns a finding for each match in a text.
func lines(name, text string, words *regexp.Regexp, advice string) []string {
	var findings []string
	line := 0
	for l := range strings.Lines(text) {
		line++
		for _, w := range words.FindAllString(l, -1) {
			findings = append(findings, fmt.Sprintf("%s:%d: %q: %s", name, line, w, advice))
		}
	}
	return findings
}

// riddles are phrases of an old dialect, written in halves, so that this file does not hold them.
var riddles = regexp.MustCompile(`(?i)\b(` + strings.Join([]string{
	"asked " + "to go", "(is|are) " + "to go", "told " + "(to|of)", "so to " + "speak", "stand-" + "ins?", "for " + "ever",
	"as it is " + "written", "under " + "way", "on (its|their) " + "way", "is asked " + "for",
}, "|") + `)\b`)

// riddling are the folders and files with riddles, and why. An entry without riddles is a finding.
var riddling = map[string]string{
	"deployment": "comments and tests, not rewritten yet", "docs/machine.md": "a sentence, not rewritten yet",
	"docs/parity.md": "descriptions of defects of MCM", "driver/drivertest": "tests, not rewritten yet", "examples/rigs/audit": "a test, not rewritten yet",
	"examples/e2e": "scenarios, not rewritten yet", "examples/programs/manager": "comments and tests, not rewritten yet",
	"internal/golden": "tests, not rewritten yet", "machine": "comments and tests, not rewritten yet",
	"machineset": "tests, not rewritten yet", "safety": "tests, not rewritten yet",
}

// dialect finds riddles, except in the folders and files that have them. It counts those in used.
func dialect(name, text string, used map[string]int) []string {
	found := lines(name, text, riddles, "name what happens: evicted, deleted, terminating, in progress, simulated, always")
	for path := range riddling {
		if name == path || strings.HasPrefix(name, path+"/") {
			used[path] += len(found)
			return nil
		}
	}
	return found
}

// british matches words that have another spelling in American English.
var british = regexp.MustCompile(`(?i)^(analyse|armour|artefact|behaviour|cancelled|cancelling|catalogue|centre|colour|` +
	`defence|favour|flavour|grey|honour|judgement|labelled|labelling|licence|modelled|modelling|neighbour|` +
	`signalled|signalling|travelled|` +
	`(un|re)?(author|custom|emphas|final|general|initial|maxim|minim|normal|optim|organ|priorit|random|recogn|serial|` +
	`special|stabil|standard|summar|synchron|token|visual)is(e|ing|ation))`)

// defectNumber matches names of tests that begin with the number of a row of docs/parity.md.
var defectNumber = regexp.MustCompile(`^(?:Test|Fuzz|Example|Benchmark)((?:DM|DS|DD|MS)\d+)`)

// britishWord returns the first word of a camel case identifier in British spelling.
func britishWord(identifier string) string {
	for _, word := range camelWords(identifier) {
		if british.MatchString(word) {
			return word
		}
	}
	return ""
}

// camelWords splits camel case: HTTPColourName is HTTP, Colour, Name.
func camelWords(identifier string) []string {
	var words []string
	letters := []rune(identifier)
	begin := 0
	for i := 1; i < len(letters); i++ {
		lowerBefore := unicode.IsLower(letters[i-1])
		lowerAfter := i+1 < len(letters) && unicode.IsLower(letters[i+1])
		if letters[i-1] == '_' || unicode.IsUpper(letters[i]) && (lowerBefore || lowerAfter) {
			words = append(words, string(letters[begin:i]))
			begin = i
		}
	}
	return append(words, string(letters[begin:]))
}

// checkGo checks the doc comments and the declared identifiers of a Go file.
func checkGo(name string, text []byte) ([]string, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(file) {
		return nil, nil
	}
	var findings []string
	report := func(pos token.Pos, format string, args ...any) {
		findings = append(findings, fmt.Sprintf("%s:%d: ", name, fset.Position(pos).Line)+fmt.Sprintf(format, args...))
	}
	for _, d := range file.Decls {
		checkComment(d, report)
	}
	for _, id := range declared(file) {
		if number := defectNumber.FindStringSubmatch(id.Name); number != nil {
			report(id.Pos(), "%s: a name says what happens, and not the number %s", id.Name, number[1])
		}
		if word := britishWord(id.Name); word != "" {
			report(id.Pos(), "%s: %q is British spelling", id.Name, word)
		}
	}
	return findings, nil
}

// checkComment reports the comments of a declaration that do not begin with its name.
// Groups of constants and variables have comments of their own kind, and so have Examples.
func checkComment(d ast.Decl, report func(token.Pos, string, ...any)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !strings.HasPrefix(d.Name.Name, "Example") {
			checkFirstWord(d.Doc, report, d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				doc := s.Doc
				if !d.Lparen.IsValid() {
					doc = d.Doc
				}
				checkFirstWord(doc, report, s.Name)
			case *ast.ValueSpec:
				if !d.Lparen.IsValid() {
					checkFirstWord(d.Doc, report, s.Names...)
				}
			}
		}
	}
}

// checkFirstWord reports a comment that does not begin with one of the names. An article
// may stand before the name, and "Deprecated:" in its place.
func checkFirstWord(doc *ast.CommentGroup, report func(token.Pos, string, ...any), names ...*ast.Ident) {
	first := firstWord(doc.Text())
	if first == "" || first == "Deprecated:" {
		return
	}
	for _, n := range names {
		if n.Name == "_" {
			return
		}
		if rest, found := strings.CutPrefix(first, n.Name); found && !strings.ContainsFunc(rest, isLetterOrDigit) {
			return
		}
	}
	report(doc.Pos(), "the comment of %s begins with %q", names[0].Name, first)
}

func isLetterOrDigit(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// firstWord returns the first word of a comment behind an article. Lines that begin with a
// plus sign are markers for generators.
func firstWord(text string) string {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "+") {
			continue
		}
		switch words[0] {
		case "A", "An", "The":
			if len(words) > 1 {
				return words[1]
			}
		}
		return words[0]
	}
	return ""
}

// declared returns the identifiers that a file declares, those of its functions too.
func declared(file *ast.File) []*ast.Ident {
	var ids []*ast.Ident
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			ids = append(ids, n.Name)
		case *ast.TypeSpec:
			ids = append(ids, n.Name)
		case *ast.ValueSpec:
			ids = append(ids, n.Names...)
		case *ast.Field:
			ids = append(ids, n.Names...)
		case *ast.LabeledStmt:
			ids = append(ids, n.Label)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				ids = append(ids, identifiers(n.Lhs)...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				ids = append(ids, identifiers([]ast.Expr{n.Key, n.Value})...)
			}
		}
		return true
	})
	return ids
}

func identifiers(exprs []ast.Expr) []*ast.Ident {
	var ids []*ast.Ident
	for _, e := range exprs {
		if id, ok := e.(*ast.Ident); ok {
			ids = append(ids, id)
		}
	}
	return ids
}
