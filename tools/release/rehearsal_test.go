// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"

	"github.com/machinist-dev/machinist/tools/release"
)

const (
	root     = "../.."
	template = "examples/samples/provider-template"
)

var version = flag.String("version", "", "the version to rehearse; empty means the next minor one")

// rehearsal is a release of this repository in a clone, with what is not committed. Its modules are served by a proxy in
// a folder. It has one module cache, which is empty at the start.
type rehearsal struct {
	folder, clone, tagged, version string
	env                            []string
}

var (
	rehearse = sync.OnceValues(newRehearsal)
	created  string // the folder of the rehearsal
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if created != "" {
		_ = os.RemoveAll(created)
	}
	os.Exit(code)
}

func newRehearsal() (r rehearsal, err error) {
	if created, err = os.MkdirTemp("", "release-"); err != nil {
		return r, err
	}
	r = rehearsal{folder: created, clone: filepath.Join(created, "clone"), tagged: filepath.Join(created, "tagged"), version: *version}
	for _, step := range []func() error{
		r.cloneRepository,
		func() (err error) {
			if r.version == "" {
				r.version, err = release.Next(r.clone)
			}
			return err
		},
		func() error { return release.Check(r.clone, r.version) },
		func() error { return release.Do(r.clone, release.Steps(r.version, time.Now())) },
		func() error {
			return command(r.clone, "git", "worktree", "add", "--quiet", "--detach", r.tagged, "examples/mcm/"+r.version)
		},
		func() error { return release.Proxy(r.tagged, filepath.Join(r.folder, "proxy"), r.version) },
		func() error {
			upstream, err := r.environment()
			r.env = append(r.env, "GOPROXY=file://"+filepath.ToSlash(filepath.Join(r.folder, "proxy"))+","+upstream, "GONOSUMDB=github.com/machinist-dev/*")
			return err
		},
	} {
		if err := step(); err != nil {
			return r, err
		}
	}
	return r, nil
}

// cloneRepository makes a clone with a commit of the files that git knows or would add.
func (r *rehearsal) cloneRepository() error {
	from, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if err := command(r.folder, "git", "clone", "--quiet", from, r.clone); err != nil {
		return err
	}
	return command(r.clone, "sh", "-ec", `
		git config user.name rehearsal
		git config user.email rehearsal@example.com
		git --work-tree="$1" add --all
		git commit --quiet --allow-empty --message rehearsal
		git reset --quiet --hard`, "sh", from)
}

// environment sets that of a user who has nothing of this repository, and returns the proxies of other modules: the
// module cache of the environment, then its proxies.
func (r *rehearsal) environment() (upstream string, err error) {
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY", "GOCACHE").Output() //nolint:noctx // it ends by itself
	if err != nil {
		return "", err
	}
	set := strings.Split(strings.TrimSpace(string(out)), "\n")
	r.env = append(os.Environ(), "GOWORK=off", "GOPRIVATE=", "GONOPROXY=", "GOFLAGS=-trimpath -modcacherw -buildvcs=false", "HOME="+r.folder, "GOCACHE="+set[2],
		"GOPATH="+filepath.Join(r.folder, "go"), "GOMODCACHE="+filepath.Join(r.folder, "modules"), "GOBIN="+filepath.Join(r.folder, "bin"))
	return "file://" + filepath.ToSlash(filepath.Join(set[0], "cache", "download")) + "," + set[1], nil
}

func command(folder, name string, args ...string) error {
	cmd := exec.Command(name, args...) //nolint:noctx // it ends by itself
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, args, err, out)
	}
	return nil
}

// outside is a folder outside of the repository, with the released modules.
type outside struct {
	*testing.T
	rehearsal
	folder string
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	r, err := rehearse()
	require.NoError(t, err)
	return &outside{t, r, t.TempDir()}
}

