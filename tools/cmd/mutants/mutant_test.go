// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var repository = filepath.Join("..", "..", "..")

// highSeverity are the rows of docs/parity.md whose defect is a wrong action, a crash, a leak
// or a permanent stall.
var highSeverity = strings.Fields(`
	DM-01 DM-02 DM-03 DM-04 DM-08 DM-09 DM-17 DM-20 DM-26 DM-27 DM-44
	DS-1 DS-2 DS-3 DS-4 DS-6 DS-7 DS-10 DS-21 DS-22 DS-23 DS-34
	DD-1 DD-2 DD-3 DD-4 DD-7 DD-8 DD-9 DD-11 DD-12 DD-15 DD-19 DD-25 DD-26 DD-31 DD-32
	DD-35 DD-37 DD-40 DD-45 DD-48 DD-52 DD-56 DD-59 DD-61 DD-63 DD-67`)

func TestMutants_EachText_OccursOnce(t *testing.T) {
	mutants, err := readMutants(repository)
	require.NoError(t, err)
	for _, m := range mutants {
		_, err := m.apply(repository)
		assert.NoError(t, err, m.Name)
	}
}

// TestMutants_EachTest_IsNamedInItsRow asserts that docs/parity.md names the test of each
// mutant in its row.
func TestMutants_EachTest_IsNamedInItsRow(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "parity.md"))
	require.NoError(t, err)
	mutants, err := readMutants(repository)
	require.NoError(t, err)
	for _, m := range mutants {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(m.Row) + ` .*$`).Find(page)
		require.Contains(t, string(row), "`"+m.Test+"`", "row %s", m.Row)
	}
}

func TestMutants_EachRowOfHighSeverity_HasOne(t *testing.T) {
	mutants, err := readMutants(repository)
	require.NoError(t, err)
	for _, row := range highSeverity {
		found := slices.ContainsFunc(mutants, func(m mutant) bool { return m.Row == row })
		require.True(t, found, "row %s has no mutant", row)
	}
}

func TestParseMutant_WithoutFileTestOrText_IsAnError(t *testing.T) {
	const whole = "Why.\nfile: a.go\ntest: machine TestX\n-- old --\na\n-- new --\nb\n"
	m, err := parseMutant([]byte(whole))
	require.NoError(t, err)
	require.Equal(t, mutant{File: "a.go", Package: "machine", Test: "TestX", Old: "a\n", New: "b\n"}, m)
	for _, missing := range []string{"file: a.go", " TestX", "-- old --", "-- new --\nb"} {
		_, err := parseMutant([]byte(strings.Replace(whole, missing, "", 1)))
		if missing == "-- new --\nb" {
			require.NoError(t, err, "to delete lines is a mutation")
			continue
		}
		require.Error(t, err, missing)
	}
}

// writeModule writes a module with one package, its test and one mutant.
func writeModule(t *testing.T, test, old, changed string) mutant {
	t.Helper()
	root := t.TempDir()
	folder := filepath.Join(root, "p")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "testdata", "mutants"), 0o755))
	for name, text := range map[string]string{
		filepath.Join(root, "go.mod"):                                "module example.com/m\n\ngo 1.26.0\n",
		filepath.Join(folder, "p.go"):                                "package p\n\nfunc one() int {\n\treturn 1\n}\n",
		filepath.Join(folder, "p_test.go"):                           "package p\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n" + test + "\n}\n",
		filepath.Join(folder, "testdata", "mutants", "DM-1_b.txtar"): "Why.\nfile: p.go\ntest: p TestOne\n-- old --\n" + old + "-- new --\n" + changed,
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	mutants, err := readMutants(root)
	require.NoError(t, err)
	require.Len(t, mutants, 1)
	m := mutants[0]
	require.Equal(t, []string{"DM-1_b", "DM-1", "p", "p/p.go"}, []string{m.Name, m.Row, m.Folder, m.path()})
	result, output := m.play(t.Context(), root)
	t.Log(result, string(output))
	m.New = result
	return m
}

func TestPlay_EachResult(t *testing.T) {
	const good = "\tif one() != 1 {\n\t\tt.Error(\"other\")\n\t}"
	require.Equal(t, killed, writeModule(t, good, "\treturn 1\n", "\treturn 2\n").New)
	require.Equal(t, killed, writeModule(t, good, "\treturn 1\n", "\tpanic(1)\n").New)
	require.Equal(t, survived, writeModule(t, "\tone()", "\treturn 1\n", "\treturn 2\n").New)
	require.Equal(t, "DOES NOT BUILD", writeModule(t, good, "\treturn 1\n", "\treturn\n").New)
	require.Contains(t, writeModule(t, good, "return 1\n", "return 2\n").New, "STALE", "half a line")
	require.Contains(t, writeModule(t, good, "\treturn 3\n", "\treturn 2\n").New, "STALE")
}
