// SPDX-License-Identifier: Apache-2.0

package controlplane

import "syscall"

// ownGroup puts a process into a group of its own, out of reach of Ctrl-C, and
// makes the kernel kill it when the thread that started it ends, see runBound.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
