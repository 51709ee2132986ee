// SPDX-License-Identifier: Apache-2.0

package machinist_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parityTest finds the tests that docs/parity.md names.
var parityTest = regexp.MustCompile("`((?:Test|Fuzz|Example)[A-Za-z0-9_]*)`")

func parityPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("docs", "parity.md"))
	require.NoError(t, err)
	return string(text)
}

// parityRows are the cells of the tables of a section, without their heads.
func parityRows(t *testing.T, section string) [][]string {
	t.Helper()
	_, page, found := strings.Cut(parityPage(t), "\n## "+section+"\n")
	require.True(t, found, section)
	page, _, _ = strings.Cut(page, "\n## ")
	var rows [][]string
	lines := strings.Split(page, "\n")
	for i, line := range lines {
		head := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|---")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || head {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		if len(cells) != 3 {
			t.Errorf("docs/parity.md: a row without three cells: %s", line)
			continue
		}
		rows = append(rows, cells)
	}
	return rows
}

// TestTheTestsThatProveParityExist asserts that every test which docs/parity.md
// names is there, in whatever module.
func TestTheTestsThatProveParityExist(t *testing.T) {
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
	names := parityTest.FindAllStringSubmatch(parityPage(t), -1)
	require.Greater(t, len(names), 100)
	for _, m := range names {
		if !exists[m[1]] {
			t.Errorf("docs/parity.md names %s, which does not exist", m[1])
		}
	}
}

// TestEveryDefectOfDrainsHasARow asserts that none is forgotten and none stands
// twice, and that each names a test, or says why there is none.
func TestEveryDefectOfDrainsHasARow(t *testing.T) {
	var want, have []string
	for n := range 76 {
		want = append(want, fmt.Sprint("DD-", n+1))
	}
	want = append(want, "DD-49b", "DD-49c", "DD-65b")
	without := regexp.MustCompile(`see D[DM]-|as DD-|by construction|to come, with|no such mechanism`)
	for _, row := range parityRows(t, "Drains, permits, orphans, nodes, codes") {
		have = append(have, row[0])
		if !parityTest.MatchString(row[2]) && !without.MatchString(row[2]) {
			t.Errorf("docs/parity.md: %s has neither a test nor a reason: %s", row[0], row[2])
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	require.Equal(t, want, have)
}

// TestWhatDrainsCanDoIsTestedOrHasAReason asserts that of each thing that drains do
// elsewhere it is said how it is done here, and which test shows it.
func TestWhatDrainsCanDoIsTestedOrHasAReason(t *testing.T) {
	rows := parityRows(t, "What drains can do elsewhere")
	require.Len(t, rows, 65)
	seen := map[string]bool{}
	for _, row := range rows {
		require.False(t, seen[row[0]], "%s stands twice", row[0])
		seen[row[0]] = true
		require.NotEmpty(t, row[1], row[0])
		if !parityTest.MatchString(row[2]) && !strings.HasPrefix(row[1], "*not here*: ") {
			t.Errorf("docs/parity.md: %q has neither a test nor a reason", row[0])
		}
	}
}
