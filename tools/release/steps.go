// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"os"
	"path/filepath"
)

// A Step is one step of a release.
type Step struct {
	// Text says what is done.
	Text string
	// do does it.
	do func(root string) error
}

// Steps returns the steps of a release in their order. The SDK gets its tag first: the go.mod of
// the examples requires it, and is committed between the two tags. Nothing is pushed.
func Steps(version string) []Step {
	examples := "examples/" + version
	return []Step{
		{"git tag " + version, tag(version)},
		{"examples/go.mod requires " + SDK + " " + version + ", go mod tidy", func(root string) error { return requireSDK(root, version) }},
		{"git commit examples/go.mod", func(root string) error {
			_, err := git(root, "commit", "--quiet", "--message", "examples: require "+version, "--", "examples/go.mod")
			return err
		}},
		{"git tag " + examples, tag(examples)},
	}
}

// Last is what a person does after the steps.
func Last(version string) string {
	return fmt.Sprintf("git push origin HEAD %[1]s examples/%[1]s   # both tags together, so that no proxy sees one without the other\n"+
		"GOPROXY=https://proxy.golang.org go list -m %[2]s@%[1]s %[3]s@%[1]s", version, SDK, Examples)
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

// requireSDK writes the version into the go.mod of the examples, whose replacement stays: it
// counts in this repository alone.
func requireSDK(root, version string) error {
	name := filepath.Join(root, "examples", "go.mod")
	f, err := readMod(name)
	if err != nil {
		return err
	}
	if err := f.AddRequire(SDK, version); err != nil {
		return err
	}
	data, err := f.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}
