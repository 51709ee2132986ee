// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is a process of which Linux tells what it takes. Zero is none.
type process int

// tick is the unit of CPU times under /proc, the same on all platforms of Linux.
const tick = 10 * time.Millisecond

var errNoProcess = errors.New("there is no such process")

// managerOf finds the process of the manager of a namespace: a child of ours.
func managerOf(namespace string) process {
	folders, _ := filepath.Glob("/proc/[0-9]*") // fails only for a bad pattern
	for _, folder := range folders {
		line, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || !bytes.Contains(line, []byte("--namespace="+namespace+"\x00")) {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			continue
		}
		if fields, err := process(id).stat(); err == nil && fields[1] == strconv.Itoa(os.Getpid()) {
			return process(id)
		}
	}
	return 0
}

// stat returns the fields of the stat file from the third on.
func (p process) stat() ([]string, error) {
	if p == 0 {
		return nil, errNoProcess
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
	if err != nil {
		return nil, err
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name has no bracket
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return nil, fmt.Errorf("/proc/%d/stat: %q", p, text)
	}
	return fields, nil
}

// cpu returns how much CPU time the process has taken, or zero if that is not known.
func (p process) cpu() time.Duration {
	fields, err := p.stat()
	if err != nil {
		return 0
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if errors.Join(err1, err2) != nil {
		return 0
	}
	return time.Duration(user+system) * tick
}

// peak returns the most memory that the process ever held, in bytes, and zero if
// that is not known.
func (p process) peak() int {
	if p == 0 {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}
