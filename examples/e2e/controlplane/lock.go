// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"os"
	"time"
)

// errLocked means that another process has the lock of a file.
var errLocked = errors.New("locked by another process")

// lockFile waits until it has the lock of a file, which it creates if need be.
// The lock ends with unlock and with the process, however that ends. waiting is
// called once if there is something to wait for.
func lockFile(ctx context.Context, name string, waiting func()) (unlock func(), err error) {
	for first := true; ; first = false {
		f, err := tryLock(name)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, errLocked) {
			return nil, err
		}
		if first {
			waiting()
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// tryLock opens a file and takes its lock, or fails with errLocked. Closing the
// file gives the lock back.
func tryLock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// pause waits for a while, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
