// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	selection    = regexp.MustCompile(`(?:\./([\w/]*\w)[^\n]*?)? -run '?\^?([A-Z]\w+)`)
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+|Example\w*)\(`)
)

// TestCommands_RunFlag_SelectsATest asserts that each go test command in the Makefile, the
// documents and the comments selects a test. go test succeeds when -run selects nothing.
func TestCommands_RunFlag_SelectsATest(t *testing.T) {
	root := filepath.Join("..", "..")
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "Makefile", "*.md", "*.go").Output()
	require.NoError(t, err)
	tests := map[string][]string{} // by folder
	texts := map[string]string{}
	for name := range strings.FieldsSeq(string(out)) {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		texts[name] = string(text)
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, m := range testFunction.FindAllStringSubmatch(string(text), -1) {
			tests[filepath.Dir(name)] = append(tests[filepath.Dir(name)], m[1])
		}
	}
	found := 0
	for name, text := range texts {
		for _, m := range selection.FindAllStringSubmatch(text, -1) {
			found++
			assert.True(t, selects(tests, m[1], m[2]), "%s: no test for %s", name, m[0])
		}
	}
	require.Positive(t, found)
}

// selects reports whether pattern matches a test in a folder whose path ends with pkg.
func selects(tests map[string][]string, pkg, pattern string) bool {
	for folder, names := range tests {
		if !strings.HasSuffix("/"+folder, "/"+pkg) && pkg != "" {
			continue
		}
		for _, name := range names {
			if strings.Contains(name, pattern) {
				return true
			}
		}
	}
	return false
}
