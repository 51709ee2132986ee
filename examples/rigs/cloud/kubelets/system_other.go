// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package kubelets

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// nothing is a signal that is not used here.
var nothing = os.Interrupt

func ownSession() *syscall.SysProcAttr { return nil }

func find(string) (map[string]*process, error) {
	return nil, fmt.Errorf("on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func sweepSockets() {}
