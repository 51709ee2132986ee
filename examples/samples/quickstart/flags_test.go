// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlags_Invalid_OneLineAndExitStatusTwo(t *testing.T) {
	tests := map[string]struct {
		args []string
		says string
	}{
		"an unknown flag":           {[]string{"-nope"}, "flag provided but not defined: -nope"},
		"an argument":               {[]string{"now"}, `unexpected argument "now"`},
		"a number that is none":     {[]string{"-replicas", "many"}, `invalid value "many" for flag -replicas`},
		"no machines":               {[]string{"-replicas", "0"}, "-replicas is 0, want 1 to 1000"},
		"too many machines":         {[]string{"-replicas", "1001"}, "-replicas is 1001, want 1 to 1000"},
		"a clock that stands still": {[]string{"-speed", "0"}, "-speed is 0, want 0.01 to 1000"},
		"a clock of no number":      {[]string{"-speed", "NaN"}, "-speed is NaN"},
		"a time that is over":       {[]string{"-timeout", "-1s"}, "-timeout is -1s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			require.Equal(t, 2, quickstart(t.Context(), test.args, &out, &errOut, never))
			require.Empty(t, out.String(), "nothing starts")
			require.Contains(t, errOut.String(), test.says)
			require.Equal(t, 1, strings.Count(errOut.String(), "\n"), "one line: %q", errOut.String())
		})
	}
}

func TestFlags_Help_ListsTheFlags(t *testing.T) {
	var out, errOut bytes.Buffer
	require.Zero(t, quickstart(t.Context(), []string{"-h"}, &out, &errOut, never))
	for _, flag := range []string{"-replicas", "-seed", "-speed", "-faults", "-v", "-timeout"} {
		require.Contains(t, out.String(), "  "+flag)
	}
	require.Empty(t, errOut.String())
}
