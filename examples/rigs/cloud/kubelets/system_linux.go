// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// nothing is the signal that only checks whether a process exists.
const nothing = syscall.Signal(0)

// ownSession keeps the signals of a terminal away from a process.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// find returns the kubelets of a folder by the folder of their VM.
func find(folder string) (map[string]*process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	found := map[string]*process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// The handle comes first, so that it and the environment are of one process.
		handle, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if of := folderOf(pid); filepath.Dir(of) == folder {
			found[of] = &process{Process: handle}
		} else {
			_ = handle.Release()
		}
	}
	return found, nil
}

// folderOf returns the folder of the VM of a process, or "".
func folderOf(pid int) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return "" // it has ended, or belongs to another user
	}
	for v := range strings.SplitSeq(string(text), "\x00") {
		if folder, ok := strings.CutPrefix(v, variable+"="); ok {
			return folder
		}
	}
	return ""
}

// sweepSockets deletes the sockets of container runtimes whose kubelet was killed. kubemark makes
// them outside of its folder.
func sweepSockets() {
	sockets, _ := filepath.Glob("/tmp/kubelet_remote_*.sock") // the pattern is valid
	for _, socket := range sockets {
		c, err := net.Dial("unix", socket) //nolint:noctx // it does not block
		if err == nil {
			_ = c.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(socket)
		}
	}
}
