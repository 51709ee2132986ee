// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/machinist-dev/machinist/deployment"
)

// options are the parsed command line.
type options struct {
	file, name, to, class string
	output                string
	limit                 time.Duration
	live                  bool

	join, leave, update time.Duration
	fail                float64
	seed                uint64
	never, noCluster    bool

	creationTimeout, healthTimeout time.Duration
	quota                          int64 // noQuota for none

	at     []string
	events []event // those of at, in the order of their times

	discourage                            string
	freeCapacity, byLabel, holdAutoscaler bool

	changed func(flag string) bool
}

// The values of -o and of --discourage.
var (
	outputs    = []string{"table", "json", "yaml", "svg", "summary"}
	discourage = []string{string(deployment.DiscourageNone), string(deployment.DiscouragePreferNoSchedule), string(deployment.DiscourageNoSchedule)}
)

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.file, "file", "f", "", "`file` with the MachineDeployment; - is standard input")
	fs.BoolVar(&o.live, "live", false, "begin with the machines that the cluster has now")
	fs.StringVar(&o.to, "to", "", "`file` with the new version of the deployment")
	fs.StringVar(&o.class, "class", "", "`name` of the new class (default: the name of the old class and -next)")
	fs.StringVarP(&o.output, "output", "o", outputs[0], "`format`: "+strings.Join(outputs, ", "))
	fs.DurationVar(&o.limit, "for", 24*time.Hour, "stop after this much virtual `time`")

	fs.DurationVar(&o.join, "join", 3*time.Minute, "`time` from the creation of a machine until it is available")
	fs.DurationVar(&o.leave, "leave", time.Minute, "`time` from the deletion of a machine until it is gone")
	fs.DurationVar(&o.update, "update", 5*time.Minute, "`time` of an update in place")
	fs.Float64Var(&o.fail, "fail", 0, "`part` of the new machines and of the updates in place that fail: 0.1 is one of ten")
	fs.Uint64Var(&o.seed, "seed", 1, "`number` that selects the machines that fail")
	fs.BoolVar(&o.never, "never", false, "machines of the new class never become available")
	fs.DurationVar(&o.creationTimeout, "creation-timeout", 20*time.Minute, "`time` after which a machine that is not available is replaced; 0 (--never) is never")
	fs.DurationVar(&o.healthTimeout, "health-timeout", 10*time.Minute, "`time` after which a machine whose update in place failed is replaced; 0 is never")
	fs.Int64Var(&o.quota, "quota", noQuota, "`number` of machines for which the provider has capacity; -1 is no limit")
	fs.BoolVar(&o.noCluster, "no-cluster", false, "machines join no cluster, so there are no Nodes")

	fs.StringArrayVar(&o.at, "at", nil, "`event` at a time, such as 5m=replicas:8; may be repeated")

	fs.BoolVar(&o.freeCapacity, "free-capacity", false, "delete one old machine at a time while there is no capacity for a new one")
	fs.StringVar(&o.discourage, "discourage", discourage[1], "`taint` on the Nodes of old machines: "+strings.Join(discourage, ", "))
	fs.BoolVar(&o.byLabel, "by-label", false, "replace or update only machines whose Nodes are labeled as selected")
	fs.BoolVar(&o.holdAutoscaler, "hold-autoscaler", false, "disable scale-down by the cluster autoscaler during the rollout")
}

// complete validates the options and sets those that follow from others.
func (o *options) complete(fs *pflag.FlagSet) error {
	o.changed = fs.Changed
	switch {
	case o.live && o.file != "":
		return errors.New("-f and --live exclude each other")
	case o.live && o.name == "":
		return errors.New("--live needs the name of a MachineDeployment")
	case !o.live && o.file == "":
		return errors.New("-f is missing: the file with the MachineDeployment, - for standard input; --live takes one of the cluster")
	case o.to != "" && fs.Changed("class"):
		return errors.New("--class and --to exclude each other")
	case o.to == "-" && o.file == "-":
		return errors.New("-f and --to cannot both be standard input")
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
	// A failed machine is replaced by one that fails too: that has to take some time.
	if 0 < o.creationTimeout && o.creationTimeout < time.Second {
		return fmt.Errorf("--creation-timeout is %s, want 0 or at least 1s", o.creationTimeout)
	}
	switch {
	case o.limit <= 0 || o.limit > longest:
		return fmt.Errorf("--for is %s, want more than 0 and at most %s", o.limit, span(longest))
	case !(o.fail >= 0 && o.fail <= 1): // also NaN
		return fmt.Errorf("--fail is %v, want 0 to 1", o.fail)
	case o.quota < noQuota || o.quota > maxMachines:
		return fmt.Errorf("--quota is %d, want -1 to %d", o.quota, maxMachines)
	}
	return nil
}

// longest is the longest virtual time.
const longest = 365 * day

func (o *options) readEvents() error {
	for _, text := range o.at {
		e, err := parseEvent(text)
		if err != nil {
			return fmt.Errorf("--at %w", err)
		}
		if e.after > o.limit {
			return fmt.Errorf("--at %s is after the end at %s: see --for", text, o.limit)
		}
		o.events = append(o.events, e)
	}
	slices.SortStableFunc(o.events, func(a, b event) int { return int(max(-1, min(1, a.after-b.after))) })
	return nil
}
