// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package controlplane

import (
	"errors"
	"os"
	"syscall"
)

// supported reports whether control planes run on this system.
const supported = true

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}

func interruptGroup(p *os.Process) error { return signalGroup(p, syscall.SIGINT) }
func terminateGroup(p *os.Process) error { return signalGroup(p, syscall.SIGTERM) }
func killGroup(p *os.Process) error      { return signalGroup(p, syscall.SIGKILL) }

// signalGroup signals a process that leads a group of its own, and the group.
func signalGroup(p *os.Process, s syscall.Signal) error {
	err := syscall.Kill(-p.Pid, s)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
