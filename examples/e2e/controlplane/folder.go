// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Names below the folder for temporary files.
const (
	runPrefix = "machinist-controlplane-run-"
	newPrefix = "machinist-controlplane-new-"
	ownerFile = "owner.lock"
)

// folder is the data folder of one control plane. It belongs to the process
// that holds the lock of a file in it: the lock ends with the process however
// that ends, so an unlocked folder may be deleted.
type folder struct {
	path string
	lock *os.File
}

// newFolder makes a data folder below parent. It gets the name that others look
// for when its lock has been taken.
func newFolder(parent string) (*folder, error) {
	temp, err := os.MkdirTemp(parent, newPrefix)
	if err != nil {
		return nil, err
	}
	lock, err := tryLock(filepath.Join(temp, ownerFile))
	if err != nil {
		_ = os.RemoveAll(temp)
		return nil, err
	}
	path := filepath.Join(parent, runPrefix+strings.TrimPrefix(filepath.Base(temp), newPrefix))
	f := &folder{path: path, lock: lock}
	if err := os.Rename(temp, path); err != nil {
		_ = lock.Close()
		_ = os.RemoveAll(temp)
		return nil, err
	}
	if _, err := fmt.Fprintln(lock, os.Getpid()); err != nil { // for people who wonder whose it is
		return nil, fmt.Errorf("%w (removed: %v)", err, f.remove() == nil)
	}
	return f, nil
}

// remove deletes the folder, and gives back the lock when it is gone.
func (f *folder) remove() error {
	err := os.RemoveAll(f.path)
	_ = f.lock.Close()
	return err
}

func (f *folder) file(name ...string) string {
	return filepath.Join(append([]string{f.path}, name...)...)
}

// sweep deletes data folders whose process has died. What cannot be deleted, as
// it belongs to another user for instance, is left to others.
func sweep(parent string, now time.Time) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		switch {
		case !e.IsDir():
		case strings.HasPrefix(e.Name(), runPrefix):
			sweepRun(path, e, now)
		case strings.HasPrefix(e.Name(), newPrefix):
			removeOld(path, e, now) // died before it had its name
		}
	}
}

func sweepRun(path string, e os.DirEntry, now time.Time) {
	name := filepath.Join(path, ownerFile)
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
		removeOld(path, e, now) // died while removing it
		return
	}
	lock, err := tryLock(name)
	if err != nil {
		return
	}
	_ = os.RemoveAll(path)
	_ = lock.Close()
}

// removeOld deletes a folder without an owner if it is so old that no process can be about to name
// or to remove it.
func removeOld(path string, e os.DirEntry, now time.Time) {
	if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > time.Hour {
		_ = os.RemoveAll(path)
	}
}
