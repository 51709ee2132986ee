// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"
)

// ErrNotReady is what the errors of [Check] wrap.
var ErrNotReady = errors.New("not ready")

// Template is the folder of the provider template, which requires the released version.
const Template = "examples/samples/provider-template"

// Check returns all that stands in the way of a release of the repository at root, in one error,
// or nil: the version, the changelog, the tree, the provider template, and exported names that
// changed against the last tag in a way that the version does not allow.
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
	problems := []error{checkTree(root), checkChangelog(root, version), checkTemplate(root, version)}
	if last != "" && semver.Compare(last, version) >= 0 {
		problems = append(problems, fmt.Errorf("%w: the last release is %s", ErrNotReady, last))
	}
	if last != "" {
		problems = append(problems, checkAPI(root, last, version))
	}
	return errors.Join(problems...)
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

// checkChangelog wants a section with the version, and nothing left under Unreleased.
func checkChangelog(root, version string) error {
	data, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	_, unreleased, _ := strings.Cut(string(data), "\n## [Unreleased]\n")
	unreleased, _, _ = strings.Cut(unreleased, "\n## [")
	var problems []error
	if strings.TrimSpace(unreleased) != "" {
		problems = append(problems, fmt.Errorf("%w: CHANGELOG.md has lines under [Unreleased]: move them to [%s]", ErrNotReady, version[1:]))
	}
	if !strings.Contains(string(data), "\n## ["+version[1:]+"]") {
		problems = append(problems, fmt.Errorf("%w: CHANGELOG.md has no section [%s]", ErrNotReady, version[1:]))
	}
	return errors.Join(problems...)
}

// checkTemplate wants the provider template to require the version.
func checkTemplate(root, version string) error {
	f, err := readMod(filepath.Join(root, Template, "go.mod"))
	if err != nil {
		return err
	}
	for _, r := range f.Require {
		if _, ours := Folders[r.Mod.Path]; ours && r.Mod.Version != version {
			return fmt.Errorf("%w: %s/go.mod requires %s %s", ErrNotReady, Template, r.Mod.Path, r.Mod.Version)
		}
	}
	return nil
}

// checkAPI compares the exported names of the released modules with those of a tag of the SDK. Before version 1 a minor
// version may break them; a patch never may, nor a minor one from version 1 on.
func checkAPI(root, last, version string) error {
	may := semver.Major(last) != semver.Major(version) || semver.Major(version) == "v0" && semver.MajorMinor(last) != semver.MajorMinor(version)
	if may {
		return nil
	}
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
		problems = append(problems, compare(was, is))
	}
	return errors.Join(problems...)
}

// compare returns what in the packages of is breaks importers of those of was.
func compare(was, is map[string]*types.Package) error {
	var problems []error
	for _, path := range slices.Sorted(maps.Keys(was)) {
		before, after := was[path], is[path]
		if after == nil {
			problems = append(problems, fmt.Errorf("%w: package %s is gone", ErrNotReady, path))
			continue
		}
		for _, c := range apidiff.Changes(before, after).Changes {
			if !c.Compatible {
				problems = append(problems, fmt.Errorf("%w: %s: %s", ErrNotReady, path, c.Message))
			}
		}
	}
	return errors.Join(problems...)
}

// load returns the packages of a module that others may import.
func load(folder string) (map[string]*types.Package, error) {
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps, Dir: folder, Env: append(os.Environ(), "GOWORK=off"),
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
