// SPDX-License-Identifier: Apache-2.0

package machinist_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parityTest finds the tests that docs/parity.md names.
var parityTest = regexp.MustCompile("`((?:Test|Fuzz|Example|Benchmark)[A-Za-z0-9_]*)`")

// paritySections are the sections of docs/parity.md, with the package that tests
// belong to before another one is named.
var paritySections = []struct{ title, folder string }{
	{"Machines", ""},
	{"Machine sets and deployments", ""},
	{"What users of machine sets and deployments run into", ""},
	{"Drains, permits, orphans, nodes, codes", ""},
	{"What drains can do elsewhere", "drain"},
	{"Flags", ""},
	{"Metrics", ""},
	{"Wishes of a review of MCM", ""},
	{"Without a number", ""},
	{"Differences that are no defects", ""},
	{"Found by attack", ""},
}

// withoutNumbers are the sections whose tables have two columns.
var withoutNumbers = []string{"Without a number", "Differences that are no defects", "Found by attack", "Wishes of a review of MCM"}

func parityPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("docs", "parity.md"))
	require.NoError(t, err)
	return string(text)
}

// parityRows are the cells of the tables of a section, without their heads: what it
// is about, what of it, and what is done. Without a number the first is empty. Flags have a default
// for each program, which another test compares.
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
		if slices.Contains(withoutNumbers, section) {
			cells = append([]string{""}, cells...)
		}
		if section == "Flags" {
			cells = append(cells[:1], cells[max(0, len(cells)-2):]...)
		}
		if len(cells) != 3 {
			t.Errorf("docs/parity.md: a row without three cells: %s", line)
			continue
		}
		rows = append(rows, cells)
	}
	return rows
}

// parityProse returns the text of a section that is no table, as the last cell of a row.
func parityProse(t *testing.T, section string) []string {
	t.Helper()
	_, page, _ := strings.Cut(parityPage(t), "\n## "+section+"\n")
	page, _, _ = strings.Cut(page, "\n## ")
	lines := slices.DeleteFunc(strings.Split(page, "\n"), func(line string) bool { return strings.HasPrefix(line, "|") })
	return []string{section, "the text", strings.Join(lines, " ")}
}

// parityCode finds what docs/parity.md writes as code.
var parityCode = regexp.MustCompile("`([^`]+)`")

// parityQuote finds what docs/parity.md quotes after a test: its subtests.
var parityQuote = regexp.MustCompile(`^, "([^"]+)"`)

// sceneName finds the names of the scenes in a file in testdata/scenes, which are subtests.
var sceneName = regexp.MustCompile(`(?m)^[^#\t\n].*$`)

// testFiles has the names of the tests and the texts of the test files, by folder.
type testFiles struct {
	names map[string][]string
	texts map[string]string
}

// everyTest returns the tests of all modules.
func everyTest(t *testing.T) testFiles {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example|Benchmark)\w*)\(`)
	tests := testFiles{names: map[string][]string{}, texts: map[string]string{}}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		folder, scenes := strings.CutSuffix(filepath.ToSlash(filepath.Dir(path)), "/testdata/scenes")
		if err != nil || d.IsDir() || !scenes && !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if scenes {
			text = sceneName.ReplaceAllFunc(text, func(name []byte) []byte { return strconv.AppendQuote(nil, string(name)) })
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			tests.names[folder] = append(tests.names[folder], string(m[1]))
		}
		tests.texts[folder] += string(text)
		return err
	}))
	return tests
}

// below returns the folders of tests that are a folder or below it.
func (f testFiles) below(folder string) (folders []string) {
	for other := range f.names {
		if other == folder || strings.HasPrefix(other, folder+"/") {
			folders = append(folders, other)
		}
	}
	return folders
}

// TestParity_NamedTests_Exist asserts that every test which docs/parity.md names exists, in the package
// that is named before it, or below it. The subtests that are quoted after it are texts of that package.
func TestParity_NamedTests_Exist(t *testing.T) {
	tests := everyTest(t)
	checked, quoted := 0, 0
	for _, section := range paritySections {
		for _, row := range append(parityRows(t, section.title), parityProse(t, section.title)) {
			folder := section.folder
			for _, at := range parityCode.FindAllStringIndex(row[2], -1) {
				code := strings.Trim(row[2][at[0]:at[1]], "`")
				pkg, _, _ := strings.Cut(code, ".") // or something of it
				switch {
				case parityTest.MatchString("`" + code + "`"):
					checked++
					homes := slices.DeleteFunc(tests.below(folder), func(f string) bool { return !slices.Contains(tests.names[f], code) })
					if len(homes) == 0 {
						t.Errorf("docs/parity.md: %s %s: there is no %s in %q", row[0], row[1], code, folder)
					}
					for rest := row[2][at[1]:]; parityQuote.MatchString(rest); quoted++ {
						m := parityQuote.FindStringSubmatch(rest)
						rest = rest[len(m[0]):]
						if !slices.ContainsFunc(homes, func(f string) bool { return strings.Contains(tests.texts[f], strconv.Quote(m[1])) }) {
							t.Errorf("docs/parity.md: %s %s: %s has no %q", row[0], row[1], code, m[1])
						}
					}
				case tests.below(pkg) != nil:
					folder = pkg
				}
			}
		}
	}
	require.Greater(t, checked, 500)
	require.Greater(t, quoted, 55)
}

