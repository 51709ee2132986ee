// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// Run is what TestMain of a package does that tests against a control plane: it
// starts one, hands it to use, which may be nil, runs the tests, and stops it.
// The result is for [os.Exit].
//
// It says where the logs go. If [Options].LogDir is empty, that is a folder
// machinist-controlplane-logs-* among the temporary files, which is deleted when
// all tests have passed. It stays if one has failed, and if the process ends in
// any other way: by a panic, a timeout of go test, a signal, or [os.Exit].
//
// On SIGINT and SIGTERM the control plane is stopped and the process exits. For any
// other end see the comment of the package.
//
// With -test.list nothing is started.
func Run(m *testing.M, o Options, use func(*ControlPlane)) int {
	if !flag.Parsed() {
		flag.Parse()
	}
	if list := flag.Lookup("test.list"); list != nil && list.Value.String() != "" {
		return m.Run()
	}
	if o.LogDir != "" {
		return run(m, o, use)
	}
	var err error
	if o.LogDir, err = os.MkdirTemp("", "machinist-controlplane-logs-"); err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		return 1
	}
	code := run(m, o, use)
	if code != 0 {
		_ = os.Remove(o.LogDir) // if nothing was started, it is empty
		return code
	}
	if err := os.RemoveAll(o.LogDir); err != nil {
		fmt.Fprintln(os.Stderr, "control plane:", err)
		return 1
	}
	return 0
}

func run(m *testing.M, o Options, use func(*ControlPlane)) int {
	// Printed now, since a panic would prevent it later.
	fmt.Fprintln(os.Stderr, "control plane: logs go to", o.LogDir)

	// Not cancelled by a defer: a panic is no signal.
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c, err := Start(ctx, o)
	if err != nil {
		cancel()
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	finished := make(chan struct{})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-finished:
		case <-ctx.Done():
			c.finish(1)
			os.Exit(130)
		}
	}()
	if use != nil {
		use(c)
	}
	code := m.Run()
	close(finished)
	<-gone // if a signal came first, the process exits over there
	cancel()
	return c.finish(code)
}

// finish stops the control plane, and returns the code, or 1 if only the end failed.
func (c *ControlPlane) finish(code int) int {
	if err := c.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
