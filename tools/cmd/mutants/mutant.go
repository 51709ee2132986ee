// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/tools/txtar"
)

// mutant is a change of one file that breaks the behavior of a row of docs/parity.md.
type mutant struct {
	Name     string // of its file: the row, and a letter if a row has several
	Row      string // DM-02
	Folder   string // of the code, with slashes, from the root of the repository
	File     string // in Folder
	Package  string // folder of the test
	Test     string
	Old, New string
}

func (m mutant) path() string { return path.Join(m.Folder, m.File) }

// readMutants returns the mutants of the repository in the order of their paths.
func readMutants(root string) ([]mutant, error) {
	var all []mutant
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if filepath.Ext(name) != ".txtar" || filepath.Base(filepath.Dir(name)) != "mutants" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		m, err := parseMutant(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m.Name = strings.TrimSuffix(d.Name(), ".txtar")
		m.Row, _, _ = strings.Cut(m.Name, "_")
		folder, err := filepath.Rel(root, filepath.Join(filepath.Dir(name), "..", ".."))
		m.Folder = filepath.ToSlash(folder)
		all = append(all, m)
		return err
	})
	return all, err
}

func parseMutant(text []byte) (mutant, error) {
	var m mutant
	archive := txtar.Parse(text)
	for line := range strings.Lines(string(archive.Comment)) {
		if name, found := strings.CutPrefix(line, "file: "); found {
			m.File = strings.TrimSpace(name)
		}
		if test, found := strings.CutPrefix(line, "test: "); found {
			m.Package, m.Test, _ = strings.Cut(strings.TrimSpace(test), " ")
		}
	}
	for _, f := range archive.Files {
		switch f.Name {
		case "old":
			m.Old = string(f.Data)
		case "new":
			m.New = string(f.Data)
		}
	}
	if m.File == "" || m.Test == "" || m.Old == "" || m.Old == m.New {
		return m, errors.New("a mutant has file: NAME, test: FOLDER NAME, and sections old and new that differ")
	}
	return m, nil
}

// apply returns the file with the mutation, or an error if the old text does not occur
// exactly once.
func (m mutant) apply(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.path())))
	if err != nil {
		return nil, err
	}
	// At the begin of a line, so that text with fewer tabs is not found within another.
	text = append([]byte("\n"), text...)
	if n := bytes.Count(text, []byte("\n"+m.Old)); n != 1 {
		return nil, fmt.Errorf("%s has the old text %d times instead of once", m.path(), n)
	}
	return bytes.Replace(text, []byte("\n"+m.Old), []byte("\n"+m.New), 1)[1:], nil
}

const (
	killed   = "killed"
	survived = "SURVIVED"
)

// play runs the test with the mutation. The result is killed if the test fails, and
// otherwise says why not.
func (m mutant) play(ctx context.Context, root string) (result string, output []byte) {
	text, err := m.apply(root)
	if err != nil {
		return "STALE: " + err.Error(), nil
	}
	output, err = m.test(ctx, root, text)
	switch {
	case err == nil && bytes.Contains(output, []byte("[no tests to run]")):
		return "NO SUCH TEST", output
	case err == nil:
		return survived, output
	case bytes.Contains(output, []byte("--- FAIL: "+m.Test)), bytes.Contains(output, []byte("panic: ")):
		return killed, output
	}
	return "DOES NOT BUILD", output
}

// test runs the test of the mutant with another text of its file.
func (m mutant) test(ctx context.Context, root string, text []byte) ([]byte, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replace := map[string]map[string]string{"Replace": {filepath.Join(root, filepath.FromSlash(m.path())): changed}}
	list, err := json.Marshal(replace)
	if err := errors.Join(err, os.WriteFile(changed, text, 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		return nil, err
	}
	folder := filepath.Join(root, filepath.FromSlash(m.Package))
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout", "3m", "-overlay", overlay, "-run", "^"+m.Test+"$", ".")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off")
	return cmd.CombinedOutput()
}
