// SPDX-License-Identifier: Apache-2.0

// Program up runs a control plane until it is interrupted, for people who want
// to try things by hand:
//
//	go run ./up -kubeconfig /tmp/machinist.kubeconfig
//
// With -nodes kubemark it also runs a manager and a simulated cloud whose VMs are real kubelets that
// start no containers. examples/e2e/up/machines.yaml and pods.yaml are objects to begin with.
//
// With -build it only builds what a control plane is made of, and kubectl, so that the
// tests need not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "up:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", filepath.Join(os.TempDir(), "machinist.kubeconfig"), "write a `file` for kubectl, which is deleted in the end")
	nodes := flags.String("nodes", "", "kubemark: run a manager, and a simulated cloud whose VMs are kubelets; empty: neither")
	build := flags.Bool("build", false, "only build the control plane, kubectl and kubemark")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("no arguments are expected, but there is %q", flags.Arg(0))
	}
	if *nodes != "" && *nodes != "kubemark" {
		return fmt.Errorf("-nodes: %q is not kubemark", *nodes)
	}
	if *build {
		_, err := controlplane.Build(ctx, os.Stderr)
		_, kubectlErr := controlplane.Kubectl(ctx, os.Stderr)
		_, kubemarkErr := controlplane.Kubemark(ctx, os.Stderr)
		return errors.Join(err, kubectlErr, kubemarkErr)
	}
	c, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	text, err := controlplane.Kubeconfig(c.Config())
	if err != nil {
		return err
	}
	if err := write(*kubeconfig, text); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(*kubeconfig)) }()
	ready := func() {
		fmt.Fprintf(out, "Kubernetes %s runs until Ctrl-C: kubectl --kubeconfig %s get namespaces\n", c.Version(), *kubeconfig)
	}
	if *nodes != "" {
		return runMachines(ctx, c, *kubeconfig, ready)
	}
	ready()
	<-ctx.Done()
	return nil
}

// write writes a file that only its owner can read. It replaces a link or a file of that name.
func write(name string, text []byte) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
