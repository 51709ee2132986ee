// SPDX-License-Identifier: Apache-2.0

package machinist_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheTestsThatProveParityExist asserts that every test which docs/parity.md
// names is there, in whatever module.
func TestTheTestsThatProveParityExist(t *testing.T) {
	named := regexp.MustCompile("`((?:Test|Fuzz|Example)[A-Za-z0-9_]*)`")
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	exists := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			exists[string(m[1])] = true
		}
		return err
	}))
	text, err := os.ReadFile(filepath.Join("docs", "parity.md"))
	require.NoError(t, err)
	names := named.FindAllSubmatch(text, -1)
	require.Greater(t, len(names), 100)
	for _, m := range names {
		if !exists[string(m[1])] {
			t.Errorf("docs/parity.md names %s, which does not exist", m[1])
		}
	}
}
