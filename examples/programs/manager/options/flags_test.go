// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/programs/manager/options"
)

// cell is what docs/parity.md says of a flag of one program.
func cell(f *pflag.Flag) string {
	switch {
	case f.Value.Type() == "refused":
		return "refused"
	case f.Value.Type() == "ignored":
		return "no effect"
	case f.DefValue == "":
		return "none"
	default:
		return "`" + f.DefValue + "`"
	}
}

// flagRows are the rows of the table of flags in docs/parity.md: the flag, its defaults in the
// two programs, and what it does.
func flagRows(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "parity.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Flags\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string][]string{}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `--") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		require.Len(t, cells, 4, line)
		name := strings.Trim(cells[0], "`-")
		require.NotContains(t, rows, name, "two rows")
		rows[name] = cells
	}
	return rows
}

func TestFlags_EachFlag_HasItsRow(t *testing.T) {
	rows := flagRows(t)
	machines, sets := pflag.NewFlagSet("machines", pflag.ContinueOnError), pflag.NewFlagSet("sets", pflag.ContinueOnError)
	options.NewMCServer().AddFlags(machines)
	options.NewMCMServer().AddFlags(sets)
	said := []string{"*done*", "*differs*: ", "*no effect*: ", "*new*"}
	machines.VisitAll(func(f *pflag.Flag) {
		row, found := rows[f.Name]
		delete(rows, f.Name)
		if !found {
			t.Errorf("docs/parity.md: no row for --%s", f.Name)
			return
		}
		require.Equal(t, []string{"`--" + f.Name + "`", cell(f), cell(sets.Lookup(f.Name))}, row[:3])
		require.True(t, slices.ContainsFunc(said, func(word string) bool { return strings.HasPrefix(row[3], word) }), row[3])
		require.Equal(t, f.Value.Type() == "ignored", strings.HasPrefix(row[3], "*no effect*"), f.Name)
	})
	require.Empty(t, rows, "rows of flags that there are not")
	sets.VisitAll(func(f *pflag.Flag) { require.NotNil(t, machines.Lookup(f.Name), f.Name) })
}

func TestFlags_OfTheOtherProgram_AreRefused(t *testing.T) {
	rows := flagRows(t)
	refused := 0
	for name, row := range rows {
		for column, tc := range map[int]struct {
			server *options.MCServer
			other  string
		}{1: {options.NewMCServer(), "machine-controller-manager"}, 2: {options.NewMCMServer(), "machine-controller"}} {
			if row[column] != "refused" {
				continue
			}
			refused++
			_, err := parseFor(t, tc.server, "--"+name+"=1")
			require.Error(t, err, name)
			require.True(t, strings.HasSuffix(err.Error(), "it is a flag of the "+tc.other), err)
		}
		if row[1] != "no effect" {
			fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
			options.NewManagerServer().AddFlags(fs)
			require.NotEqual(t, "refused", cell(fs.Lookup(name)), "the manager takes all flags")
		}
	}
	require.Greater(t, refused, 15)
}
