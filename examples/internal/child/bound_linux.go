// SPDX-License-Identifier: Apache-2.0

package child

import "syscall"

// bound makes the kernel kill a process when the thread that started it ends.
func bound() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
