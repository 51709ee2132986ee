// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"
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
	if err != nil {
		_, _ = fmt.Fprintf(errOut, "quickstart: %s\n", oneLine(err.Error()))
		return 2
	}
	if !s.verbose {
		quiet()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("not finished after %s", s.timeout))
	defer cancel()
	began := time.Now()
	if err := perform(ctx, newWorld(s, working), s, out); err != nil {
		_, _ = fmt.Fprintf(errOut, "quickstart: %s\n", err)
		return 1
	}
	_, _ = fmt.Fprintf(out, "ok: no bound was violated at any time; %s\n%s", time.Since(began).Round(100*time.Millisecond), next)
	return 0
}

// next is where to go next.
const next = `
Next:
  docs/concepts.md                the packages, and what a decision is
  docs/operations.md              what does it wait for? installing and watching the programs
  examples/samples/provider-template      a provider of your own begins here
  README.md, "Programs"           the same controllers on a real API server
`

// quiet discards the log of client-go, because informers log every fault.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// perform plays all chapters in a world, checks what has happened, and prints the result.
func perform(ctx context.Context, w *world, s settings, out io.Writer) error {
	playing, end := context.WithCancel(ctx)
	defer end()
	p := newProgress(w, out, s.verbose)
	p.legend(s)
	done := make(chan error, 1)
	go func() { done <- w.run(playing, 2*s.replicas, p) }()
	watched, err := p.watch(playing)
	if err == nil {
		if s.faults {
			w.breakThings()
			p.line("the cloud and the API servers fail at random")
		}
		err = (&story{w: w, progress: p, replicas: s.replicas}).play(ctx)
	}
	end()
	if runErr := <-done; !errors.Is(runErr, context.Canceled) {
		err = errors.Join(err, runErr)
	}
	if watched != nil {
		watched()
	}
	if err != nil {
		return fmt.Errorf("%w\nthe cloud holds:\n%s", err, w.cloud.Snapshot())
	}
	f, err := w.verify()
	if err != nil {
		return err
	}
	return p.table(f)
}

// settings are the values of the flags.
type settings struct {
	replicas int
	seed     int64
	speed    float64
	faults   bool
	verbose  bool
	timeout  time.Duration
}

const maxReplicas = 1000

// parseFlags parses the command line. The error flag.ErrHelp means that it has printed the help to
// out.
func parseFlags(args []string, out io.Writer) (settings, error) {
	var s settings
	fs := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.IntVar(&s.replicas, "replicas", 3, "`number` of machines")
	fs.Int64Var(&s.seed, "seed", 1, "`seed` of names and faults")
	fs.Float64Var(&s.speed, "speed", 60, "`factor` by which the clock is faster than real time, at most")
	fs.BoolVar(&s.faults, "faults", false, "inject random failures of the cloud and the API servers")
	fs.BoolVar(&s.verbose, "v", false, "print every decision with actions, and its reason")
	fs.DurationVar(&s.timeout, "timeout", 10*time.Minute, "stop with an error after this `duration` of real time")
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprintln(out, "usage: quickstart [flags]")
		fs.SetOutput(out)
		fs.PrintDefaults()
		return s, err
	case err != nil:
		return s, fmt.Errorf("%w (-h lists the flags)", err)
	}
	return s, s.check(fs.Args())
}

func (s settings) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q (-h lists the flags)", strings.Join(rest, " "))
	case s.replicas < 1 || s.replicas > maxReplicas:
		return fmt.Errorf("-replicas is %d, want 1 to %d", s.replicas, maxReplicas)
	case !(s.speed >= 0.01 && s.speed <= 1000) || math.IsNaN(s.speed):
		return fmt.Errorf("-speed is %g, want 0.01 to 1000", s.speed)
	case s.timeout <= 0:
		return fmt.Errorf("-timeout is %s, want more than 0", s.timeout)
	}
	return nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
