// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package controlplane

import (
	"os"
	"syscall"
)

const supported = false

func flock(*os.File) error               { return nil }
func ownGroup() *syscall.SysProcAttr     { return nil }
func interruptGroup(p *os.Process) error { return p.Kill() }
func terminateGroup(p *os.Process) error { return p.Kill() }
func killGroup(p *os.Process) error      { return p.Kill() }
