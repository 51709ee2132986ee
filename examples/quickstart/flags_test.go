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
		"an unknown flag":                {[]string{"-nope"}, "flag provided but not defined: -nope"},
		"an argument":                    {[]string{"now"}, `unexpected argument "now"`},
		"a number that is none":          {[]string{"-replicas", "many"}, `invalid value "many" for flag -replicas`},
		"no machines":                    {[]string{"-replicas", "0"}, "-replicas is 0, want 1 to 1000"},
		"too many machines":              {[]string{"-replicas", "1001"}, "-replicas is 1001, want 1 to 1000"},
		"a clock that stands still":      {[]string{"-speed", "0"}, "-speed is 0, want 0.01 to 1000"},
		"a clock of no number":           {[]string{"-speed", "NaN"}, "-speed is NaN"},
		"a time that is over":            {[]string{"-timeout", "-1s"}, "-timeout is -1s"},
		"a file that does not exist":     {[]string{"-f", "testdata/none.yaml"}, "no such file"},
		"a file that is not YAML":        {[]string{"-f", "testdata/broken.yaml"}, "testdata/broken.yaml: document 1: "},
		"a file with an unknown field":   {[]string{"-f", "testdata/unknown-field.yaml"}, `document 2: strict decoding error: unknown field "spec.klass": correct the name of the field, or delete the field`},
		"a public sample of a provider":  {[]string{"-f", "testdata/sample.yaml"}, `unknown field "spec.template.spec.class.namespace": correct the name of the field, or delete the field`},
		"a file with another kind":       {[]string{"-f", "testdata/other-kind.yaml"}, "kind ConfigMap is not supported by this demo"},
		"a file with nothing in it":      {[]string{"-f", "testdata/nothing.yaml"}, "contains no Machine, MachineSet, MachineDeployment or MachineClass"},
		"a deployment that is not valid": {[]string{"-f", "testdata/invalid.yaml"}, "MachineDeployment workers: "},
		"a duplicate name":               {[]string{"-f", "testdata/twice.yaml"}, "default/one is in the manifests twice"},
		"classes of two providers":       {[]string{"-f", "testdata/providers.yaml"}, `machine classes have two providers, "AWS" and "GCP"`},
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
	for _, flag := range []string{"-f", "-replicas", "-seed", "-speed", "-faults", "-v", "-timeout"} {
		require.Contains(t, out.String(), "  "+flag)
	}
	require.Empty(t, errOut.String())
}