// project copies a project of the repository. The known hashes are those of a module of the repository, so that only
// our modules are taken without one.
func (o *outside) project(from, hashesOf string) {
	o.Helper()
	o.folder = filepath.Join(o.folder, "project")
	require.NoError(o, os.CopyFS(o.folder, os.DirFS(filepath.Join(o.clone, from))))
	sums, err := os.ReadFile(filepath.Join(root, hashesOf, "go.sum"))
	require.NoError(o, err)
	own, err := os.ReadFile(filepath.Join(o.folder, "go.sum"))
	if !os.IsNotExist(err) {
		require.NoError(o, err)
	}
	require.NoError(o, os.WriteFile(filepath.Join(o.folder, "go.sum"), append(sums, own...), 0o600))
}

// program makes a module with a program that imports a package.
func (o *outside) program(imported string) {
	o.Helper()
	require.NoError(o, os.WriteFile(filepath.Join(o.folder, "main.go"), []byte("package main\n\nimport _ \""+imported+"\"\n\nfunc main() {}\n"), 0o600))
	o.out("go", "mod", "init", "example.com/program")
}

// out runs a program in the folder and returns what it prints.
func (o *outside) out(name string, args ...string) string {
	o.Helper()
	var problem bytes.Buffer
	cmd := o.command(name, args...)
	cmd.Stderr = &problem
	out, err := cmd.Output()
	require.NoError(o, err, "%s %s: %s%s", name, args, out, &problem)
	return string(out)
}

// try returns how a program ends, and all that it prints.
func (o *outside) try(name string, args ...string) (string, error) {
	out, err := o.command(name, args...).CombinedOutput()
	return string(out), err
}

func (o *outside) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(o.Context(), name, args...)
	cmd.Dir, cmd.Env = o.folder, o.env
	return cmd
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

// blocks returns the commands of a document in the blocks with this language.
func (o *outside) blocks(document, language string) (all []string) {
	o.Helper()
	data, err := os.ReadFile(filepath.Join(o.clone, document))
	require.NoError(o, err)
	for _, rest := range strings.Split(string(data), "```"+language+"\n")[1:] {
		commands, _, closed := strings.Cut(rest, "```")
		require.True(o, closed)
		all = append(all, commands)
	}
	require.NotEmpty(o, all, "%s has no block ```%s", document, language)
	return all
}

func TestReadme_Commands_GetThePackage(t *testing.T) {
	o := newOutside(t)
	o.program(release.SDK + "/drain")
	o.out("sh", "-ec", o.blocks("README.md", "sh get")[0])
	o.out("go", "build", "./...")
	require.Equal(t, o.version+"\n", o.out("go", "list", "-m", "-f", "{{.Version}}", release.SDK))
}

