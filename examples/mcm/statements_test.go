// SPDX-License-Identifier: Apache-2.0

package mcm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFacade_EveryFunction_AtMostThreeStatements(t *testing.T) {
	fset, functions := token.NewFileSet(), 0
	err := filepath.WalkDir("pkg", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				functions++
				require.LessOrEqual(t, statements(f.Body), 3, "%s: %s", path, f.Name)
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NotZero(t, functions)
}

// statements counts the statements of a block, with those inside them.
func statements(block *ast.BlockStmt) int {
	n := -1 // the block itself
	ast.Inspect(block, func(node ast.Node) bool {
		if _, is := node.(ast.Stmt); is {
			n++
		}
		return true
	})
	return n
}
