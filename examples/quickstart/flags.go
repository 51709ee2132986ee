// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// settings are the values of the flags.
type settings struct {
	file     string
	replicas int
	seed     int64
	speed    float64
	faults   bool
	verbose  bool
	timeout  time.Duration

	replicasGiven bool
}

const maxReplicas = 1000

// failures reports whether the demo makes machines fail. It does so only with its own
// manifests, whose timeouts it can choose.
func (s settings) failures() bool { return s.file == "" }

// parseFlags parses the command line. The error flag.ErrHelp means that it has printed the help to
// out.
func parseFlags(args []string, out io.Writer) (settings, error) {
	var s settings
	fs := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&s.file, "f", "", "`file` with manifests in the format of kubectl get -o yaml, or - for standard input (default: a built-in manifest)")
	fs.IntVar(&s.replicas, "replicas", 3, "initial `number` of machines")
	fs.Int64Var(&s.seed, "seed", 1, "`seed` of names and faults")
	fs.Float64Var(&s.speed, "speed", 60, "`factor` by which the clock is faster than real time, at most")
	fs.BoolVar(&s.faults, "faults", false, "inject random failures of the provider and the API servers")
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
	fs.Visit(func(f *flag.Flag) { s.replicasGiven = s.replicasGiven || f.Name == "replicas" })
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
