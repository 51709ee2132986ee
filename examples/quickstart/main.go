// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := quickstart(ctx, os.Args[1:], os.Stdout, os.Stderr, working)
	stop()
	os.Exit(status)
}

// quickstart runs the demo until its end or the end of the context, and returns the exit status. The
// clock of the demo stands still while working returns true.
func quickstart(ctx context.Context, args []string, out, errOut io.Writer, working func() bool) int {
	s, err := parseFlags(args, out)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	var m *manifests
	if err == nil {
		if m, err = readManifests(s.file); err == nil {
			err = m.prepare()
		}
	}
	if err != nil {
		_, _ = fmt.Fprintf(errOut, "quickstart: %s\n", oneLine(err))
		return 2
	}
	if !s.verbose {
		quiet()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("not finished after %s", s.timeout))
	defer cancel()
	began := time.Now()
	summary, err := run(ctx, s, m, out, working)
	if err != nil {
		_, _ = fmt.Fprintf(errOut, "quickstart: %s\n", err)
		return 1
	}
	_, _ = fmt.Fprintf(out, "ok: %s %s\n", summary, time.Since(began).Round(100*time.Millisecond))
	return 0
}

// quiet discards the log of client-go, because informers log every fault.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// run runs and checks the scenario, and returns a summary in one line.
func run(ctx context.Context, s settings, m *manifests, out io.Writer, working func() bool) (string, error) {
	for _, d := range m.deployments {
		if s.file == "" || s.replicasGiven {
			d.Spec.Replicas = int32(s.replicas) //nolint:gosec // bounded by the flag
		}
	}
	return perform(ctx, newWorld(s, m.provider(), working), s, m, out)
}

// perform runs the scenario in a world.
func perform(ctx context.Context, w *world, s settings, m *manifests, out io.Writer) (string, error) {
	p := newProgress(w, out, s.verbose)
	for _, note := range m.notes {
		p.line("note: " + note)
	}
	playing, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.run(playing, 2*s.replicas, m.rolling(), p.decision) }()
	finished := p.watch(playing)
	if s.faults {
		defer w.breakThings()()
		p.line("the provider and the API servers fail at random")
	}
	err := (&scenario{w: w, m: m, progress: p, failures: s.failures()}).play(ctx)
	end()
	if runErr := <-done; !errors.Is(runErr, context.Canceled) {
		err = errors.Join(err, runErr)
	}
	finished()
	if err != nil {
		return "", fmt.Errorf("%w\nthe cloud holds:\n%s", err, w.cloud.Snapshot())
	}
	p.line("the cloud holds: " + oneLineOf(w.cloud.Snapshot().String()))
	f, err := w.verify()
	if err != nil {
		return "", err
	}
	summary := fmt.Sprintf("at most %d machines and %d VMs at a time", f.MostAlive, f.MostVMs)
	if f.FewestAvailable >= 0 {
		summary += fmt.Sprintf(", never fewer than %d available", f.FewestAvailable)
	}
	return fmt.Sprintf("%s, no bound violated, the cloud is empty; %d writes, %d failed passes repeated;", summary, f.writes, p.errors()), nil
}
