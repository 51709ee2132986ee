// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"github.com/machinist-dev/machinist/tools/release"
)

const root = "../.."

// outside is a copy of a project in a folder of its own, with released modules.
type outside struct {
	*testing.T
	folder, version string
	env             []string
}

// newOutside copies a project, and serves the modules of this repository as the version that it
// requires. Nothing of it sees this repository. Other modules come from the module cache, or the
// proxy of the environment. The known hashes are those of a module of this repository, so that only
// our modules are taken without one.
func newOutside(t *testing.T, project, hashesOf string) *outside {
	t.Helper()
	o := &outside{T: t, folder: filepath.Join(t.TempDir(), "project")}
	require.NoError(t, os.CopyFS(o.folder, os.DirFS(filepath.Join(root, project))))
	data, err := os.ReadFile(filepath.Join(o.folder, "go.mod"))
	require.NoError(t, err)
	f, err := modfile.Parse("go.mod", data, nil)
	require.NoError(t, err)
	proxy := t.TempDir()
	o.version = required(t, f)
	require.NoError(t, release.Proxy(root, proxy, o.version))

	sums, err := os.ReadFile(filepath.Join(root, hashesOf, "go.sum"))
	require.NoError(t, err)
	own, err := os.ReadFile(filepath.Join(o.folder, "go.sum"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(o.folder, "go.sum"), append(sums, own...), 0o600))

	cache := strings.TrimSpace(o.out("go", "env", "GOMODCACHE"))
	upstream := strings.TrimSpace(o.out("go", "env", "GOPROXY"))
	modules := filepath.Join(t.TempDir(), "modules")
	o.env = append(os.Environ(), "GOWORK=off", "GOMODCACHE="+modules, "GOPRIVATE=", "GONOPROXY=", "GONOSUMDB=github.com/machinist-dev/*",
		"GOFLAGS=-trimpath -modcacherw -buildvcs=false",
		"GOPROXY=file://"+proxy+",file://"+filepath.ToSlash(filepath.Join(cache, "cache", "download"))+","+upstream)
	return o
}

// required returns the one version of our modules that a project requires or replaces MCM by.
func required(t *testing.T, f *modfile.File) string {
	t.Helper()
	versions := map[string]bool{}
	for _, r := range f.Require {
		if _, ours := release.Folders[r.Mod.Path]; ours {
			versions[r.Mod.Version] = true
		}
	}
	for _, r := range f.Replace {
		require.Equal(t, release.MCM, r.New.Path)
		versions[r.New.Version] = true
	}
	require.Len(t, versions, 1, "SDK and examples have one version")
	for v := range versions {
		return v
	}
	return ""
}

// out runs a program in the folder of the project and returns what it prints.
func (o *outside) out(name string, args ...string) string {
	o.Helper()
	text, err := o.try(name, args...)
	require.NoError(o, err, text)
	return text
}

func (o *outside) try(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(o.Context(), name, args...)
	cmd.Dir, cmd.Env = o.folder, o.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestTemplate_ReleasedModules_BuildsAndPasses does what the README of the template says, outside
// of this repository.
func TestTemplate_ReleasedModules_BuildsAndPasses(t *testing.T) {
	o := newOutside(t, release.Template, "examples/e2e")
	o.out("go", "mod", "tidy")
	for _, path := range []string{release.SDK, release.Examples} {
		listed := o.out("go", "list", "-m", "-f", "{{.Version}} {{.Replace}} {{.Dir}}", path)
		require.True(t, strings.HasPrefix(listed, o.version+" <nil> "), "%s: %s", path, listed)
		require.Contains(t, listed, t.TempDir()[:strings.LastIndex(t.TempDir(), string(filepath.Separator))], "from the proxy of the test")
	}
	o.out("go", "vet", "./...")
	binary := filepath.Join(t.TempDir(), "machine-controller-acme")
	o.out("go", "build", "-o", binary, ".")
	help, _ := o.try(binary, "--help") // its status is pflag's
	require.Contains(t, help, "--machine-creation-timeout")
	bad, err := o.try(binary, "--safety-up=1")
	require.Error(t, err)
	require.Contains(t, bad, "it is a flag of the machine-controller-manager")
	bad, err = o.try(binary, "--port=0", "--target-kubeconfig=none")
	require.Error(t, err)
	require.Contains(t, bad, "--port: 0 is not between 1 and 65535")

	passed := o.tests()
	for _, test := range []string{"TestConformance", "TestConformance/ListStaysInScope", "TestManager_Machine_CreatesAndDeletesAServer", "TestDriver_StatusOfTheCloud_HasItsCode"} {
		require.Equal(t, "pass", passed[test], test)
	}
}

// tests runs the tests of the project and returns how each of them ended.
func (o *outside) tests() map[string]string {
	o.Helper()
	out := o.out("go", "test", "-json", "-count=1", "./...")
	ended, lines := map[string]string{}, bufio.NewScanner(bytes.NewReader([]byte(out)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct{ Action, Test string }
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Test != "" && event.Action != "run" && event.Action != "output" {
			ended[event.Test] = event.Action
		}
	}
	require.NoError(o, lines.Err())
	return ended
}
