// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/clientset/versioned"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// View reads the objects of a cluster or of a dump. It is safe for concurrent use after its fields are set.
type View struct {
	// Namespace is that of machines, sets, deployments and classes. Empty means all, and that names are
	// written as NAMESPACE/NAME if they are not unique.
	Namespace string
	// Now returns the time of the decisions. It never returns zero.
	Now func() time.Time
	// Machines, Sets and Deployments are the policies of the controllers. [Live] and [Dump] set the defaults.
	Machines    machine.Policy
	Sets        machineset.Policy
	Deployments deployment.Policy

	reader  reader
	notes   []string // about the dump
	missing []string // the resources that cannot be read, and why
	stop    func()
}

// Clients are the clients of [Live].
type Clients struct {
	// Machines has the machine objects. Required.
	Machines versioned.Interface
	// Control has the Secrets of classes. Required.
	Control kubernetes.Interface
	// Target has the Nodes. Nil means that the machines join no cluster.
	Target kubernetes.Interface
}

// Live returns the view of a cluster, which follows its changes until the context ends or [View.Close] is
// called. Objects that may not be read are named in the output. It fails without the right to read machines.
func Live(ctx context.Context, c Clients, namespace string) (*View, error) {
	if c.Machines == nil || c.Control == nil {
		return nil, errors.New("explain: Clients have no Machines or no Control")
	}
	return newView(ctx, c, namespace, func(ctx context.Context, r resource) error {
		if err := r.list(ctx); err != nil {
			return fmt.Errorf("not readable: %s: %w", r.name, err)
		}
		return nil
	})
}

// Close ends the view of a cluster. It returns after all its goroutines have ended.
func (v *View) Close() { v.stop() }

// resource is a kind of objects that decisions read.
type resource struct {
	name     string
	informer cache.SharedIndexInformer
	list     func(context.Context) error // a list of one object
}

// newView starts the informers of the resources for which readable returns nil, and waits for them.
func newView(ctx context.Context, c Clients, namespace string, readable func(context.Context, resource) error) (*View, error) {
	f := runner.Factories{
		Machines: externalversions.NewSharedInformerFactoryWithOptions(c.Machines, 0, externalversions.WithNamespace(namespace)),
		Control:  informers.NewSharedInformerFactoryWithOptions(c.Control, 0, informers.WithNamespace(namespace)),
	}
	if c.Target != nil {
		f.Target = informers.NewSharedInformerFactory(c.Target, 0)
		f.Tokens = informers.NewSharedInformerFactoryWithOptions(c.Target, 0, informers.WithNamespace(metav1.NamespaceSystem),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = v1alpha1.TokenOwnerLabel }))
	}
	in, err := runner.NewInformers(f)
	if err != nil {
		return nil, err
	}
	v := &View{Namespace: namespace, Now: time.Now, Machines: machine.DefaultPolicy(), reader: reader{Reader: in, missing: map[string]error{}}}
	running, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	v.stop = func() { cancel(); group.Wait() }
	var synced []cache.InformerSynced
	for _, r := range resources(c, f, namespace) {
		if err := readable(ctx, r); err != nil {
			v.reader.missing[r.name] = err
			v.missing = append(v.missing, err.Error())
			continue
		}
		group.Go(func() { r.informer.RunWithContext(running) })
		synced = append(synced, r.informer.HasSynced)
	}
	err = v.reader.missing[machines]
	if err == nil && !cache.WaitForCacheSync(running.Done(), synced...) {
		err = context.Cause(ctx)
	}
	if err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// The names of the resources, as in messages.
const (
	deployments = "machinedeployments"
	sets        = "machinesets"
	machines    = "machines"
	classes     = "machineclasses"
	secrets     = "secrets"
	nodes       = "nodes"
	pods        = "pods"
	budgets     = "poddisruptionbudgets"
	attachments = "volumeattachments"
	claims      = "persistentvolumeclaims"
	tokens      = "secrets of kube-system"
)

// resources returns all resources that decisions read.
func resources(c Clients, f runner.Factories, namespace string) []resource {
	one, api, of := metav1.ListOptions{Limit: 1}, f.Machines.Machine().V1alpha1(), c.Machines.MachineV1alpha1()
	all := []resource{
		{deployments, api.MachineDeployments().Informer(), listOf(of.MachineDeployments(namespace).List, one)},
		{sets, api.MachineSets().Informer(), listOf(of.MachineSets(namespace).List, one)},
		{machines, api.Machines().Informer(), listOf(of.Machines(namespace).List, one)},
		{classes, api.MachineClasses().Informer(), listOf(of.MachineClasses(namespace).List, one)},
		{secrets, f.Control.Core().V1().Secrets().Informer(), listOf(c.Control.CoreV1().Secrets(namespace).List, one)},
	}
	if c.Target == nil {
		return all
	}
	core, everywhere := f.Target.Core().V1(), metav1.NamespaceAll
	ofMachines := metav1.ListOptions{Limit: 1, LabelSelector: v1alpha1.TokenOwnerLabel}
	return append(all,
		resource{nodes, core.Nodes().Informer(), listOf(c.Target.CoreV1().Nodes().List, one)},
		resource{pods, core.Pods().Informer(), listOf(c.Target.CoreV1().Pods(everywhere).List, one)},
		resource{budgets, f.Target.Policy().V1().PodDisruptionBudgets().Informer(), listOf(c.Target.PolicyV1().PodDisruptionBudgets(everywhere).List, one)},
		resource{attachments, f.Target.Storage().V1().VolumeAttachments().Informer(), listOf(c.Target.StorageV1().VolumeAttachments().List, one)},
		resource{claims, core.PersistentVolumeClaims().Informer(), listOf(c.Target.CoreV1().PersistentVolumeClaims(everywhere).List, one)},
		resource{tokens, f.Tokens.Core().V1().Secrets().Informer(), listOf(c.Target.CoreV1().Secrets(metav1.NamespaceSystem).List, ofMachines)},
	)
}

// listOf returns a function that lists objects and only returns the error.
func listOf[T any](list func(context.Context, metav1.ListOptions) (T, error), o metav1.ListOptions) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := list(ctx, o)
		return err
	}
}

// header returns the lines about the view as a whole, each with a line break.
func (v *View) header() string {
	lines := append(slices.Clone(v.notes), v.missing...)
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
