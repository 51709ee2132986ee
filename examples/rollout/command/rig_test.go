// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/examples/rollout/command"
)

var update = flag.Bool("update", false, "write golden files")

// pool is the sample: five machines, two more at most, one unavailable at most.
const pool = "testdata/pool.yaml"

// run runs the command with no standard input.
func run(t *testing.T, args ...string) (status int, out, errOut string) {
	t.Helper()
	return runWith(t, "", args...)
}

func runWith(t *testing.T, in string, args ...string) (status int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	status = command.Command{In: strings.NewReader(in), Out: &o, ErrOut: &e}.Run(t.Context(), args)
	return status, o.String(), e.String()
}

// document plays a roll-out and reads it as programs do.
func document(t *testing.T, args ...string) (int, command.Document) {
	t.Helper()
	status, out, errOut := run(t, append(args, "-o", "json")...)
	var d command.Document
	require.NoError(t, json.Unmarshal([]byte(out), &d), errOut)
	return status, d
}

// edited is the sample with other words in it.
func edited(t *testing.T, words ...string) string {
	t.Helper()
	data, err := os.ReadFile(pool)
	require.NoError(t, err)
	text := strings.NewReplacer(words...).Replace(string(data))
	require.NotEqual(t, string(data), text, "nothing was replaced")
	file := filepath.Join(t.TempDir(), "pool.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