// TestParity_NamedCode_Exists asserts that the exported Go names in docs/parity.md are names of the
// sources.
func TestParity_NamedCode_Exists(t *testing.T) {
	name, word := regexp.MustCompile(`^[a-z/]*\.?[A-Z]\w*(\.\w+)*$`), regexp.MustCompile(`\b[A-Z]\w*`)
	known := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, w := range word.FindAllString(string(text), -1) {
			known[w] = true
		}
		return err
	}))
	checked := 0
	for _, m := range parityCode.FindAllStringSubmatch(parityPage(t), -1) {
		if !name.MatchString(m[1]) || parityTest.MatchString(m[0]) {
			continue
		}
		for _, w := range word.FindAllString(m[1], -1) {
			checked++
			if !known[w] {
				t.Errorf("docs/parity.md: `%s` has the name %s, which no source has", m[1], w)
			}
		}
	}
	require.Greater(t, checked, 100)
}

// trifles are the defects of machine sets and deployments that break nothing: they
// may stay, if the row says why.
var trifles = []string{"DS-17", "DS-32", "DS-40", "DS-41", "DS-42", "DS-43", "DS-44"}

// numbered returns prefix-1 to prefix-n.
func numbered(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", prefix, i+1)
	}
	return out
}

// TestParity_NumberedRows asserts that every number has exactly one row, and that each row
// names a test, or says in the words of its section why there is none.
func TestParity_NumberedRows(t *testing.T) {
	without := regexp.MustCompile(`see D[DM]-|as DD-|by construction|to come, with|no such mechanism`)
	for section, tc := range map[string]struct {
		want    []string
		excused func(number, text string) bool
	}{
		"Drains, permits, orphans, nodes, codes": {
			append(numbered("DD", 76), "DD-49b", "DD-49c", "DD-65b"),
			func(_, text string) bool { return parityTest.MatchString(text) || without.MatchString(text) },
		},
		"Machine sets and deployments": {numbered("DS", 44), func(number, text string) bool {
			return strings.HasPrefix(text, "*fixed*: ") && parityTest.MatchString(text) ||
				slices.Contains(trifles, number) && strings.HasPrefix(text, "*not here*: ")
		}},
		"What users of machine sets and deployments run into": {
			append(numbered("MS", 6), numbered("R", 8)...),
			func(_, text string) bool { return parityTest.MatchString(text) },
		},
	} {
		var have []string
		for _, row := range parityRows(t, section) {
			number, _, _ := strings.Cut(row[0], " ")
			have = append(have, number)
			require.NotEmpty(t, row[1], number)
			if !tc.excused(number, row[2]) {
				t.Errorf("docs/parity.md: %s has neither a test nor a reason: %s", number, row[2])
			}
		}
		require.ElementsMatch(t, tc.want, have)
	}
}

// TestParity_DrainFeatures_HaveTestOrReason asserts that of each thing that drains do
// elsewhere it is said how it is done here, and which test shows it.
func TestParity_DrainFeatures_HaveTestOrReason(t *testing.T) {
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
