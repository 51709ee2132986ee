// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/token"
	"go/types"
	"strings"
	"testing"
)

func TestParseTable_Rows_HaveTheirTargets(t *testing.T) {
	table, err := parseTable("# comment\npkg/a/b = c/b\n\tX\n\tY = d/e.Z\n\n\tW = k8s.io/x.V\npkg/blank\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []facadeRow{{"X", module + "/c/b", "X"}, {"Y", module + "/d/e", "Z"}, {"W", "k8s.io/x", "V"}}
	if len(table) != 2 || table[0].name() != "b" || table[1].path != "pkg/blank" {
		t.Fatalf("got %v", table)
	}
	for i, row := range table[0].rows {
		if row != want[i] {
			t.Errorf("got %v, want %v", row, want[i])
		}
	}
	if _, err := parseTable("\tX\n"); err == nil {
		t.Error("a row without a package was accepted")
	}
}

func TestSource_EveryKind_Declared(t *testing.T) {
	target := types.NewPackage(module+"/c/b", "b")
	str := types.Typ[types.String]
	variadic := types.NewSignatureType(nil, nil, nil,
		types.NewTuple(types.NewParam(token.NoPos, nil, "b", str), types.NewParam(token.NoPos, nil, "more", types.NewSlice(str))),
		types.NewTuple(types.NewParam(token.NoPos, nil, "", str)), true)
	for _, o := range []types.Object{
		types.NewTypeName(token.NoPos, target, "T", str),
		types.NewVar(token.NoPos, target, "V", str),
		types.NewFunc(token.NoPos, target, "F", variadic),
		types.NewVar(token.NoPos, target, "hidden", str),
	} {
		target.Scope().Insert(o)
	}
	p := facadePackage{path: "pkg/b", target: target.Path(), rows: []facadeRow{{"*", target.Path(), "*"}}}
	data, err := p.source(map[string]*types.Package{target.Path(): target})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"package b\n", "//go:fix inline\ntype T = b.T\n", "// V is [b.V].\nvar V = b.V\n",
		"//go:fix inline\nfunc F(a0 string, more ...string) string { return b.F(a0, more...) }\n",
	} {
		if !strings.Contains(string(data), part) {
			t.Errorf("%q is missing in:\n%s", part, data)
		}
	}
	p.rows = []facadeRow{{"Gone", target.Path(), "Gone"}}
	if _, err := p.source(map[string]*types.Package{target.Path(): target}); err == nil {
		t.Error("a name that does not exist was accepted")
	}
}
