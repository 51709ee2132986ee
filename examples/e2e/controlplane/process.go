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
	"strings"
	"time"
)

// errAddressInUse says that a component found its port taken.
var errAddressInUse = errors.New("address already in use")

// process is a running component. Its methods are safe for concurrent use.
type process struct {
	name    string
	logFile string
	began   int64 // size of the log file when this process began to write to it
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process has ended
	err     error         // how it ended; read it after done
}

// startProcess starts a component which appends to its log file.
func startProcess(name, program, logFile, folder string, args []string) (*process, error) {
	out, err := os.OpenFile(logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the component has its own
	began, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	p := &process{name: name, logFile: logFile, began: began, done: make(chan struct{})}
	p.cmd = exec.Command(program, args...) //nolint:noctx // it ends with stop, not with the context of Start
	p.cmd.Dir = folder
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = ownGroup()
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		p.err = bound(p.cmd, started)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// runBound runs a command to its end.
func runBound(cmd *exec.Cmd) error {
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() { ended <- bound(cmd, started) }()
	if err := <-started; err != nil {
		return err
	}
	return <-ended
}

// bound starts a command, says so, and waits for its end, all on one thread of
// the operating system: on Linux the command is killed when the thread that
// started it ends. As this one only ends with the command or with the whole
// process, the command ends with the process, whatever becomes of that.
func bound(cmd *exec.Cmd, started chan<- error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	started <- err
	if err != nil {
		return err
	}
	return cmd.Wait()
}

// dead returns an error with the end of the log if the process has ended.
func (p *process) dead() error {
	select {
	case <-p.done:
	default:
		return nil
	}
	log := p.logged()
	err := fmt.Errorf("%s ended early (%w); the end of %s:\n%s", p.name, cmpErr(p.err), p.logFile, lastLines(log, 25))
	if strings.Contains(log, "address already in use") {
		err = fmt.Errorf("%w: %w", errAddressInUse, err)
	}
	return err
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// logged is what this process has written to its log, at most the last 64 KiB.
func (p *process) logged() string {
	f, err := os.Open(p.logFile)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	from := max(p.began, info.Size()-64<<10)
	text, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// kill ends the process at once and waits until it is gone. A nil process is gone.
func (p *process) kill() error {
	if p == nil {
		return nil
	}
	if err := killGroup(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.done
	return nil
}

// terminate asks the process to end, and kills it after the grace period or when
// ctx ends.
func (p *process) terminate(ctx context.Context, grace time.Duration) error {
	if p == nil {
		return nil
	}
	if err := terminateGroup(p.cmd.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("terminate %s: %w", p.name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	case <-time.After(grace):
	}
	return p.kill()
}

// until polls a condition until it holds. It gives up when ctx ends or the
// process has; what the condition lacked is part of the error.
func (p *process) until(ctx context.Context, what string, holds func(context.Context) error) error {
	for {
		// A request to a server which hangs must not keep us from noticing its end.
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		missing := holds(attempt)
		cancel()
		if missing == nil {
			return nil
		}
		if err := p.dead(); err != nil {
			return err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s: %w (last: %w; log: %s)", what, err, missing, filepath.Base(p.logFile))
		}
	}
}
