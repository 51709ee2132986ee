// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

import "syscall"

// bound leaves a process alone: it ends when it is told to.
func bound() *syscall.SysProcAttr { return nil }
