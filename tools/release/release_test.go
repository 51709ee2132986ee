// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	r.write("docs/a.md", "go get "+release.SDK+"/a@v0.3.0, beside "+release.SDK+" v0.0.0\n")
	r.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n- first\n")
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

func (r *repository) commit() {
	r.Helper()
	r.git("add", "--all")
	r.git("commit", "--quiet", "--message", "x")
}

// released makes a release, and writes a line into the changelog for the next one.
func (r *repository) released(version, line string) {
	r.Helper()
	require.NoError(r, release.Check(r.root, version))
	require.NoError(r, release.Do(r.root, release.Steps(version, time.Unix(0, 0))))
	text, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	require.NoError(r, err)
	r.write("CHANGELOG.md", strings.Replace(string(text), "[Unreleased]\n", "[Unreleased]\n\n"+line+"\n", 1))
	r.commit()
}

func TestRelease_Done_TagsRequireTheVersionAndReplaceNothing(t *testing.T) {
	r := newRepository(t)
	before := r.git("rev-parse", "--abbrev-ref", "HEAD")
	r.released("v0.1.0", "- second")
	for path, folder := range release.Folders {
		if path == release.SDK {
			continue
		}
		mod := r.git("show", folder+"/v0.1.0:"+folder+"/go.mod")
		require.Contains(t, mod, release.SDK+" v0.1.0", folder)
		require.NotContains(t, mod, "replace", folder)
		require.Contains(t, release.Last("v0.1.0"), " "+folder+"/v0.1.0 ")
		require.Equal(t, r.git("rev-parse", "v0.1.0^{commit}"), r.git("rev-parse", folder+"/v0.1.0^{commit}^"), "one commit after the SDK")
	}
	require.Contains(t, r.git("show", "examples/mcm/v0.1.0:examples/mcm/go.mod"), release.Examples+" v0.1.0")
	require.Equal(t, before, r.git("rev-parse", "--abbrev-ref", "HEAD"), "on the branch")
	for _, tag := range []string{"HEAD", "v0.1.0"} {
		require.Contains(t, r.git("show", tag+":examples/go.mod"), "replace "+release.SDK+" => ../", tag)
	}
	require.Equal(t, "go get "+release.SDK+"/a@v0.1.0, beside "+release.SDK+" v0.0.0\n", r.git("show", "v0.1.0:docs/a.md"))
	require.Equal(t, "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 1970-01-01\n\n- first\n", r.git("show", "v0.1.0:CHANGELOG.md"))
	require.ErrorContains(t, release.Check(r.root, "v0.1.0"), "the last release is v0.1.0")
	next, err := release.Next(r.root)
	require.NoError(t, err)
	require.Equal(t, "v0.2.0", next)
}

func TestRelease_NotReady_SaysEverything(t *testing.T) {
	r := newRepository(t)
	r.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n## [0.0.1]\n\n- old\n")
	err := release.Check(r.root, "v0.2.0")
	require.ErrorIs(t, err, release.ErrNotReady)
	for _, text := range []string{"the tree is not clean", "CHANGELOG.md has no line under [Unreleased]", `is "v0.0.1", and the last tag is "": fetch the tags`} {
		require.ErrorContains(t, err, text)
	}
	for _, bad := range []string{"0.2.0", "v0.2", "v0.2.0+build", ""} {
		require.ErrorContains(t, release.Check(r.root, bad), "is no version such as v0.1.0")
	}
	require.ErrorContains(t, release.Check(r.root, "v2.0.0"), "should be v0 or v1, not v2")
}

func TestRelease_BrokenName_NeedsAMinorVersionAndTheChangelog(t *testing.T) {
	r := newRepository(t)
	r.released("v0.1.0", "- a: `A` takes numbers.")
	r.write("a/a.go", "package a\n\nfunc A(...int) {}\n\nfunc B() {}\n")
	r.write("examples/b/b.go", "package b\n")
	r.write("examples/mcm/d.go", "package mcm\n")
	r.write("examples/samples/controllerruntime/e.go", "package controllerruntime\n")
	r.write("examples/programs/kubectl-machines/f.go", "package main\n\nfunc main() {}\n")
	r.write("examples/samples/nodetools/g.go", "package main\n\nfunc main() {}\n")
	r.write("examples/e2e/c.go", "package e2e\n")
	r.commit()
	require.ErrorContains(t, release.Check(r.root, "v0.1.1"), "A: changed from func() to func(...int)")
	require.ErrorContains(t, release.Check(r.root, "v0.1.1"), release.Examples+"/b: B: removed")
	err := release.Check(r.root, "v0.2.0")
	require.NotContains(t, err.Error(), "A: changed")
	for _, name := range []string{"B", "D", "E"} {
		require.ErrorContains(t, err, name+": removed: CHANGELOG.md does not say under [Unreleased] what to write instead of "+name)
	}
	r.write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n\n- `A` takes numbers, B, D, E are removed.\n\n## [0.1.0]\n")
	r.commit()
	r.released("v0.2.0", "- c: new")
	r.write("a/a.go", "package a\n\nfunc A(...int) {}\n\nfunc B() {}\n\nfunc C() {}\n")
	r.commit()
	require.NoError(t, release.Check(r.root, "v0.2.1"), "an addition is allowed")
	r.git("rm", "-r", "--quiet", "a")
	r.write("b/b.go", "package b\n")
	r.commit()
	require.ErrorContains(t, release.Check(r.root, "v0.2.1"), "package "+release.SDK+"/a is gone")
}
