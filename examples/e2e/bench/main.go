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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/machinist-dev/machinist/examples/e2e/controlplane"
	"github.com/machinist-dev/machinist/examples/e2e/env"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := bench(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	os.Exit(status)
}

// settings are what the flags say.
type settings struct {
	sizes []int
	// timeout is how long one phase may take: a rollout of 10,000 machines takes more than half an hour on two cores.
	timeout  time.Duration
	timeline bool
	// settling is how long a phase is measured after its last wait, because Events come late.
	settling time.Duration
	// qps and burst are the rate limit of each client of the manager.
	qps, burst int
	profiles   string
}

// nodeGrace returns how long a Node may be silent. The kubelets renew their Leases every fifth of it: these requests are
// load without meaning here, and a fleet of 10,000 has no more of them in a second than one of 3,000.
func (s settings) nodeGrace() time.Duration {
	grace := 5 * time.Minute
	for _, size := range s.sizes {
		grace = max(grace, time.Duration(size)*100*time.Millisecond)
	}
	return grace
}

// parse reads the flags.
func parse(args []string, errOut io.Writer) (settings, error) {
	s := settings{settling: settling}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errOut)
	sizes := flags.String("machines", "100,1000,3000", "sizes of the fleets, separated by `commas`")
	flags.IntVar(&s.qps, "qps", 10000, "requests a second of each client of the manager; the targets are met without a limit that is felt")
	flags.IntVar(&s.burst, "burst", 10000, "requests at once of each client of the manager")
	flags.StringVar(&s.profiles, "profiles", "", "write CPU and heap profiles of the manager in each phase into a `folder`, which costs CPU time")
	flags.BoolVar(&s.timeline, "v", false, "also print every change of one machine, and every request for it")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("no arguments are expected, but there is %q", flags.Arg(0))
	}
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > 20000 {
			return s, fmt.Errorf("-machines: %q is no number from 1 to 20000", text)
		}
		s.sizes = append(s.sizes, n)
	}
	slices.Sort(s.sizes)
	s.sizes = slices.Compact(s.sizes)
	s.timeout = 10*time.Minute + time.Duration(s.sizes[len(s.sizes)-1])*500*time.Millisecond
	if s.qps <= 0 || s.burst <= 0 {
		return s, errors.New("-qps and -burst must be positive")
	}
	return s, nil
}

// bench is the program without its process.
func bench(ctx context.Context, args []string, out, errOut io.Writer) int {
	s, err := parse(args, errOut)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(errOut, "bench:", err)
		return 2
	}
	met, err := run(ctx, s, out, errOut)
	if err != nil {
		fmt.Fprintln(errOut, "bench:", err)
	}
	if err != nil || !met {
		return 1
	}
	return 0
}

// run measures everything, prints it, and reports whether the targets are met.
func run(ctx context.Context, s settings, out, progress io.Writer) (met bool, err error) {
	c, err := controlplane.Start(ctx, controlplane.Options{Progress: progress, NodeMonitorGracePeriod: s.nodeGrace()})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	cluster, err := env.Open(ctx, c)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	fmt.Fprintf(out, "Kubernetes %s, manager with %s\n", c.Version(), strings.Join(s.managerFlags(), " "))

	single, err := measure(ctx, cluster, s, singles(), progress)
	if err != nil {
		return false, err
	}
	single.print(out, s.timeline)
	sizes := map[int]result{}
	for _, size := range s.sizes {
		r, err := measure(ctx, cluster, s, fleetOf(size), progress)
		if err != nil {
			judge(out, runtime.GOOS, single, sizes) // what was measured
			return false, err
		}
		r.print(out, s.timeline)
		sizes[size] = r
	}
	return judge(out, runtime.GOOS, single, sizes), nil
}
