// SPDX-License-Identifier: Apache-2.0

// Package child starts programs that end with the process that started them: on Linux the kernel kills them, however
// that process ends.
package child

import (
	"os"
	"os/exec"
	"runtime"
)

// Process is a program that was started. It is safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts a command and sets its SysProcAttr. On Linux the program has a process group of its own, and is killed when this
// process ends. On other systems it stays.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	cmd.SysProcAttr = bound()
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the program ends with the thread that started it
		defer runtime.UnlockOSThread()
		defer close(p.done)
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Done returns a channel that is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end of the program, and returns nil if its exit status was 0.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends a signal. It fails if the program has ended.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }
