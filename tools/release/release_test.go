// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/tools/release"
)

// repository is a scratch repository with the modules of ours.
type repository struct {
	*testing.T
	root string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t, t.TempDir()}
	r.git("init", "--quiet")
	r.git("config", "user.name", "test")
	r.git("config", "user.email", "test@example.com")
	r.write("go.mod", "module "+release.SDK+"\n\ngo 1.26\n")
	r.write("a/a.go", "package a\n\nfunc A() {}\n")
	r.write("examples/go.mod", "module "+release.Examples+"\n\ngo 1.26\n\nrequire "+release.SDK+" v0.0.0\n\nreplace "+release.SDK+" => ../\n")
	r.write("examples/b/b.go", "package b\n\nimport \""+release.SDK+"/a\"\n\nfunc B() { a.A() }\n")
	r.write("examples/e2e/go.mod", "module "+release.Examples+"/e2e\n\ngo 1.26\n\nrequire (\n\t"+release.SDK+" v0.0.0\n\t"+release.Examples+" v0.0.0\n)\n\n"+
		"replace (\n\t"+release.SDK+" => ../../\n\t"+release.Examples+" => ../\n)\n")
	r.write("examples/samples/controllerruntime/go.mod", "module "+release.Examples+"/samples/controllerruntime\n\ngo 1.26\n\nrequire (\n\t"+release.SDK+" v0.0.0\n\t"+release.Examples+" v0.0.0\n)\n\n"+
		"replace (\n\t"+release.SDK+" => ../../../\n\t"+release.Examples+" => ../../\n)\n")
	r.write("examples/programs/kubectl-machines/go.mod", "module "+release.Examples+"/programs/kubectl-machines\n\ngo 1.26\n\nrequire (\n\t"+release.SDK+" v0.0.0\n\t"+release.Examples+" v0.0.0\n)\n\n"+
		"replace (\n\t"+release.SDK+" => ../../../\n\t"+release.Examples+" => ../../\n)\n")
	r.write("examples/samples/nodetools/go.mod", "module "+release.Examples+"/samples/nodetools\n\ngo 1.26\n\nrequire "+release.SDK+" v0.0.0\n\nreplace "+release.SDK+" => ../../../\n")
	r.write("examples/samples/nodetools/g.go", "package main\n\nimport \""+release.SDK+"/a\"\n\nfunc main() { a.A() }\n")
	r.write("examples/mcm/go.mod", "module example.com/mcm\n\ngo 1.26\n\nrequire (\n\t"+release.SDK+" v0.0.0\n\t"+release.Examples+" v0.0.0\n)\n\n"+
		"replace (\n\t"+release.SDK+" => ../../\n\t"+release.Examples+" => ../\n)\n")
	r.write("examples/mcm/d.go", "package mcm\n\nimport \""+release.Examples+"/b\"\n\nvar D = b.B\n")
	r.write("examples/samples/controllerruntime/e.go", "package controllerruntime\n\nimport \""+release.Examples+"/b\"\n\nvar E = b.B\n")
	r.write("examples/programs/kubectl-machines/f.go", "package main\n\nimport \""+release.Examples+"/b\"\n\nfunc main() { b.B() }\n")
	r.write("examples/e2e/c.go", "package e2e\n\nimport \""+release.Examples+"/b\"\n\nfunc C() { b.B() }\n")
	r.require("v0.1.0")
	r.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- first\n")
	r.commit()
	return r
}

func (r *repository) git(args ...string) string {
	r.Helper()
	out, err := exec.CommandContext(r.Context(), "git", append([]string{"-C", r.root}, args...)...).CombinedOutput()
	require.NoError(r, err, string(out))
	return string(out)
}

func (r *repository) write(name, text string) {
	r.Helper()
	path := filepath.Join(r.root, name)
	require.NoError(r, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(r, os.WriteFile(path, []byte(text), 0o600))
}

// require writes the go.mod of the template.
func (r *repository) require(version string) {
	r.Helper()
	r.write(release.Template+"/go.mod", "module example.com/p\n\ngo 1.26\n\nrequire "+release.Examples+" "+version+"\n")
}

func (r *repository) commit() {
	r.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "--message", "x")
}

