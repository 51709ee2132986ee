// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/programs/manager/app"
	"github.com/machinist-dev/machinist/examples/programs/manager/install"
	"github.com/machinist-dev/machinist/examples/programs/manager/manifests"
)

// module is where the manager is.
const module = "github.com/machinist-dev/machinist/examples"

// Cluster is what environments share: a control plane that serves the machine objects,
// and the programs of the managers. It is safe for concurrent use.
type Cluster struct {
	// ControlPlane is the one that was given to [Open].
	ControlPlane *controlplane.ControlPlane

	folder     string // of programs and kubeconfigs
	kubeconfig string // of a cluster admin
	err        error  // why it could not be opened, under Run
}

// Open builds the programs, and has the manager install the definitions. The caller calls
// Close when the last environment is closed; the control plane stays the caller's.
//
// It needs the go command, and a working directory in a module that knows the one
// of the manager.
func Open(ctx context.Context, c *controlplane.ControlPlane) (*Cluster, error) {
	folder, err := c.TempDir("cluster-")
	if err != nil {
		return nil, fmt.Errorf("env: %w", err)
	}
	h := &Cluster{ControlPlane: c, folder: folder, kubeconfig: filepath.Join(folder, "admin.kubeconfig")}
	if err := h.open(ctx); err != nil {
		return nil, fmt.Errorf("env: %w", errors.Join(err, h.Close()))
	}
	return h, nil
}

func (h *Cluster) open(ctx context.Context) error {
	if err := build(ctx, h.folder); err != nil {
		return err
	}
	text, err := controlplane.Kubeconfig(h.ControlPlane.Config())
	if err != nil {
		return err
	}
	if err := os.WriteFile(h.kubeconfig, text, 0o600); err != nil {
		return err
	}
	_, err = h.Program(ctx, "install", "--kubeconfig="+h.kubeconfig)
	return err
}

// Close deletes what the cluster itself has stored, which goes with the control plane
// at the latest.
func (h *Cluster) Close() error { return os.RemoveAll(h.folder) }

// Program runs a command of the manager to its end, such as "manifests", and
// returns what it prints to standard output. It knows no cluster unless a flag
// tells of one.
func (h *Cluster) Program(ctx context.Context, args ...string) ([]byte, error) {
	return run(exec.CommandContext(ctx, filepath.Join(h.folder, Controllers), args...))
}

const (
	// Controllers is the program that runs all controllers.
	Controllers = "manager"
	// ControllerRuntime is the program that runs them over controller-runtime, in a module of its own.
	ControllerRuntime = "controllerruntime"
)

// build builds the programs into a folder with go build, in their own modules, whichever user owns
// the checkout.
//
// The packages of all but [ControllerRuntime] are also linked into the caller: go test takes results
// from its cache while the test binary is the same, and does not see that another program has changed.
func build(ctx context.Context, folder string) error {
	runtime.KeepAlive([]any{app.Run, install.Access})
	return errors.Join(
		Build(ctx, "programs", folder, "./"+Controllers, "./"+manifests.MachineController, "./"+manifests.MachineControllerManager),
		Build(ctx, "samples/"+ControllerRuntime, filepath.Join(folder, ControllerRuntime), "./manager"),
	)
}

// Build builds packages of a module in a folder of the examples, such as "samples/nodetools", to a file or into a
// folder, as one builds them outside of the workspace.
func Build(ctx context.Context, folder, out string, packages ...string) error {
	examples, err := moduleFolder(ctx, module)
	if err != nil {
		return err
	}
	return buildIn(ctx, filepath.Join(examples, folder), out, packages...)
}

// buildIn is Build for any folder. The packages may follow flags.
func buildIn(ctx context.Context, dir, out string, packages ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-buildvcs=false", "-o", out}, packages...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "PWD="+dir)
	_, err := run(cmd)
	return err
}

// moduleFolder returns the folder of a module of this repository.
func moduleFolder(ctx context.Context, module string) (string, error) {
	root, err := run(exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module))
	return strings.TrimSpace(string(root)), err
}

// run runs a command and returns its standard output; an error carries what it
// said beside that.
func run(cmd *exec.Cmd) ([]byte, error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(said.Bytes()))
	}
	return out, nil
}
