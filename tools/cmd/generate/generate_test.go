// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files and returns their folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := write(filepath.Join(dir, name), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCompare_MissingStaleExtra_AreNamed(t *testing.T) {
	scratch := tree(t, map[string]string{
		"machine/v1alpha1/machine.go":               "by hand",
		"machine/v1alpha1/zz_generated.deepcopy.go": "new",
		"machine/v1alpha1/crds/a.yaml":              "same",
		"machine/client/listers/a.go":               "missing",
	})
	root := tree(t, map[string]string{
		"machine/v1alpha1/machine.go":               "changed by hand",
		"machine/v1alpha1/machine_test.go":          "by hand",
		"machine/v1alpha1/zz_generated.deepcopy.go": "old",
		"machine/v1alpha1/crds/a.yaml":              "same",
		"machine/client/old/b.go":                   "left over",
		"machine/decide.go":                         "by hand",
		"docs/parity.md":                            "by hand",
	})
	changes, err := parts[0].compare(root, scratch)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range changes {
		got = append(got, c.String())
	}
	want := []string{
		"machine/client/listers/a.go: missing",
		"machine/client/old/b.go: no generator writes it any more",
		"machine/v1alpha1/zz_generated.deepcopy.go: stale",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	if err := apply(root, changes); err != nil {
		t.Fatal(err)
	}
	if changes, err := parts[0].compare(root, scratch); err != nil || len(changes) > 0 {
		t.Errorf("after apply: %v, %v", changes, err)
	}
	if _, err := os.Stat(filepath.Join(root, "machine/client/old")); !os.IsNotExist(err) {
		t.Error("the empty folder is left")
	}
	if data, _ := os.ReadFile(filepath.Join(root, "machine/v1alpha1/machine.go")); string(data) != "changed by hand" {
		t.Error("a file that people wrote was changed")
	}
}

func TestPrepare_Package_OnlyTypes(t *testing.T) {
	root := tree(t, map[string]string{
		"go.mod": "module " + module + "\n", "go.sum": "",
		"machine/v1alpha1/machine.go":               "types",
		"machine/v1alpha1/machine_test.go":          "test",
		"machine/v1alpha1/zz_generated.deepcopy.go": "generated",
	})
	if !isRoot(root) {
		t.Error("not taken for the root")
	}
	scratch := t.TempDir()
	if err := prepare(root, scratch); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(scratch, typesDir, "*"))
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != "machine.go" {
		t.Errorf("got %q, %v", files, err)
	}
}

func TestEdit_TextNotOnce_Refused(t *testing.T) {
	dir := tree(t, map[string]string{"f": "one two, two"})
	path := filepath.Join(dir, "f")
	for _, old := range []string{"two", "three"} {
		if err := edit(path, old, "x"); err == nil || !strings.Contains(err.Error(), old) {
			t.Errorf("%q: %v", old, err)
		}
	}
	if err := edit(path, "one", "1"); err != nil {
		t.Error(err)
	}
	if data, _ := os.ReadFile(path); string(data) != "1 two, two" {
		t.Errorf("got %q", data)
	}
}