// next prepares a version.
func (r *repository) next(version string) {
	r.Helper()
	r.require(version)
	r.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n## ["+version[1:]+"]\n\n- more\n")
	r.commit()
}

func TestRelease_First_TagsTheSDKBeforeTheExamples(t *testing.T) {
	r := newRepository(t)
	require.NoError(t, release.Check(r.root, "v0.1.0"))
	require.NoError(t, release.Do(r.root, release.Steps("v0.1.0")))
	require.Contains(t, r.git("show", "examples/v0.1.0:examples/go.mod"), "require "+release.SDK+" v0.1.0")
	require.Contains(t, r.git("show", "examples/mcm/v0.1.0:examples/mcm/go.mod"), release.Examples+" v0.1.0")
	require.Contains(t, r.git("show", "v0.1.0:examples/go.mod"), "require "+release.SDK+" v0.0.0")
	require.Equal(t, "examples: require v0.1.0", strings.TrimSpace(r.git("log", "-1", "--format=%s", "examples/v0.1.0")))
	require.Empty(t, r.git("status", "--porcelain"))
	require.ErrorContains(t, release.Check(r.root, "v0.1.0"), "the last release is v0.1.0")
}

func TestRelease_Done_EveryModuleBuildsAlone(t *testing.T) {
	r := newRepository(t)
	require.NoError(t, release.Do(r.root, release.Steps("v0.1.0")))
	for _, folder := range []string{".", "examples", "examples/mcm", "examples/samples/controllerruntime", "examples/programs/kubectl-machines", "examples/samples/nodetools", "examples/e2e"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "./...")
		cmd.Dir, cmd.Env = filepath.Join(r.root, folder), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", folder, out)
	}
}

func TestRelease_NotReady_SaysEverything(t *testing.T) {
	r := newRepository(t)
	r.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n- more\n\n## [0.1.0]\n")
	err := release.Check(r.root, "v0.2.0")
	require.ErrorIs(t, err, release.ErrNotReady)
	for _, text := range []string{"the tree is not clean", "has lines under [Unreleased]: move them to [0.2.0]", "has no section [0.2.0]", "requires " + release.Examples + " v0.1.0"} {
		require.ErrorContains(t, err, text)
	}
	for _, bad := range []string{"0.2.0", "v0.2", "v0.2.0+build", ""} {
		require.ErrorContains(t, release.Check(r.root, bad), "is no version such as v0.1.0")
	}
	require.ErrorContains(t, release.Check(r.root, "v2.0.0"), "should be v0 or v1, not v2")
}

func TestRelease_IncompatibleChange_NeedsAMinorVersion(t *testing.T) {
	r := newRepository(t)
	require.NoError(t, release.Do(r.root, release.Steps("v0.1.0")))
	r.write("a/a.go", "package a\n\nfunc A(...int) {}\n\nfunc B() {}\n")
	r.write("examples/b/b.go", "package b\n")
	r.write("examples/mcm/d.go", "package mcm\n")
	r.write("examples/samples/controllerruntime/e.go", "package controllerruntime\n")
	r.write("examples/programs/kubectl-machines/f.go", "package main\n\nfunc main() {}\n")
	r.write("examples/samples/nodetools/g.go", "package main\n\nfunc main() {}\n")
	r.write("examples/e2e/c.go", "package e2e\n")
	r.next("v0.1.1")
	require.ErrorContains(t, release.Check(r.root, "v0.1.1"), "A: changed from func() to func(...int)")
	require.ErrorContains(t, release.Check(r.root, "v0.1.1"), release.Examples+"/b: B: removed")
	r.next("v0.2.0")
	require.NoError(t, release.Check(r.root, "v0.2.0"))
	require.NoError(t, release.Do(r.root, release.Steps("v0.2.0")))
	r.write("a/a.go", "package a\n\nfunc A(...int) {}\n\nfunc B() {}\n\nfunc C() {}\n")
	r.next("v0.2.1")
	require.NoError(t, release.Check(r.root, "v0.2.1"), "an addition is allowed")
	r.git("rm", "-r", "--quiet", "a")
	r.write("b/b.go", "package b\n")
	r.commit()
	require.ErrorContains(t, release.Check(r.root, "v0.2.1"), "package "+release.SDK+"/a is gone")
}
