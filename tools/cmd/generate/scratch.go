// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func isRoot(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && bytes.HasPrefix(data, []byte("module "+module+"\n"))
}

// prepare fills the scratch module: the requirements of the SDK and its
// hand-written types.
func prepare(root, scratch string) error {
	names := []string{"go.mod", "go.sum"}
	types, err := filepath.Glob(filepath.Join(root, typesDir, "*.go"))
	if err != nil {
		return err
	}
	for _, path := range types {
		if base := filepath.Base(path); base != deepCopies && !strings.HasSuffix(base, "_test.go") {
			names = append(names, filepath.Join(typesDir, base))
		}
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		if err := write(filepath.Join(scratch, name), data); err != nil {
			return err
		}
	}
	return write(filepath.Join(scratch, "header.txt"), []byte(header))
}

// part is a part of the repository that this program writes.
type part struct {
	// folders hold all its files, and owns tells them from those that people wrote, by their
	// slash-separated paths relative to the root.
	folders []string
	owns    func(path string) bool
	// write writes the files of the part into a scratch directory.
	write func(ctx context.Context, root, scratch string) error
}

// parts are written one after the other: the facade has the names of the clients.
var parts = []part{
	{
		folders: []string{typesDir, clientDir},
		owns: func(path string) bool {
			return path == typesDir+"/"+deepCopies ||
				strings.HasPrefix(path, typesDir+"/crds/") ||
				strings.HasPrefix(path, clientDir+"/") && strings.Contains(path[len(clientDir)+1:], "/")
		},
		write: generate,
	},
	{
		folders: []string{facadeDir},
		owns: func(path string) bool {
			return strings.Contains(path, "/"+facadePrefix) || strings.HasPrefix(path, definitionsDir+"/")
		},
		write: writeFacade,
	},
	{
		folders: []string{"docs", "internal/reasons"},
		owns:    func(path string) bool { return path == reasonsPage || path == helpsFile },
		write:   writeReasons,
	},
}

// change is one file to write or, if data is nil, to delete.
type change struct {
	path string
	data []byte
	verb string
}

// String says what is wrong with the file.
func (c change) String() string { return c.path + ": " + c.verb }

// compare lists what has to change in the repository, in the order of the paths.
func (p part) compare(root, scratch string) ([]change, error) {
	want, err := p.read(scratch)
	if err != nil {
		return nil, err
	}
	have, err := p.read(root)
	if err != nil {
		return nil, err
	}
	var changes []change
	all := maps.Clone(want)
	maps.Copy(all, have)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		switch w, h := want[path], have[path]; {
		case w == nil:
			changes = append(changes, change{path, nil, "no generator writes it any more"})
		case h == nil:
			changes = append(changes, change{path, w, "missing"})
		case !bytes.Equal(w, h):
			changes = append(changes, change{path, w, "stale"})
		}
	}
	return changes, nil
}

// apply makes the changes; files that are current are not touched.
func apply(root string, changes []change) error {
	for _, c := range changes {
		path := filepath.Join(root, filepath.FromSlash(c.path))
		var err error
		if c.data == nil {
			err = os.Remove(path)
			_ = os.Remove(filepath.Dir(path)) // if that was the last one
		} else {
			err = write(path, c.data)
		}
		if err != nil {
			return err
		}
		fmt.Println(c)
	}
	return nil
}

// read returns the generated files below dir by their slash-separated paths.
func (p part) read(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, sub := range p.folders {
		err := filepath.WalkDir(filepath.Join(dir, sub), func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(dir, path)
			if err != nil || !p.owns(filepath.ToSlash(rel)) {
				return err
			}
			data, err := os.ReadFile(path)
			files[filepath.ToSlash(rel)] = data
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
