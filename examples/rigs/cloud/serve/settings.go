// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/machinist-dev/machinist/driver/drivertest"
)

// settings are the values of the flags.
type settings struct {
	listen     string
	kubeconfig string
	verbose    bool
	join       time.Duration
	cloud      drivertest.CloudOptions
}

// parseFlags parses the command line. flag.ErrHelp means that help was printed to out.
func parseFlags(args []string, out io.Writer) (settings, error) {
	var s settings
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&s.listen, "listen", "127.0.0.1:8484", "loopback `address` to serve at; port 0 takes a free one")
	fs.StringVar(&s.kubeconfig, "kubeconfig", "", "`file` of the cluster whose Nodes the VMs become (default: none)")
	fs.BoolVar(&s.verbose, "v", false, "print what happens in the cloud, and what the Nodes could not do")
	fs.DurationVar(&s.join, "join", 2*time.Second, "`time` from a VM that is up to its Node")
	fs.StringVar(&s.cloud.Provider, "provider", "", "`name` that a MachineClass must carry (default simulated)")
	fs.StringVar(&s.cloud.Credential, "credential", "", "`text` that the key credential of a Secret must hold (default: any)")
	fs.DurationVar(&s.cloud.CreateLatency, "create", 2*time.Second, "`time` until CreateMachine answers")
	fs.DurationVar(&s.cloud.DeleteLatency, "delete", time.Second, "`time` until DeleteMachine answers")
	fs.DurationVar(&s.cloud.CallLatency, "call", 0, "`time` until other calls answer")
	fs.DurationVar(&s.cloud.BootTime, "boot", 5*time.Second, "`time` from the answer of CreateMachine until a VM is up")
	fs.DurationVar(&s.cloud.ShutdownTime, "shutdown", 0, "`time` for which a VM still exists when its deletion has begun")
	fs.DurationVar(&s.cloud.Lag, "lag", 0, "`time` by which the cloud shows everything late")
	fs.IntVar(&s.cloud.Quota, "quota", 0, "`number` of VMs that may exist (default: any)")
	fs.BoolVar(&s.cloud.NeedsInitialization, "initialize", false, "VMs need InitializeMachine")
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprintln(out, "usage: serve [flags]")
		fs.SetOutput(out)
		fs.PrintDefaults()
		return s, err
	case err != nil:
		return s, fmt.Errorf("%w (-h lists the flags)", err)
	case fs.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q (-h lists the flags)", fs.Arg(0))
	}
	return s, s.check()
}

// check returns an error for invalid settings.
func (s settings) check() error {
	host, _, err := net.SplitHostPort(s.listen)
	switch {
	case err != nil:
		return fmt.Errorf("the address to listen at: %w", err)
	case host != "localhost" && !net.ParseIP(host).IsLoopback():
		return fmt.Errorf("%q is no loopback address: Secrets would cross the network in the clear", s.listen)
	}
	for _, d := range []time.Duration{
		s.join, s.cloud.CreateLatency, s.cloud.DeleteLatency, s.cloud.CallLatency, s.cloud.BootTime, s.cloud.ShutdownTime, s.cloud.Lag,
	} {
		if d < 0 {
			return fmt.Errorf("the time %s is negative", d)
		}
	}
	if s.cloud.Quota < 0 {
		return fmt.Errorf("the quota %d is negative", s.cloud.Quota)
	}
	return nil
}
