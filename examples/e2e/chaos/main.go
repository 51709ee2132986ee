// SPDX-License-Identifier: Apache-2.0

// Program chaos injects faults while 20 machines are rolled again and again, and checks that no bound
// was violated.
//
//	go run ./chaos -seed 1
//
// It kills the manager 100 times, the API server 10 times and etcd 5 times, and kills and freezes 10
// Nodes each. The machines are real kubelets that start no containers. Two workloads with
// PodDisruptionBudgets run on them. Nodes fail in the second half of the run only. The seed determines
// the order of the faults, and how much happens between two of them. The run prints one table, and
// ends with status 1 if anything in it is wrong. It takes ten to fifteen minutes and 4 GB of memory on
// two cores.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := chaos(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	os.Exit(status)
}

// chaos is the program without its process. It returns the exit status.
func chaos(ctx context.Context, args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(errOut)
	seed := flags.Uint64("seed", 1, "seed of the order of the faults")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("no arguments are expected, but there is %q", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(errOut, "chaos:", err)
		return 2
	}
	r, err := run(ctx, *seed, errOut)
	for _, c := range r.checks {
		if c.err != nil {
			fmt.Fprintf(errOut, "chaos: %s: %v\n", c.what, c.err)
		}
	}
	if r.print(out); err != nil {
		fmt.Fprintln(errOut, "chaos:", err)
	}
	if err != nil || !r.ok() {
		return 1
	}
	return 0
}

// run injects all faults and judges what happened.
func run(ctx context.Context, seed uint64, progress io.Writer) (r *report, err error) {
	r = &report{seed: seed, began: time.Now(), injected: map[fault]int{}}
	defer func() { r.took = time.Since(r.began) }()
	c, err := controlplane.Start(ctx, controlplane.Options{Progress: progress, NodeMonitorGracePeriod: nodeGrace})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	cluster, err := env.Open(ctx, c)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	f, err := newFleet(ctx, cluster, r, progress)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, f.env.Close()) }() //nolint:contextcheck // as in newFleet
	return r, f.play(ctx, schedule(seed))
}

// report is what one run found.
type report struct {
	seed     uint64
	began    time.Time
	took     time.Duration
	injected map[fault]int
	rollouts int
	restarts int // of the manager, after it ended by itself
	figures  fmt.Stringer
	checks   []check
}

// check is one question with its answer; nil is yes.
type check struct {
	what string
	err  error
}

// judge adds a check.
func (r *report) judge(what string, err error) { r.checks = append(r.checks, check{what, err}) }

// ok reports whether all faults were injected and all checks passed.
func (r *report) ok() bool {
	for f, n := range wanted() {
		if r.injected[f] < n {
			return false
		}
	}
	for _, c := range r.checks {
		if c.err != nil {
			return false
		}
	}
	return len(r.checks) == checks && r.rollouts > 0
}

// print prints the table.
func (r *report) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "seed %d\t%s\n", r.seed, r.took.Round(time.Second))
	for _, f := range faults() {
		fmt.Fprintf(table, "%s\t%d of %d times\n", f, r.injected[f], wanted()[f])
	}
	fmt.Fprintf(table, "rollouts completed\t%d\n", r.rollouts)
	fmt.Fprintf(table, "manager ended by itself\t%d times\n", r.restarts)
	if r.figures != nil {
		text, _, _ := strings.Cut(r.figures.String(), "; not judged") // each gap of each kind
		fmt.Fprintf(table, "audit\t%s\n", text)
	}
	for _, c := range r.checks {
		answer := "yes"
		if c.err != nil {
			text, _, _ := strings.Cut(c.err.Error(), "\n") // the rest is for the log
			answer = "NO: " + text
		}
		fmt.Fprintf(table, "%s\t%s\n", c.what, answer)
	}
	if n := checks - len(r.checks); n > 0 {
		fmt.Fprintf(table, "not checked\t%d of %d\n", n, checks)
	}
	_ = table.Flush() // to standard output
}
