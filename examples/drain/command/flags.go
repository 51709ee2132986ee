// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// errUsage says that the command line makes no sense.
var errUsage = errors.New("bad command line, -h lists the flags")

// options are what the command line says.
type options struct {
	node string

	kubeconfig, context string
	embedded            bool

	dryRun, output string
	explain        bool

	force, deleteEmptyDirData, ignoreDaemonSets bool
	honorDoNotDisrupt, clusterAPILabels         bool
	podSelector                                 string
	gracePeriod, skipWaitForDelete              int
	waitForVolumes                              bool

	disableEviction                       bool
	timeout, forceAfter, forceDeleteAfter time.Duration

	owner, taint string
	undo         bool

	changed func(flag string) bool
}

const usage = `Drains a Node, and says what it waits for.

  drain NODE [flags]            in the cluster of your kubeconfig
  drain --embedded [flags]      in a cluster in memory, to try it
  drain NODE --dry-run          print the first decision, without any change

Exit status: 0 drained; 1 not drained (blocked, out of time, interrupted, or an
error of the cluster); 2 refused, and nothing was changed.
`

// parseFlags reads the command line. pflag.ErrHelp means that help was asked for
// and has been printed to out.
func parseFlags(args []string, out io.Writer) (options, error) {
	var o options
	fs := pflag.NewFlagSet("drain", pflag.ContinueOnError)
	fs.SortFlags = false
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	o.addFlags(fs)
	o.changed = fs.Changed
	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		_, _ = fmt.Fprintf(out, "%s\n%s", usage, fs.FlagUsages())
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	if err := o.complete(fs.Args()); err != nil {
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	return o, nil
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that leads to the cluster (default $KUBECONFIG, ~/.kube/config)")
	fs.StringVar(&o.context, "context", "", "name of the context of the kubeconfig")
	fs.BoolVar(&o.embedded, "embedded", false, "drain a Node of a cluster in memory; the default NODE is node-1")
	fs.StringVar(&o.dryRun, "dry-run", "none", "`mode` client prints the plan and changes nothing")
	fs.Lookup("dry-run").NoOptDefVal = "client"
	fs.StringVarP(&o.output, "output", "o", "", "`format` of a dry run: table, json or yaml (default table)")
	fs.BoolVar(&o.explain, "explain", false, "print for each pod and volume what it waits for, and what happens next")

	fs.BoolVar(&o.force, "force", false, "also evict pods that no controller would recreate")
	fs.BoolVar(&o.deleteEmptyDirData, "delete-emptydir-data", false, "also evict pods with emptyDir volumes, whose data is lost")
	fs.BoolVar(&o.ignoreDaemonSets, "ignore-daemonsets", true, "has no effect: pods of DaemonSets always stay")
	fs.StringVar(&o.podSelector, "pod-selector", "", "only pods with these `labels`")
	fs.BoolVar(&o.honorDoNotDisrupt, "honor-do-not-disrupt", true, "keep pods annotated karpenter.sh/do-not-disrupt")
	fs.BoolVar(&o.clusterAPILabels, "cluster-api-labels", true, "apply the label cluster.x-k8s.io/drain of pods")

	fs.IntVar(&o.gracePeriod, "grace-period", -1, "longest grace period in `seconds`; -1 is that of the pod")
	fs.IntVar(&o.skipWaitForDelete, "skip-wait-for-delete-timeout", 0, "ignore pods deleted more than `seconds` ago; 0 waits for all")
	fs.BoolVar(&o.waitForVolumes, "wait-for-volumes", false, "wait until the volumes of the pods are detached")
	fs.DurationVar(&o.timeout, "timeout", 0, "give up after this `time`; 0 is never")

	fs.DurationVar(&o.forceAfter, "force-after", 0, "after this `time` delete pods instead of evicting them; 0 is never")
	fs.DurationVar(&o.forceDeleteAfter, "force-delete-after", 0, "after this `time` delete pods without waiting for the kubelet")
	fs.BoolVar(&o.disableEviction, "disable-eviction", false, "delete pods instead of evicting them, which ignores PodDisruptionBudgets")

	fs.StringVar(&o.owner, "owner", "", "`name` of the owner of the cordon; a Node may have several")
	fs.StringVar(&o.taint, "taint", "", "set a taint of this `key` instead of spec.unschedulable; needs --owner")
	fs.BoolVar(&o.undo, "undo", false, "take the cordon back if the drain fails; the owner is "+defaultOwner+" unless given")
}

// complete checks what was given and fills in what follows from it.
func (o *options) complete(args []string) error {
	for _, step := range []func() error{
		func() error { return o.completeNode(args) },
		o.checkCluster, o.checkOutput, o.checkPods, o.checkTimes, o.checkForce, o.completeCordon,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) completeNode(args []string) error {
	switch {
	case len(args) == 0 && o.embedded:
		o.node = townNode
		return nil
	case len(args) == 0:
		return errors.New("the name of a node is missing")
	case len(args) > 1:
		return fmt.Errorf("one node at a time, not %q", args)
	}
	o.node = strings.TrimPrefix(strings.TrimPrefix(args[0], "node/"), "nodes/")
	if problems := validation.IsDNS1123Subdomain(o.node); len(problems) > 0 {
		return fmt.Errorf("%q is no name of a node", args[0])
	}
	return nil
}

func (o *options) checkCluster() error {
	if o.embedded && (o.kubeconfig != "" || o.context != "") {
		return errors.New("--embedded takes neither --kubeconfig nor --context")
	}
	return nil
}

func (o *options) checkOutput() error {
	switch o.dryRun {
	case "none", "client":
	case "server":
		return errors.New("--dry-run=server is not supported, client is")
	default:
		return fmt.Errorf("--dry-run is %q, want none or client", o.dryRun)
	}
	switch {
	case o.output != "" && !o.dry():
		return errors.New("-o needs --dry-run")
	case o.output != "" && o.output != "table" && o.output != "json" && o.output != "yaml":
		return fmt.Errorf("-o is %q, want table, json or yaml", o.output)
	case o.explain && (o.output == "json" || o.output == "yaml"):
		return fmt.Errorf("-o %s says everything without --explain", o.output)
	}
	return nil
}

func (o *options) checkPods() error {
	if !o.ignoreDaemonSets {
		return errors.New("--ignore-daemonsets=false: pods of DaemonSets are always left alone")
	}
	if o.changed("pod-selector") {
		if _, err := labels.Parse(o.podSelector); err != nil {
			return fmt.Errorf("--pod-selector: %s", oneLine(err))
		}
	}
	return nil
}

func (o *options) checkTimes() error {
	switch {
	case o.gracePeriod == 0:
		return errors.New("--grace-period is 0, which stops no pod: --force-delete-after takes pods off the API, --grace-period=1 is short")
	case o.gracePeriod > math.MaxInt32:
		return fmt.Errorf("--grace-period is %d, want at most %d", o.gracePeriod, math.MaxInt32)
	case o.skipWaitForDelete < 0 || o.skipWaitForDelete > math.MaxInt32:
		return fmt.Errorf("--skip-wait-for-delete-timeout is %d, want 0 to %d", o.skipWaitForDelete, math.MaxInt32)
	case o.timeout < 0:
		return fmt.Errorf("--timeout is %s, want 0 or more", o.timeout)
	}
	return nil
}

func (o *options) checkForce() error {
	switch {
	case o.changed("force-after") && o.forceAfter <= 0:
		return fmt.Errorf("--force-after is %s, want more than 0: --disable-eviction ignores budgets from the start", o.forceAfter)
	case o.changed("force-delete-after") && o.forceDeleteAfter <= 0:
		return fmt.Errorf("--force-delete-after is %s, want more than 0", o.forceDeleteAfter)
	case o.disableEviction && o.forceAfter > 0:
		return errors.New("--disable-eviction leaves nothing to do for --force-after")
	case o.forceDeleteAfter > 0 && o.forceDeleteAfter < o.forceAfter:
		return fmt.Errorf("--force-delete-after %s is before --force-after %s", o.forceDeleteAfter, o.forceAfter)
	case o.timeout > 0 && o.forceAfter >= o.timeout:
		return fmt.Errorf("--force-after %s is not before --timeout %s", o.forceAfter, o.timeout)
	case o.timeout > 0 && o.forceDeleteAfter >= o.timeout:
		return fmt.Errorf("--force-delete-after %s is not before --timeout %s", o.forceDeleteAfter, o.timeout)
	}
	return nil
}

// dry says whether nothing is to be changed.
func (o *options) dry() bool { return o.dryRun == "client" }

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
