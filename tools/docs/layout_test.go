// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLayout_TreeOfTheExamples_IsThatOfTheFolders compares the tree in examples/README.md with the folders: of each
// folder in it all siblings are there, and a star marks those with a go.mod.
func TestLayout_TreeOfTheExamples_IsThatOfTheFolders(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "examples")
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, tree, _ := strings.Cut(string(page), "```\nexamples *")
	tree, _, found := strings.Cut(tree, "\n```")
	require.True(t, found)
	written := map[string][]string{} // folders by parent
	var parents []string
	for _, line := range strings.Split(tree, "\n")[1:] {
		indent, text, _ := strings.Cut(line, "── ")
		fields := strings.Fields(text)
		depth := len([]rune(indent)) / 4
		parents = parents[:depth]
		parent := path.Join(parents...)
		written[parent] = append(written[parent], fields[0])
		parents = append(parents, fields[0])
		_, err := os.Stat(filepath.Join(root, filepath.Join(parents...), "go.mod"))
		require.Equal(t, err == nil, len(fields) > 1 && fields[1] == "*", "%s: the star and the go.mod", path.Join(parents...))
	}
	require.Greater(t, len(written), 3)
	for parent, names := range written {
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(parent)))
		require.NoError(t, err)
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() || e.Name() == "testdata" })
		var folders []string
		for _, e := range entries {
			folders = append(folders, e.Name())
		}
		require.ElementsMatch(t, folders, names, "folders of examples/%s", parent)
	}
}
