// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/machinist-dev/machinist/deployment"
)

// errUsage says that the command line makes no sense.
var errUsage = errors.New("bad command line, -h lists the flags")

// options are what the command line says.
type options struct {
	file, to, class string
	output          string
	limit           time.Duration

	join, leave, update time.Duration
	fail                float64
	seed                uint64
	never, noCluster    bool

	creationTimeout, healthTimeout time.Duration
	quota                          int64 // noQuota for none

	at     []string
	events []event // of at, in the order in which they happen

	discourage                            string
	freeCapacity, byLabel, holdAutoscaler bool
}

const usage = `Plays the roll-out of a MachineDeployment in virtual time and shows it.

  rollout -f deployment.yaml                  another class, step by step
  rollout -f deployment.yaml --to new.yaml    another spec
  rollout -f deployment.yaml -o svg           the same as a picture
  rollout -f - --never --at 40m=rollback      a class whose machines never come

What may happen at a time (--at TIME=EVENT): replicas:N, class:NAME, surge:N,
unavailable:N, pause, resume, rollback, rollback:REVISION, delete:MACHINE,
select:MACHINE, select:all, quota:N, quota:none. MACHINE is a name, oldest or newest.

Exit status: 0 the roll-out is complete; 1 it stopped before, or is not over
when its time is; 2 nothing was played, since flags or file make no sense.
`

// The forms of -o.
const (
	outputTable   = "table"
	outputWide    = "wide"
	outputJSON    = "json"
	outputSVG     = "svg"
	outputSummary = "summary"
)

var (
	outputs    = []string{outputTable, outputWide, outputJSON, outputSVG, outputSummary}
	discourage = []string{string(deployment.DiscourageNone), string(deployment.DiscouragePreferNoSchedule), string(deployment.DiscourageNoSchedule)}
)

// parseFlags reads the command line. pflag.ErrHelp means that help was asked for and has been
// printed to out.
func parseFlags(args []string, out io.Writer) (options, error) {
	var o options
	fs := pflag.NewFlagSet("rollout", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	o.addFlags(fs)
	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		_, _ = fmt.Fprintf(out, "%s\n%s", usage, fs.FlagUsages())
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w: %s", errUsage, oneLine(err))
	}
	if err := o.complete(fs); err != nil {
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	return o, nil
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.file, "file", "f", "", "`file` with the deployment, - for standard input; the first one in it")
	fs.StringVar(&o.to, "to", "", "`file` with the deployment as it is to become")
	fs.StringVar(&o.class, "class", "", "`name` of the new class (default: the old one with -next behind)")
	fs.StringVarP(&o.output, "output", "o", outputTable, "`form`: "+strings.Join(outputs, ", "))
	fs.DurationVar(&o.limit, "for", 24*time.Hour, "stop after this much virtual `time`")

	fs.DurationVar(&o.join, "join", 3*time.Minute, "`time` until a machine is available")
	fs.DurationVar(&o.leave, "leave", time.Minute, "`time` until a deleted machine is gone")
	fs.DurationVar(&o.update, "update", 5*time.Minute, "`time` that an update in place takes")
	fs.Float64Var(&o.fail, "fail", 0, "`part` of the new machines, and of the updates in place, that fail: 0.1 is every tenth")
	fs.Uint64Var(&o.seed, "seed", 1, "`number` that says which ones fail")
	fs.BoolVar(&o.never, "never", false, "machines of the new class never become available")
	fs.DurationVar(&o.creationTimeout, "creation-timeout", 20*time.Minute, "`time` after which a machine that does not join is replaced; 0 is never, as is --never")
	fs.DurationVar(&o.healthTimeout, "health-timeout", 10*time.Minute, "`time` after which a machine that was not updated is replaced; 0 is never")
	fs.Int64Var(&o.quota, "quota", noQuota, "`number` of machines that the provider has capacity for; -1 is any")
	fs.BoolVar(&o.noCluster, "no-cluster", false, "there is no cluster which machines join, so no Nodes")

	fs.StringArrayVar(&o.at, "at", nil, "what happens when, such as 5m=replicas:8; may be repeated; the `event`")

	fs.BoolVar(&o.freeCapacity, "free-capacity", false, "give up one old machine at a time while there is no capacity for a new one")
	fs.StringVar(&o.discourage, "discourage", discourage[1], "`taint` on the Nodes of old machines: "+strings.Join(discourage, ", "))
	fs.BoolVar(&o.byLabel, "by-label", false, "machines go only if their Nodes are labelled as selected")
	fs.BoolVar(&o.holdAutoscaler, "hold-autoscaler", false, "keep the cluster autoscaler off the Nodes meanwhile")
}

// complete checks what was given and fills in what follows from it.
func (o *options) complete(fs *pflag.FlagSet) error {
	switch {
	case fs.NArg() > 0:
		return fmt.Errorf("%q is too much, files are given with -f", fs.Arg(0))
	case o.file == "":
		return errors.New("-f is missing: the file with the deployment, - for standard input")
	case o.to != "" && fs.Changed("class"):
		return errors.New("--class and --to both say what the deployment becomes")
	case o.to == "-" && o.file == "-":
		return errors.New("standard input is read once, not for -f and --to")
	case fs.Changed("class"):
		if err := checkName(o.class); err != nil {
			return fmt.Errorf("--class: %w", err)
		}
	}
	if o.never && !fs.Changed("creation-timeout") {
		o.creationTimeout = 0
	}
	if err := o.checkModel(); err != nil {
		return err
	}
	for _, choice := range []struct {
		flag, value string
		of          []string
	}{
		{"-o", o.output, outputs}, {"--discourage", o.discourage, discourage},
	} {
		if !slices.Contains(choice.of, choice.value) {
			return fmt.Errorf("%s is %q, want %s", choice.flag, choice.value, strings.Join(choice.of, ", "))
		}
	}
	return o.readEvents()
}

func (o *options) checkModel() error {
	for _, t := range []struct {
		flag  string
		value time.Duration
	}{
		{"--join", o.join}, {"--leave", o.leave}, {"--update", o.update},
		{"--creation-timeout", o.creationTimeout}, {"--health-timeout", o.healthTimeout},
	} {
		if t.value < 0 || t.value > longest {
			return fmt.Errorf("%s is %s, want 0 to %s", t.flag, t.value, span(longest))
		}
	}
	// Machines that fail are replaced by others that fail: that must not take no time.
	if 0 < o.creationTimeout && o.creationTimeout < time.Second {
		return fmt.Errorf("--creation-timeout is %s, want 0 or at least 1s", o.creationTimeout)
	}
	switch {
	case o.limit <= 0 || o.limit > longest:
		return fmt.Errorf("--for is %s, want more than 0 and at most %s", o.limit, span(longest))
	case !(o.fail >= 0 && o.fail <= 1): // also what is no number
		return fmt.Errorf("--fail is %v, want 0 to 1", o.fail)
	case o.quota < noQuota || o.quota > mostMachines:
		return fmt.Errorf("--quota is %d, want -1 to %d", o.quota, mostMachines)
	}
	return nil
}

// longest is the longest time that is played.
const longest = 365 * day

func (o *options) readEvents() error {
	for _, text := range o.at {
		e, err := parseEvent(text)
		if err != nil {
			return fmt.Errorf("--at %w", err)
		}
		if e.after > o.limit {
			return fmt.Errorf("--at %s is after the end, which --for says is %s", text, o.limit)
		}
		o.events = append(o.events, e)
	}
	slices.SortStableFunc(o.events, func(a, b event) int { return int(max(-1, min(1, a.after-b.after))) })
	return nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
