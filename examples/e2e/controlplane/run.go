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
	"time"
)

// Run is what TestMain of a package does that tests against a control plane: it
// starts one, hands it to use, which may be nil, runs the tests, and stops it.
// The result is for [os.Exit].
//
// When tests fail, the logs of the components are kept, and it is said where. On
// SIGINT and SIGTERM the control plane is stopped and the process exits. If the
// process ends in any other way, see the comment of the package.
//
// With -test.list nothing is started.
func Run(m *testing.M, o Options, use func(*ControlPlane)) int {
	if !flag.Parsed() {
		flag.Parse()
	}
	if list := flag.Lookup("test.list"); list != nil && list.Value.String() != "" {
		return m.Run()
	}

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

// finish stops the control plane, and keeps the logs if the code says that tests
// failed. It returns the code, or 1 if only the end failed.
func (c *ControlPlane) finish(code int) int {
	if code != 0 {
		c.keepLogs()
	}
	if err := c.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// keepLogs copies the logs to where they survive the control plane, and says where.
func (c *ControlPlane) keepLogs() {
	where := c.logDir
	if c.options.LogDir == "" {
		var err error
		if where, err = copyLogs(os.TempDir(), c.logDir, time.Now()); err != nil {
			fmt.Fprintln(os.Stderr, "control plane: logs are lost:", err)
			return
		}
	}
	fmt.Fprintln(os.Stderr, "control plane: logs are in", where)
}

func copyLogs(parent, from string, now time.Time) (string, error) {
	where, err := os.MkdirTemp(parent, "machinist-controlplane-logs-"+now.Format("150405")+"-")
	if err != nil {
		return "", err
	}
	return where, os.CopyFS(where, os.DirFS(from))
}
