// SPDX-License-Identifier: Apache-2.0

// Package release makes module zips of this repository, as a module proxy serves them, and says
// what stands in the way of a release.
package release

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// SDK is the path of the module at the root of the repository. Examples and MCM are those of the
// nested modules that are released with it. MCM replaces machine-controller-manager, so its go.mod
// has another path.
const (
	SDK      = "github.com/machinist-dev/machinist"
	Examples = SDK + "/examples"
	MCM      = Examples + "/mcm"
)

// Folders are the folders of the released modules, by their paths.
var Folders = folders()

func folders() map[string]string {
	all := map[string]string{SDK: "."}
	for _, folder := range nested {
		all[SDK+"/"+folder] = folder
	}
	return all
}

// Proxy writes the released modules of the repository at root into a folder, in the layout of a
// module proxy, as versions that a release would have. Files that git ignores are left out.
func Proxy(root, folder, version string) error {
	for path, sub := range Folders {
		if err := write(root, sub, folder, module.Version{Path: path, Version: version}); err != nil {
			return fmt.Errorf("%s@%s: %w", path, version, err)
		}
	}
	return nil
}

// write writes one module of a proxy.
func write(root, sub, folder string, m module.Version) error {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	at := filepath.Join(folder, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	mod, err := releasedMod(root, sub, m.Version)
	if err != nil {
		return err
	}
	files, err := filesOf(root, sub, mod)
	if err != nil {
		return err
	}
	var zipped bytes.Buffer
	if err := zip.Create(&zipped, m, files); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": m.Version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"list": []byte(m.Version + "\n"), m.Version + ".info": info, m.Version + ".mod": mod, m.Version + ".zip": zipped.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(at, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// releasedMod returns the go.mod of a released module: it requires the modules of this repository in
// the same version, and replaces nothing.
func releasedMod(root, sub, version string) ([]byte, error) {
	f, err := readMod(filepath.Join(root, sub, "go.mod"))
	if err != nil {
		return nil, err
	}
	if err := requireOurs(f, version); err != nil {
		return nil, err
	}
	for _, r := range f.Replace {
		if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	f.Cleanup()
	return f.Format()
}

// requireOurs makes a go.mod require this version of the modules of this repository that it requires.
func requireOurs(f *modfile.File, version string) error {
	for _, r := range f.Require {
		if _, ours := Folders[r.Mod.Path]; !ours {
			continue
		}
		if err := f.AddRequire(r.Mod.Path, version); err != nil {
			return err
		}
	}
	return nil
}

func readMod(name string) (*modfile.File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, data, nil)
}

// filesOf returns the files below a folder that git knows or would add. [zip.Create] leaves out the
// modules inside.
func filesOf(root, sub string, mod []byte) ([]zip.File, error) {
	list, err := git(root, "ls-files", "-z", "-co", "--exclude-standard", "--", sub)
	if err != nil {
		return nil, err
	}
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		if sub != "." {
			name = strings.TrimPrefix(name, sub+"/")
		}
		f := file{name: name, path: filepath.Join(root, sub, name)}
		f.info, err = os.Lstat(f.path)
		switch {
		case os.IsNotExist(err): // deleted, and not committed yet
			continue
		case err != nil:
			return nil, err
		}
		if name == "go.mod" {
			f.data = mod
		}
		files = append(files, f)
	}
	return files, nil
}

// file is a file of a zip; data, if any, takes the place of its content.
type file struct {
	name, path string
	info       os.FileInfo
	data       []byte
}

// Path implements [zip.File].
func (f file) Path() string { return f.name }

// Lstat implements [zip.File].
func (f file) Lstat() (os.FileInfo, error) { return f.info, nil }

// Open implements [zip.File].
func (f file) Open() (io.ReadCloser, error) {
	if f.data != nil {
		return io.NopCloser(bytes.NewReader(f.data)), nil
	}
	return os.Open(f.path)
}

// git runs git in a folder and returns what it prints.
func git(root string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", root}, args...)...) //nolint:noctx // it ends by itself
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problem.String()))
	}
	return string(out), nil
}