// TestUnpublished_Commands_StandForTheVersion has no proxy with the version but the one that the commands of the page
// make from a clone. The address of the repository is that of the rehearsal's clone.
func TestUnpublished_Commands_StandForTheVersion(t *testing.T) {
	o := newOutside(t)
	upstream, err := o.environment()
	require.NoError(t, err)
	o.env = append(o.env, "GOPROXY="+upstream, "GONOSUMDB=", "GOMODCACHE="+filepath.Join(t.TempDir(), "modules"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+o.clone+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+release.SDK)
	o.program(release.SDK + "/drain")
	get := o.blocks("README.md", "sh get")[0]
	text, err := o.try("sh", "-ec", get)
	require.Error(t, err, text)
	o.out("sh", "-ec", o.blocks("docs/stable.md", "sh unpublished")[0]+get+"go build .")
}

// TestPackages_EachAlone_Builds requires nothing but the package.
func TestPackages_EachAlone_Builds(t *testing.T) {
	o := newOutside(t)
	o.folder = o.tagged
	list := strings.Fields(o.out("go", "list", "./..."))
	require.Contains(t, list, release.SDK+"/drain")
	for _, path := range list {
		if strings.Contains(path+"/", "/internal/") {
			continue
		}
		o := newOutside(t)
		o.program(path)
		o.out("go", "get", path+"@"+o.version)
		o.out("go", "build", "-o", os.DevNull, ".") // without the linker
	}
}

// TestTemplate_CommandsOfThePage_BuildAndPass does what docs/provider.md says, outside of the repository.
func TestTemplate_CommandsOfThePage_BuildAndPass(t *testing.T) {
	o := newOutside(t)
	page, err := os.ReadFile(filepath.Join(o.clone, "docs", "provider.md"))
	require.NoError(t, err)
	commands := regexp.MustCompile(`(?m)(^    .*\n)*^    cp -r ` + regexp.QuoteMeta(template) + ` ~/(\S+)\n(^    .*\n)*`).FindSubmatch(page)
	require.NotNil(t, commands, "docs/provider.md does not copy the template")
	o.folder = o.clone
	o.out("sh", "-ec", string(commands[0]))

	o.folder = filepath.Join(o.rehearsal.folder, string(commands[2]))
	for _, path := range []string{release.SDK, release.Examples} {
		require.Equal(t, o.version+" <nil>\n", o.out("go", "list", "-m", "-f", "{{.Version}} {{.Replace}}", path))
	}
	o.out("go", "vet", "./...")
	binary := filepath.Join(o.folder, "bin", "machine-controller-acme")
	help, _ := o.try(binary, "--help") // its status is pflag's
	require.Contains(t, help, "--machine-creation-timeout")
	bad, err := o.try(binary, "--safety-up=1")
	require.Error(t, err)
	require.Contains(t, bad, "it is a flag of the machine-controller-manager")
	bad, err = o.try(binary, "--port=0", "--target-kubeconfig=none")
	require.Error(t, err)
	require.Contains(t, bad, "--port: 0 is not between 1 and 65535")

	listed := o.out("go", "test", "-list", ".", "./...")
	for _, test := range []string{"TestConformance", "TestManager_Machine_CreatesAndDeletesAServer", "TestDriver_StatusOfTheCloud_HasItsCode"} {
		require.Contains(t, listed, test+"\n", "the commands have run it")
	}
}

func TestPrograms_GoInstall_MakesEachOfThem(t *testing.T) {
	o := newOutside(t)
	helps := map[string]bool{"manager": false, "machine-controller": false, "machine-controller-manager": false, "kubectl-machines": false}
	for _, folder := range release.Folders {
		o.folder = filepath.Join(o.tagged, folder)
		args, names := []string{"install", "-ldflags=-s -w"}, []string{} // a shorter link
		for program := range strings.FieldsSeq(o.out("go", "list", "-mod=mod", "-f", `{{if eq .Name "main"}}{{.ImportPath}}{{end}}`, "./...")) {
			args, names = append(args, program+"@"+o.version), append(names, path.Base(program))
		}
		o.folder = t.TempDir()
		if len(names) == 0 {
			continue
		}
		o.out("go", args...)
		for _, name := range names { // now: a program of another module may have the same name
			if _, has := helps[name]; has {
				text, _ := o.try(filepath.Join(o.rehearsal.folder, "bin", name), "--help") // its status is pflag's
				require.Regexp(t, `(?m)^ +(-\w, )?--?\w`, text, "%s of %s does not list its flags", name, folder)
				helps[name] = true
			}
		}
	}
	require.NotContains(t, slices.Collect(maps.Values(helps)), false, "%v", helps)
}

// TestAPI_NextVersion_BreaksNothing compares the exported names with those of the tag that was made last, which is the
// rehearsed one: the check before it has compared that with the release before.
func TestAPI_NextVersion_BreaksNothing(t *testing.T) {
	o := newOutside(t)
	o.folder = filepath.Join(t.TempDir(), "next")
	require.NoError(t, command(o.clone, "git", "worktree", "add", "--quiet", "--detach", o.folder))
	text, err := os.ReadFile(filepath.Join(o.folder, "CHANGELOG.md"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(o.folder, "CHANGELOG.md"), []byte(strings.Replace(string(text), "\n## [Unreleased]\n", "\n## [Unreleased]\n- x\n", 1)), 0o600))
	require.NoError(t, command(o.folder, "git", "commit", "--quiet", "--all", "--message", "x"))
	require.NoError(t, release.Check(o.folder, semver.MajorMinor(o.version)+".1"))
}
