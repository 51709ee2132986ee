// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/internal/caches"
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
	// Machines, Sets and Deployments are the policies of the controllers. [Live] and [Dump] set the defaults, and
	// that they are Assumed: a note of a machine says so if its decision depends on them.
	Assumed     bool
	Machines    machine.Policy
	Sets        machineset.Policy
	Deployments deployment.Policy

	reader  reader
	dump    bool
	notes   []string // such as the resources that cannot be read, and why
	changed chan struct{}
	running context.Context //nolint:containedctx // that of the informers: its cause is why they have ended
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
	return newView(ctx, c, namespace, []string{machines}, readable)
}

// LiveRollouts returns the view of a cluster for [View.Deployment]. It reads deployments, sets, machines and
// Nodes, and fails without the right to read one of them.
func LiveRollouts(ctx context.Context, c Clients, namespace string) (*View, error) {
	needed := []string{deployments, sets, machines, nodes}
	return newView(ctx, c, namespace, needed, func(ctx context.Context, r resource) error {
		if !slices.Contains(needed, r.name) {
			return fmt.Errorf("not read: %s", r.name)
		}
		return readable(ctx, r)
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

// readable returns why a resource cannot be read, or nil.
func readable(ctx context.Context, r resource) error {
	if err := r.list(ctx); err != nil {
		return fmt.Errorf("not readable: %s: %w", r.name, err)
	}
	return nil
}

// newView starts the informers of the resources for which can returns nil, and waits for them. It fails if
// it does not return nil for one of those that are needed.
func newView(ctx context.Context, c Clients, namespace string, needed []string, can func(context.Context, resource) error) (*View, error) {
	if c.Machines == nil || c.Control == nil {
		return nil, errors.New("explain: Clients have no Machines or no Control")
	}
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
	v := &View{
		Namespace: namespace, Now: time.Now, Machines: machine.DefaultPolicy(), Assumed: true,
		reader: reader{Reader: in, missing: map[string]error{}}, changed: make(chan struct{}, 1),
	}
	running, cancel := context.WithCancelCause(ctx)
	var group sync.WaitGroup
	v.running, v.stop = running, func() { cancel(nil); group.Wait() }
	var synced []cache.InformerSynced
	for _, r := range resources(c, f, namespace) {
		if refused := can(ctx, r); refused != nil {
			v.reader.missing[r.name] = refused
			v.notes = append(v.notes, refused.Error())
			if slices.Contains(needed, r.name) {
				err = errors.Join(err, refused)
			}
			continue
		}
		if err = errors.Join(err, v.observe(r, cancel)); err == nil {
			group.Go(func() { r.informer.RunWithContext(running) })
			synced = append(synced, r.informer.HasSynced)
		}
	}
	if err == nil && !cache.WaitForCacheSync(running.Done(), synced...) {
		err = context.Cause(running)
	}
	if err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// observe notices the changes of a resource, and the loss of the right to read it, which ends the view. A
// resource that may be listed and not watched is listed again and again by its informer.
func (v *View) observe(r resource, cancel context.CancelCauseFunc) error {
	changed := func(_, _ metav1.Object) {
		select {
		case v.changed <- struct{}{}:
		default: // it is noticed already
		}
	}
	failed := func(ctx context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			if refused := readable(ctx, r); refused != nil {
				cancel(refused)
			}
		}
	}
	return errors.Join(caches.On(r.informer, changed), r.informer.SetWatchErrorHandlerWithContext(failed))
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

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
