// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

import "syscall"

// bound returns nil: on this system a process does not end with the one that started it.
func bound() *syscall.SysProcAttr { return nil }
