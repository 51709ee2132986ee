// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	mcm       = "examples/mcm"
	mcmModule = "github.com/gardener/machine-controller-manager"
)

// TestConsumers_OneReplaceLine_BuildAndPass builds and tests projects that import MCM, first with
// the replace line, and then without it, after the commands of the README of examples/mcm.
func TestConsumers_OneReplaceLine_BuildAndPass(t *testing.T) {
	blocks := newOutside(t).blocks(mcm+"/README.md", "sh")
	require.Len(t, blocks, 2)
	for _, project := range []string{"provider", "extension", "autoscaler"} {
		t.Run(project, func(t *testing.T) {
			o := newOutside(t)
			o.project(mcm+"/testdata/consumers/"+project, mcm)
			o.out("go", "mod", "tidy")
			o.out("go", "mod", "tidy", "-diff")
			o.integration()
			before := o.passing()

			o.mark()
			o.out("sh", "-ec", blocks[0])
			require.Empty(t, o.filesWith(mcmModule, "*.go"))
			o.out("sh", "-ec", blocks[1])
			require.Empty(t, o.filesWith(mcmModule, "*.go", "go.mod", "go.sum"))
			require.Equal(t, before, o.passing())
		})
	}
}

// TestConsumers_OlderControllerRuntime_IsNotRaised builds and tests a project with the replace line alone, pinned to
// versions of controller-runtime whose client-go is older than the newest by far: v0.20 needs client-go v0.32, v0.22
// needs v0.34, and neither compiles with v0.36.
func TestConsumers_OlderControllerRuntime_IsNotRaised(t *testing.T) {
	for pinned, clientGo := range map[string]string{"v0.20.2": "v0.35.0", "v0.22.5": "v0.35.0"} {
		t.Run(pinned, func(t *testing.T) {
			const runtime = "sigs.k8s.io/controller-runtime"
			o := newOutside(t)
			o.project(mcm+"/testdata/consumers/operator", mcm)
			o.out("go", "mod", "edit", "-require="+runtime+"@"+pinned)
			o.out("go", "mod", "tidy")
			require.Equal(t, pinned+"\n"+clientGo+"\n", o.out("go", "list", "-m", "-f", "{{.Version}}", runtime, "k8s.io/client-go"))
			require.NotEmpty(t, o.passing())
		})
	}
}

// integration builds the integration test of a project, if it has one, and runs it without its environment. Then it
// deletes the test: what calls a suite of MCM is rewritten by hand.
func (o *outside) integration() {
	o.Helper()
	const suite = "./test/integration/controller"
	folder := filepath.Join(o.folder, suite)
	if _, err := os.Stat(folder); os.IsNotExist(err) {
		return
	}
	o.out("go", "vet", "./test/...")
	text, err := o.try("go", "test", "-count=1", suite)
	require.Error(o, err)
	for _, want := range []string{"environment variable CONTROL_KUBECONFIG: a value is required", "Ran 0 of 9 Specs"} {
		require.Contains(o, uncolored.ReplaceAllString(text, ""), want)
	}
	require.NoError(o, os.RemoveAll(folder))
}

// uncolored finds the colors of a terminal.
var uncolored = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// passing builds a project and returns the names of its tests, all of which have passed. A program
// starts as far as the check of its flags.
func (o *outside) passing() []string {
	o.Helper()
	o.out("go", "vet", "./...")
	tests := o.tests()
	require.NotEmpty(o, tests)
	for name, ended := range tests {
		require.Equal(o, "pass", ended, name)
	}
	if _, err := os.Stat(filepath.Join(o.folder, "cmd")); err == nil {
		binary := filepath.Join(o.TempDir(), "machine-controller")
		o.out("go", "build", "-o", binary, "./cmd/machine-controller")
		help, _ := o.try(binary, "--help") // its status is pflag's
		require.Contains(o, help, "--machine-creation-timeout")
		bad, err := o.try(binary, "--port=0", "--target-kubeconfig=none", "--v=2")
		require.Error(o, err)
		require.Contains(o, bad, "--port: 0 is not between 1 and 65535")
	}
	return slices.Sorted(maps.Keys(tests))
}

// mark adds a comment to each source of the project. With -trimpath the go command caches what go fix
// found in a file, with its path, and uses that for an equal file in another folder.
func (o *outside) mark() {
	o.Helper()
	for _, path := range o.filesWith("", "*.go") {
		data, err := os.ReadFile(path)
		require.NoError(o, err)
		require.NoError(o, os.WriteFile(path, append(data, "\n// "+o.folder+"\n"...), 0o600))
	}
}

// filesWith returns the files of the project whose names match and that have a text.
func (o *outside) filesWith(text string, names ...string) []string {
	o.Helper()
	var found []string
	require.NoError(o, filepath.WalkDir(o.folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.ContainsFunc(names, func(n string) bool { is, _ := filepath.Match(n, d.Name()); return is }) {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			found = append(found, path)
		}
		return err
	}))
	return found
}
