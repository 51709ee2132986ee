// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// compile builds the programs of a component with the go command, in a module
// made of the embedded files.
func compile(ctx context.Context, c component, folder string, progress io.Writer) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("the control plane is compiled from source, which needs the go command in PATH; get it from https://go.dev/dl: %w", err)
	}
	module, err := os.MkdirTemp(folder, "module-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(module) }()
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte(c.mod), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(module, "go.sum"), []byte(c.sum), 0o600); err != nil {
		return err
	}
	for _, p := range c.programs {
		fmt.Fprintf(progress, "control plane: building %s %s from source, once; this takes minutes the first time\n", p.name, c.version)
		args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", c.ldflags, "-o", filepath.Join(folder, p.name), p.pkg}
		start := time.Now()
		if err := runTool(ctx, module, tool, args, progress, p.name); err != nil {
			return err
		}
		fmt.Fprintf(progress, "control plane: built %s in %s\n", p.name, time.Since(start).Round(time.Second))
	}
	return nil
}

// runTool runs the go command and says every 15 seconds how far it is.
func runTool(ctx context.Context, folder, tool string, args []string, progress io.Writer, name string) error {
	var out buildOutput
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir = folder
	cmd.Env = buildEnv(os.Environ(), folder)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return interruptGroup(cmd.Process) }
	cmd.WaitDelay = 10 * time.Second
	start := time.Now()
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		tick := time.NewTicker(15 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(progress, "control plane: building %s, %s so far, %s\n", name, time.Since(start).Round(time.Second), out.counts())
			case <-done:
				return
			}
		}
	})
	err := runBound(cmd)
	close(done)
	ticking.Wait()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errors.Join(context.Cause(ctx), err)
	default:
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out.rest())
	}
}

// buildEnv is the environment of the go command: what the user has set, without
// what would make it build something else.
func buildEnv(env []string, folder string) []string {
	return append(slices.Clip(env),
		"PWD="+folder,
		"GO111MODULE=on",
		"GOWORK=off",
		"GOFLAGS=-mod=readonly",
		"CGO_ENABLED=0",
		"GOOS="+runtime.GOOS,
		"GOARCH="+runtime.GOARCH,
	)
}

// buildOutput takes what go build -v writes apart: names of packages are counted,
// as are downloads, and everything else is kept for an error. It is safe for
// concurrent use.
type buildOutput struct {
	mu                  sync.Mutex
	line                []byte
	packages, downloads int
	other               strings.Builder
}

func (o *buildOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range p {
		if b != '\n' {
			o.line = append(o.line, b)
			continue
		}
		o.take(string(o.line))
		o.line = o.line[:0]
	}
	return len(p), nil
}

func (o *buildOutput) take(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		o.downloads++
	case line != "" && !strings.ContainsAny(line, " :#\t"):
		o.packages++
	default:
		o.other.WriteString(line + "\n")
	}
}

func (o *buildOutput) counts() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.packages == 0 {
		return fmt.Sprintf("%d modules downloaded", o.downloads)
	}
	return fmt.Sprintf("%d packages compiled", o.packages)
}

func (o *buildOutput) rest() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(o.other.String() + string(o.line))
}
