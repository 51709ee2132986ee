// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// errUsage is wrapped by the errors of an invalid command line.
var errUsage = errors.New("bad command line, -h lists the flags")

// options are the values of the command line.
type options struct {
	nodes    []string
	selector string

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

const usage = `Drains Nodes, one after the other, and prints what each drain waits for.

  drain NODE... [flags]         in the cluster of your kubeconfig
  drain -l zone=a [flags]       all Nodes with these labels
  drain --embedded [flags]      in a cluster in memory, to try it
  drain NODE... --dry-run       print the first decision, without any change

Exit status: 0 drained; 1 not drained (blocked, timeout, interrupted, or an error
of the cluster); 2 refused, and nothing was changed.
`

// parseFlags reads the command line. With pflag.ErrHelp the help has been printed to out.
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
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default $KUBECONFIG, ~/.kube/config)")
	fs.StringVar(&o.context, "context", "", "name of the context of the kubeconfig")
	fs.BoolVar(&o.embedded, "embedded", false, "drain a Node of a cluster in memory; the default NODE is node-1")
	fs.StringVarP(&o.selector, "selector", "l", "", "drain all Nodes with these `labels`")
	fs.StringVar(&o.dryRun, "dry-run", "none", "client prints the plan, server also checks each request")
	fs.Lookup("dry-run").NoOptDefVal = "client"
	fs.StringVarP(&o.output, "output", "o", "", "`format`: json or yaml for each decision, table (default) for people")
	fs.BoolVar(&o.explain, "explain", false, "print for each pod and volume what it waits for, and what happens next")

	fs.BoolVar(&o.force, "force", false, "also evict pods that no controller would recreate")
	fs.BoolVar(&o.deleteEmptyDirData, "delete-emptydir-data", false, "also evict pods with emptyDir volumes, whose data is lost")
	fs.BoolVar(&o.ignoreDaemonSets, "ignore-daemonsets", true, "leave pods of DaemonSets; false refuses a Node with one")
	fs.StringVar(&o.podSelector, "pod-selector", "", "evict only pods with these `labels`")
	fs.BoolVar(&o.honorDoNotDisrupt, "honor-do-not-disrupt", true, "keep pods annotated karpenter.sh/do-not-disrupt")
	fs.BoolVar(&o.clusterAPILabels, "cluster-api-labels", true, "apply the label cluster.x-k8s.io/drain of pods")

	fs.IntVar(&o.gracePeriod, "grace-period", -1, "longest grace period in `seconds`; -1 is that of the pod")
	fs.IntVar(&o.skipWaitForDelete, "skip-wait-for-delete-timeout", 0, "ignore pods deleted more than `seconds` ago; 0 waits for all")
	fs.BoolVar(&o.waitForVolumes, "wait-for-volumes", false, "wait until the volumes of the pods are detached")
	fs.DurationVar(&o.timeout, "timeout", 0, "give up after this `time` for each Node; 0 is never")

	fs.DurationVar(&o.forceAfter, "force-after", 0, "after this `time` delete pods instead of evicting them; 0 is never")
	fs.DurationVar(&o.forceDeleteAfter, "force-delete-after", 0, "after this `time` delete pods without waiting for the kubelet")
	fs.BoolVar(&o.disableEviction, "disable-eviction", false, "delete pods instead of evicting them, which ignores PodDisruptionBudgets")

	fs.StringVar(&o.owner, "owner", "", "`name` of the owner of the cordon; a Node may have several")
	fs.StringVar(&o.taint, "taint", "", "set a taint of this `key` instead of spec.unschedulable; needs --owner")
	fs.BoolVar(&o.undo, "undo", false, "remove the cordon if the drain fails; the default owner is "+defaultOwner)
}

// complete checks the options and sets defaults.
func (o *options) complete(args []string) error {
	for _, step := range []func() error{
		func() error { return o.completeNodes(args) },
		o.checkCluster, o.checkOutput, o.checkPods, o.checkTimes, o.checkForce, o.completeCordon,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) completeNodes(args []string) error {
	switch {
	case len(args) > 0 && o.selector != "":
		return errors.New("use either names of Nodes or --selector")
	case o.changed("selector"):
		if _, err := labels.Parse(o.selector); err != nil || o.selector == "" {
			return fmt.Errorf("--selector is %q, want labels such as zone=a", o.selector)
		}
		return nil
	case len(args) == 0 && o.embedded:
		o.nodes = []string{demoNode}
		return nil
	case len(args) == 0:
		return errors.New("the name of a Node is missing")
	}
	for _, arg := range args {
		name := strings.TrimPrefix(strings.TrimPrefix(arg, "node/"), "nodes/")
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return fmt.Errorf("%q is not a valid name of a Node", arg)
		}
		if !slices.Contains(o.nodes, name) {
			o.nodes = append(o.nodes, name)
		}
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
	switch {
	case !slices.Contains([]string{"none", "client", "server"}, o.dryRun):
		return fmt.Errorf("--dry-run is %q, want none, client or server", o.dryRun)
	case !slices.Contains([]string{"", "table", "json", "yaml"}, o.output):
		return fmt.Errorf("-o is %q, want table, json or yaml", o.output)
	case o.explain && (o.output == "json" || o.output == "yaml"):
		return fmt.Errorf("-o %s has everything that --explain prints", o.output)
	}
	return nil
}

func (o *options) checkPods() error {
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
		return errors.New("--grace-period is 0, which stops no pod: --force-delete-after deletes pods from the API, --grace-period=1 is short")
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
		return errors.New("--force-after has no effect with --disable-eviction")
	case o.forceDeleteAfter > 0 && o.forceDeleteAfter < o.forceAfter:
		return fmt.Errorf("--force-delete-after %s is before --force-after %s", o.forceDeleteAfter, o.forceAfter)
	case o.timeout > 0 && o.forceAfter >= o.timeout:
		return fmt.Errorf("--force-after %s is not before --timeout %s", o.forceAfter, o.timeout)
	case o.timeout > 0 && o.forceDeleteAfter >= o.timeout:
		return fmt.Errorf("--force-delete-after %s is not before --timeout %s", o.forceDeleteAfter, o.timeout)
	}
	return nil
}

// dry reports whether nothing is changed.
func (o *options) dry() bool { return o.dryRun != "none" }

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
