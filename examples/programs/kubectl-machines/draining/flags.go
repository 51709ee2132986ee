// SPDX-License-Identifier: Apache-2.0

package draining

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/internal/explain"
	"github.com/machinist-dev/machinist/examples/programs/kubectl-machines/cli"
	"github.com/machinist-dev/machinist/nodeops"
)

// options are the values of the command line.
type options struct {
	nodes    []string
	selector string

	dryRun, output string

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

const help = `Evict the pods of Nodes, one Node after the other, and say of each pod what it waits for.

Flags of kubectl drain have the same meaning, with these exceptions:

  * --ignore-daemonsets is true by default. With =false a Node with pods of DaemonSets is refused.
  * A drain that cannot end is refused before any Node is cordoned, with the flag for each obstacle.
  * Pods with the annotation karpenter.sh/do-not-disrupt stay, and the label
    cluster.x-k8s.io/drain skips a pod or waits for its completion.

Exit status: 0 drained; 1 not drained (blocked, timeout, interrupted, or an error of the cluster);
2 refused, and nothing was changed. The first Ctrl-C ends the drain, the second the process.

It needs these rights. Only those on nodes, pods and evictions are required: other lists that it may not
read are not evaluated, and it says so.

  nodes                                      get, list, watch, patch
  pods                                       list, watch
  pods                                       delete, with --force-after, --force-delete-after or --disable-eviction
  pods/eviction                              create
  poddisruptionbudgets.policy                list, watch
  daemonsets.apps                            list, watch
  volumeattachments.storage.k8s.io           list, watch, with --wait-for-volumes
  persistentvolumeclaims, persistentvolumes  get, list, watch, with --wait-for-volumes`

const examples = `  kubectl machines drain node-1 node-2 --timeout 1h            # respect PodDisruptionBudgets
  kubectl machines drain -l zone=a --dry-run                   # print the first decision of each Node
  kubectl machines drain node-1 --timeout 30m --force-after 20m  # after 20 minutes delete pods
  kubectl machines drain node-1 --force --delete-emptydir-data # also unmanaged pods and local data
  kubectl machines drain node-1 --owner kured --undo           # uncordon if the drain fails`

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.selector, "selector", "l", "", "drain all Nodes with these `labels`")
	fs.StringVar(&o.dryRun, "dry-run", "none", "client prints the plan, server also checks each request")
	fs.Lookup("dry-run").NoOptDefVal = "client"
	fs.StringVarP(&o.output, "output", "o", "", "`format`: json or yaml for each decision, table (default) for people")

	fs.BoolVar(&o.force, "force", false, "also evict pods that no controller would recreate")
	fs.BoolVar(&o.deleteEmptyDirData, "delete-emptydir-data", false, "also evict pods with emptyDir volumes, whose data is lost")
	fs.BoolVar(&o.ignoreDaemonSets, "ignore-daemonsets", true, "leave pods of DaemonSets; false refuses a Node with one")
	fs.StringVar(&o.podSelector, "pod-selector", "", "evict only pods with these `labels`")
	fs.BoolVar(&o.honorDoNotDisrupt, "honor-do-not-disrupt", true, "keep pods annotated karpenter.sh/do-not-disrupt")
	fs.BoolVar(&o.clusterAPILabels, "cluster-api-labels", true, "apply the label cluster.x-k8s.io/drain of pods")

	fs.IntVar(&o.gracePeriod, "grace-period", -1, "grace period in `seconds`; 0 is at once, -1 is that of the pod")
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
	for _, step := range []func() error{func() error { return o.completeNodes(args) }, o.checkValues, o.checkForce, o.completeCordon} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) completeNodes(args []string) (err error) {
	switch {
	case len(args) > 0 && o.selector != "":
		return errors.New("use either names of Nodes or --selector")
	case o.changed("selector"):
		if _, err := labels.Parse(o.selector); err != nil || o.selector == "" {
			return fmt.Errorf("--selector is %q, want labels such as zone=a", o.selector)
		}
		return nil
	case len(args) == 0:
		return errors.New("the name of a Node is missing")
	}
	o.nodes, err = nodesOf(args)
	return err
}

// nodesOf returns the names of Nodes, each once.
func nodesOf(args []string) (nodes []string, _ error) {
	for _, arg := range args {
		_, name, err := cli.Named(arg, explain.Nodes)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(nodes, name) {
			nodes = append(nodes, name)
		}
	}
	return nodes, nil
}

func (o *options) checkValues() error {
	_, err := labels.Parse(o.podSelector)
	switch {
	case !slices.Contains([]string{"none", "client", "server"}, o.dryRun):
		return fmt.Errorf("--dry-run is %q, want none, client or server", o.dryRun)
	case !slices.Contains([]string{"", "table", "json", "yaml"}, o.output):
		return fmt.Errorf("-o is %q, want table, json or yaml", o.output)
	case err != nil:
		return fmt.Errorf("--pod-selector: %s", cli.OneLine(err))
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

// defaultOwner is the owner of the cordon with --undo and without --owner.
const defaultOwner = "drain"

// completeCordon sets the default owner and checks the cordon.
func (o *options) completeCordon() error {
	if o.undo && o.owner == "" {
		o.owner = defaultOwner
	}
	if o.taint != "" && o.owner == "" {
		return errors.New("--taint needs --owner, which removes it later")
	}
	if err := o.cordon().Validate(); err != nil {
		return fmt.Errorf("--owner or --taint: %s", cli.OneLine(err))
	}
	return nil
}

func (o *options) cordon() nodeops.Cordon {
	return nodeops.Cordon{Owner: o.owner, Reason: "drain", Taint: o.taint}
}

// policy returns the policy of the flags.
func (o *options) policy() drain.Policy {
	p := drain.Policy{
		Ladder:               o.ladder(),
		Cordon:               o.cordon(),
		EvictUnmanaged:       o.force,
		EvictLocalStorage:    o.deleteEmptyDirData,
		PodSelector:          o.podSelector,
		ClusterAPILabels:     o.clusterAPILabels,
		DoNotDisrupt:         o.honorDoNotDisrupt,
		SkipTerminatingAfter: time.Duration(o.skipWaitForDelete) * time.Second,
		Volumes:              drain.VolumePolicy{Wait: o.waitForVolumes},
	}
	if o.gracePeriod >= 0 {
		p.Grace = new(time.Duration(o.gracePeriod) * time.Second)
	}
	return p
}

// ladder returns how the drain escalates, and when it gives up.
func (o *options) ladder() drain.Ladder {
	var l drain.Ladder
	if o.disableEviction || o.forceAfter > 0 {
		l = append(l, drain.Rung{After: o.forceAfter, Action: drain.IgnoreBudgets})
	}
	if o.forceDeleteAfter > 0 {
		l = append(l, drain.Rung{After: o.forceDeleteAfter, Action: drain.ForceDeletePods})
	}
	if o.timeout > 0 {
		l = append(l, drain.Rung{After: o.timeout, Action: drain.GiveUp})
	}
	return l
}
