// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A Step is one step of a release.
type Step struct {
	// Text says what is done.
	Text string
	// do does it.
	do func(root string) error
}

// nested are the folders of the released modules inside the repository, in the order of their tags: each requires only
// those before it.
var nested = []string{"examples", "examples/mcm", "examples/programs/kubectl-machines", "examples/samples/controllerruntime", "examples/samples/nodetools"}

// Steps returns the steps of a release in their order. First the branch gets a commit with the section of the changelog
// and the version in all documents and projects that name one. The modules inside the repository get their tags on a
// commit of their own, which no branch has: their go.mod files require the version and replace nothing, since the go
// command installs no program of a module with replacements. On the branch the replacements stay. Nothing is pushed.
func Steps(version string, now time.Time) []Step {
	steps := []Step{
		{"CHANGELOG.md: [Unreleased] becomes [" + version[1:] + "]", func(root string) error { return writeChangelog(root, version, now) }},
		{"documents and projects name " + version, func(root string) error { return nameVersion(root, version) }},
		{"git commit", gitStep("commit", "--quiet", "--all", "--message", "release "+version)},
		{"git tag " + version, tag(version)},
		{"git checkout --detach", gitStep("checkout", "--quiet", "--detach")},
		{"go.mod of " + strings.Join(nested, ", ") + " requires " + version + " and replaces nothing", func(root string) error { return writeReleased(root, version) }},
		{"git commit", gitStep("commit", "--quiet", "--all", "--message", "examples: release "+version)},
	}
	for _, folder := range nested {
		steps = append(steps, Step{"git tag " + folder + "/" + version, tag(folder + "/" + version)})
	}
	return append(steps, Step{"git checkout -", gitStep("checkout", "--quiet", "-")})
}

// Last is what a person does after the steps.
func Last(version string) string {
	tags, modules := []string{version}, []string{SDK + "@" + version}
	for _, folder := range nested {
		tags, modules = append(tags, folder+"/"+version), append(modules, SDK+"/"+folder+"@"+version)
	}
	return fmt.Sprintf("git push --atomic origin HEAD %s   # all tags or none, so that no proxy sees one without the others\ngo list -m %s",
		strings.Join(tags, " "), strings.Join(modules, " "))
}

// Do makes the steps.
func Do(root string, steps []Step) error {
	for _, s := range steps {
		if err := s.do(root); err != nil {
			return fmt.Errorf("%s: %w", s.Text, err)
		}
	}
	return nil
}

func gitStep(args ...string) func(root string) error {
	return func(root string) error {
		_, err := git(root, args...)
		return err
	}
}

func tag(name string) func(root string) error {
	return gitStep("tag", "--annotate", "--message", name, name)
}

// writeChangelog gives the lines of [Unreleased] the heading of the version.
func writeChangelog(root, version string, now time.Time) error {
	name := filepath.Join(root, changelog)
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	section := unreleased + "\n## [" + version[1:] + "] - " + now.UTC().Format(time.DateOnly) + "\n"
	return os.WriteFile(name, []byte(strings.Replace(string(data), unreleased, section, 1)), 0o644)
}

// named finds a module of this repository with a released version.
var named = regexp.MustCompile(`(` + regexp.QuoteMeta(SDK) + `[a-z0-9/-]*[@ ]|cmd/release -proxy \S+ )v\d+\.[1-9]\d*\.\d+\b`)

// nameVersion writes the version into the documents and the go.mod files that name a released one.
func nameVersion(root, version string) error {
	list, err := git(root, "ls-files", "-z", "--", "*.md", "*go.mod")
	if err != nil {
		return err
	}
	for file := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		name := filepath.Join(root, file)
		was, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		is := named.ReplaceAll(was, []byte("${1}"+version))
		if file == changelog || bytes.Equal(was, is) {
			continue
		}
		if err := os.WriteFile(name, is, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeReleased writes the go.mod files of the released modules.
func writeReleased(root, version string) error {
	for _, folder := range nested {
		data, err := releasedMod(root, folder, version)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, folder, "go.mod"), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
