// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const sdk = "github.com/machinist-dev/machinist"

// program is a Go file from a document.
type program struct {
	from   string // where it stands
	source string
	output string // what it prints; empty if the document does not say so
}

// isTest reports whether the file has to be run with go test.
func (p program) isTest() bool {
	clause, _, _ := strings.Cut(p.source, "\n")
	return strings.HasSuffix(clause, "_test") || strings.Contains(p.source, "\nfunc Test")
}

// module returns the folder of the module that the file can be built in.
func (p program) module() string {
	switch {
	case strings.Contains(p.source, `"`+sdk+"/examples/samples/controllerruntime"):
		return "examples/samples/controllerruntime"
	case strings.Contains(p.source, `"`+sdk+"/examples/"):
		return "examples"
	}
	return "."
}

// programs builds and runs files in a module as if they were folders of it.
type programs struct {
	root    string
	overlay string // what the go command reads instead of the files of the module
	folders []string
}

// layOut gives each program a folder in the module, which the go command sees and the disk
// does not have.
func layOut(t *testing.T, module string, all []program) programs {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", module))
	require.NoError(t, err)
	temp, replace := t.TempDir(), map[string]string{}
	p := programs{root: root, overlay: filepath.Join(temp, "overlay.json")}
	for i, one := range all {
		name, folder := "main.go", fmt.Sprintf("zz_documents/p%02d", i)
		if one.isTest() {
			name = "main_test.go"
		}
		file := filepath.Join(temp, fmt.Sprintf("p%02d.go", i))
		require.NoError(t, os.WriteFile(file, []byte(one.source), 0o600))
		replace[filepath.Join(root, filepath.FromSlash(folder), name)] = file
		p.folders = append(p.folders, "./"+folder)
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(p.overlay, list, 0o600))
	return p
}

// run runs the go command in the module and returns what it prints.
func (p programs) run(t *testing.T, command string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{command, "-overlay", p.overlay}, args...)...)
	cmd.Dir = p.root
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// test builds the tests of a folder, which the disk does not have, and runs them elsewhere.
func (p programs) test(t *testing.T, folder string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "document.test")
	out, err := p.run(t, "test", "-c", "-vet=off", "-o", binary, folder)
	require.NoError(t, err, "%s", out)
	cmd := exec.CommandContext(t.Context(), binary, "-test.v")
	cmd.Dir = t.TempDir()
	printed, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	require.Regexp(t, "--- (PASS|SKIP): ", string(printed), "a test that needs a cluster says why it is skipped")
}

// check builds all programs, and runs the tests and those whose output is known.
func check(t *testing.T, module string, all []program) {
	t.Helper()
	p := layOut(t, module, all)
	for i, one := range all {
		t.Run(one.from, func(t *testing.T) {
			switch {
			case one.isTest():
				p.test(t, p.folders[i])
			case one.output != "":
				out, err := p.run(t, "run", p.folders[i])
				require.NoError(t, err, "%s", out)
				require.Equal(t, strings.TrimSpace(one.output), strings.TrimSpace(out))
			default:
				out, err := p.run(t, "build", "-o", os.DevNull, p.folders[i])
				require.NoError(t, err, "%s", out)
			}
		})
	}
}

// checkAll checks programs of any module.
func checkAll(t *testing.T, all []program) {
	t.Helper()
	of := map[string][]program{}
	for _, p := range all {
		of[p.module()] = append(of[p.module()], p)
	}
	for module, list := range of {
		check(t, module, list)
	}
}
