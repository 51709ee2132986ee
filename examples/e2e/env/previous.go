// SPDX-License-Identifier: Apache-2.0

package env

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
)

// PreviousVariable names the environment variable with the git revision that [Cluster.Previous] builds.
const PreviousVariable = "MACHINIST_PREVIOUS"

// Previous is the prefix of the programs of [Cluster.Previous] for [Env.Program].
const Previous = "previous/"

// programs are the folders of the programs in each version, the newest first.
var programs = []string{"examples/programs", "examples"}

// Previous builds the programs of the last release, and returns its git revision. The last release is the newest tag v* of
// the repository. Without such a tag the commit HEAD stands for it. [PreviousVariable] chooses another revision.
//
// It needs git and the history of the checkout. Otherwise it returns an error that says so.
func (h *Cluster) Previous(ctx context.Context) (revision string, err error) {
	examples, err := moduleFolder(ctx, module)
	if err != nil {
		return "", err
	}
	root := filepath.Dir(examples)
	revision, err = lastRelease(ctx, root)
	if err != nil {
		return "", err
	}
	source := filepath.Join(h.folder, "last-release")
	if err := extract(ctx, root, revision, source); err != nil {
		return "", err
	}
	for _, folder := range programs {
		if dir := filepath.Join(source, folder); exists(filepath.Join(dir, Controllers, "main.go")) {
			// Without the paths of the folder, later runs find the packages in the cache of the go command.
			return revision, buildIn(ctx, dir, filepath.Join(h.folder, Previous)+"/", "-trimpath",
				"./"+Controllers, "./"+manifests.MachineController, "./"+manifests.MachineControllerManager)
		}
	}
	return "", fmt.Errorf("env: %s has no manager in %s", revision, strings.Join(programs, " or "))
}

// lastRelease returns the commit that [Cluster.Previous] builds.
func lastRelease(ctx context.Context, root string) (string, error) {
	tags, err := git(ctx, root, "-c", "versionsort.suffix=-", "tag", "--list", "v*", "--sort=-version:refname")
	if err != nil {
		return "", fmt.Errorf("env: the last release is in the git history of the checkout, which has to be there: %w", err)
	}
	newest, _, _ := strings.Cut(tags, "\n")
	name := cmp.Or(os.Getenv(PreviousVariable), newest, "HEAD")
	commit, err := git(ctx, root, "rev-parse", "--verify", "--end-of-options", name+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("env: no commit %s, fetch it or set %s to another: %w", name, PreviousVariable, err)
	}
	return commit, nil
}

// extract writes the files of a revision to a new folder.
func extract(ctx context.Context, root, revision, folder string) (err error) {
	file := folder + ".zip"
	if _, err := git(ctx, root, "archive", "--format=zip", "-o", file, revision); err != nil {
		return err
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	return os.CopyFS(folder, archive)
}

// git runs git in a checkout, whichever user owns it, and returns what it prints.
func git(ctx context.Context, root string, args ...string) (string, error) {
	out, err := run(exec.CommandContext(ctx, "git", append([]string{"-C", root, "-c", "safe.directory=*"}, args...)...))
	return strings.TrimSpace(string(out)), err
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
