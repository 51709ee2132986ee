// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Step is one step of a release.
type Step struct {
	// Text says what is done.
	Text string
	// do does it.
	do func(root string) error
}

// requirers are the files that require modules of this repository beside a replacement for them. All
// of them get the version: a module that requires an older SDK than the examples do is not built
// alone.
var requirers = []string{"examples/go.mod", "examples/mcm/go.mod", "examples/samples/controllerruntime/go.mod", "examples/programs/kubectl-machines/go.mod", "examples/samples/nodetools/go.mod", "examples/e2e/go.mod"}

// Steps returns the steps of a release in their order. The SDK gets its tag first: the go.mod files
// of the other modules require it, and are committed before their tags. Nothing is pushed.
func Steps(version string) []Step {
	examples, mcm, files := "examples/"+version, "examples/mcm/"+version, strings.Join(requirers, " and ")
	return []Step{
		{"git tag " + version, tag(version)},
		{files + " require " + version, func(root string) error { return writeRequirers(root, version) }},
		{"git commit " + files, func(root string) error {
			_, err := git(root, append([]string{"commit", "--quiet", "--message", "examples: require " + version, "--"}, requirers...)...)
			return err
		}},
		{"git tag " + examples, tag(examples)},
		{"git tag " + mcm, tag(mcm)},
	}
}

// Last is what a person does after the steps.
func Last(version string) string {
	return fmt.Sprintf("git push --atomic origin HEAD %[1]s examples/%[1]s examples/mcm/%[1]s   # all tags or none, so that no proxy sees one without the others\n"+
		"go list -m %[2]s@%[1]s %[3]s@%[1]s %[4]s@%[1]s", version, SDK, Examples, MCM)
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

func tag(name string) func(root string) error {
	return func(root string) error {
		_, err := git(root, "tag", "--annotate", "--message", name, name)
		return err
	}
}

// writeRequirers writes the version into the files that require it. Their replacements stay: they
// count in this repository alone.
func writeRequirers(root, version string) error {
	for _, file := range requirers {
		name := filepath.Join(root, file)
		f, err := readMod(name)
		if err != nil {
			return err
		}
		if err := requireOurs(f, version); err != nil {
			return err
		}
		data, err := f.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
