// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"
)

// ErrNotReady is what the errors of [Check] wrap.
var ErrNotReady = errors.New("not ready")

// changelog is the name of the changelog, and unreleased its heading of what no version has yet.
const (
	changelog  = "CHANGELOG.md"
	unreleased = "\n## [Unreleased]\n"
)

// Check returns all that stands in the way of a release of the repository at root, in one error,
// or nil: the version, the changelog, the tree, and exported names that changed against the last
// tag in a way that the version does not allow, or that the changelog does not name.
func Check(root, version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("%w: %q is no version such as v0.1.0", ErrNotReady, version)
	}
	if err := module.Check(SDK, version); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	last, err := lastTag(root)
	if err != nil {
		return err
	}
	lines, latest, err := readChangelog(root)
	if err != nil {
		return err
	}
	problems := []error{checkTree(root)}
	if latest != last {
		problems = append(problems, fmt.Errorf("%w: the last section of %s is %q, and the last tag is %q: fetch the tags", ErrNotReady, changelog, latest, last))
	}
	if strings.TrimSpace(lines) == "" {
		problems = append(problems, fmt.Errorf("%w: %s has no line under [Unreleased]", ErrNotReady, changelog))
	}
	if last != "" && semver.Compare(last, version) >= 0 {
		problems = append(problems, fmt.Errorf("%w: the last release is %s", ErrNotReady, last))
	}
	if last != "" {
		problems = append(problems, checkAPI(root, last, version, lines))
	}
	return errors.Join(problems...)
}

// Next returns the minor version after the last release of the repository at root.
func Next(root string) (string, error) {
	last, err := lastTag(root)
	if err != nil || last == "" {
		return "v0.1.0", err
	}
	major, minor, _ := strings.Cut(semver.MajorMinor(last), ".")
	n, err := strconv.Atoi(minor)
	return fmt.Sprintf("%s.%d.0", major, n+1), err
}

// lastTag returns the newest version of the SDK that has a tag, or nothing.
func lastTag(root string) (string, error) {
	out, err := git(root, "tag", "--list", "v*")
	if err != nil {
		return "", err
	}
	tags := slices.DeleteFunc(strings.Fields(out), func(t string) bool { return !semver.IsValid(t) })
	semver.Sort(tags)
	if len(tags) == 0 {
		return "", nil
	}
	return tags[len(tags)-1], nil
}

func checkTree(root string) error {
	out, err := git(root, "status", "--porcelain")
	if err == nil && out != "" {
		err = fmt.Errorf("%w: the tree is not clean:\n%s", ErrNotReady, out)
	}
	return err
}

// readChangelog returns the lines of the changelog that no version has yet, and the last version that it has.
func readChangelog(root string) (lines, latest string, err error) {
	data, err := os.ReadFile(filepath.Join(root, changelog))
	if err != nil {
		return "", "", err
	}
	_, text, found := strings.Cut(string(data), unreleased)
	if !found {
		return "", "", fmt.Errorf("%w: %s has no section [Unreleased]", ErrNotReady, changelog)
	}
	lines, rest, found := strings.Cut(text, "\n## [")
	if found {
		rest, _, _ = strings.Cut(rest, "]")
		latest = "v" + rest
	}
	return lines, latest, nil
}

// checkAPI compares the exported names of the released modules with those of a tag of the SDK. A patch breaks none, nor
// a minor version from version 1 on. Before, a minor version may break the names that its lines of the changelog name.
func checkAPI(root, last, version, lines string) error {
	if semver.Major(last) != semver.Major(version) {
		return nil
	}
	may := semver.Major(version) == "v0" && semver.MajorMinor(last) != semver.MajorMinor(version)
	old, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(old) }()
	before := filepath.Join(old, "tree")
	if _, err := git(root, "worktree", "add", "--detach", before, last); err != nil {
		return err
	}
	defer func() { _, _ = git(root, "worktree", "remove", "--force", before) }()
	var problems []error
	for _, folder := range Folders {
		if _, err := os.Stat(filepath.Join(before, folder, "go.mod")); os.IsNotExist(err) {
			continue // it is released for the first time
		}
		was, err := load(filepath.Join(before, folder))
		if err != nil {
			return err
		}
		is, err := load(filepath.Join(root, folder))
		if err != nil {
			return err
		}
		for _, b := range compare(was, is) {
			switch {
			case !may:
				problems = append(problems, fmt.Errorf("%w: %s", ErrNotReady, b.text))
			case !regexp.MustCompile(`\b` + regexp.QuoteMeta(b.name) + `\b`).MatchString(lines):
				problems = append(problems, fmt.Errorf("%w: %s: %s does not say under [Unreleased] what to write instead of %s", ErrNotReady, b.text, changelog, b.name))
			}
		}
	}
	return errors.Join(problems...)
}

// broken is an exported name that importers cannot use as before.
type broken struct{ name, text string }

// compare returns what in the packages of is breaks importers of those of was.
func compare(was, is map[string]*types.Package) []broken {
	var all []broken
	for _, folder := range slices.Sorted(maps.Keys(was)) {
		before, after := was[folder], is[folder]
		if after == nil {
			all = append(all, broken{path.Base(folder), "package " + folder + " is gone"})
			continue
		}
		for _, c := range apidiff.Changes(before, after).Changes {
			if c.Compatible {
				continue
			}
			name, _, _ := strings.Cut(c.Message, ": ")
			all = append(all, broken{name[strings.LastIndexByte(name, '.')+1:], folder + ": " + c.Message})
		}
	}
	return all
}

// load returns the packages of a module that others may import.
func load(folder string) (map[string]*types.Package, error) {
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps, Dir: folder, Env: append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath"), // equal sources have one export file
	}
	loaded, err := packages.Load(config, "./...")
	if err != nil {
		return nil, err
	}
	all := map[string]*types.Package{}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("%s: %w", p.PkgPath, p.Errors[0])
		}
		if p.Name != "main" && !strings.Contains(p.PkgPath+"/", "/internal/") {
			all[p.PkgPath] = p.Types
		}
	}
	return all, nil
}
