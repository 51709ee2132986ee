// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/internal/runners"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Reader reads what the decisions of package safety are about. [Informers] is a Reader. The results are not
// changed and need not be copies. An object that does not exist is nil. An empty namespace means all. The
// error of what is in the target cluster is [machine.ErrNoTarget] if the machines join no cluster.
type Reader interface {
	// Class returns a class.
	Class(ctx context.Context, key types.NamespacedName) (*v1alpha1.MachineClass, error)
	// ClassesIn returns the classes of a namespace.
	ClassesIn(ctx context.Context, namespace string) ([]*v1alpha1.MachineClass, error)
	// Secret returns a Secret of the control cluster.
	Secret(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error)
	// MachinesIn returns the machines of a namespace.
	MachinesIn(ctx context.Context, namespace string) ([]*v1alpha1.Machine, error)
	// SetsIn returns the sets of a namespace.
	SetsIn(ctx context.Context, namespace string) ([]*v1alpha1.MachineSet, error)
	// DeploymentsIn returns the deployments of a namespace.
	DeploymentsIn(ctx context.Context, namespace string) ([]*v1alpha1.MachineDeployment, error)
	// Deployment returns a deployment.
	Deployment(ctx context.Context, key types.NamespacedName) (*v1alpha1.MachineDeployment, error)
	// AllNodes returns all Nodes. An error means that some may be missing.
	AllNodes(ctx context.Context) ([]*corev1.Node, error)
	// NodesWithID returns all Nodes with a provider ID, as [nodeops.NormalizeProviderID] returns it.
	NodesWithID(ctx context.Context, providerID string) ([]*corev1.Node, error)
}

// Informers is the [Reader] of shared informers. Its objects are shared with the informers and must not be
// changed. It is safe for concurrent use.
type Informers struct{ runners.Cache }

// NewInformers returns the informers of the given factories, and adds their indexes. Without Control, it
// reads no classes and no Secrets, which only [Orphans] need. It fails only for a stopped informer.
func NewInformers(f machinerunner.Factories) (*Informers, error) {
	if f.Machines == nil {
		return nil, errors.New("safety/runner: the Factories have no Machines")
	}
	c, err := runners.NewCache(f.Machines, !f.NoSets, f.Target)
	api := f.Machines.Machine().V1alpha1()
	if !f.NoSets {
		c.Deployments = api.MachineDeployments().Informer()
	}
	if f.Control != nil {
		c.Classes, c.Secrets = api.MachineClasses().Informer(), f.Control.Core().V1().Secrets().Informer()
	}
	return &Informers{c}, err
}

// OnChange calls f with each concern that has to be reconciled after a change: see [Executor.Changed]. It
// fails only for a stopped informer.
func (i *Informers) OnChange(e *Executor, f func(concern Concern, after time.Duration)) error {
	var errs []error
	for _, informer := range i.Cache.Informers() {
		errs = append(errs, runners.On(informer, func(before, after metav1.Object) {
			concerns := e.Changed(before, after)
			for _, concern := range slices.Sorted(maps.Keys(concerns)) { // the same order each time
				f(concern, concerns[concern])
			}
		}))
	}
	return errors.Join(errs...)
}

const (
	// overshootDelay is how long changes are collected before the next pass over all sets.
	overshootDelay = time.Second
	// unmanagedDelay is longer: Nodes are marked after minutes, and nothing waits for the end of a mark.
	unmanagedDelay = 5 * time.Second
)

// Changed records a change, and returns the concerns that have to be reconciled, each with the time for which
// changes are collected. The objects are those before and after the change; the one that does not exist is
// nil. It is safe for concurrent use.
func (e *Executor) Changed(before, after metav1.Object) map[Concern]time.Duration {
	concerns := map[Concern]time.Duration{}
	for _, class := range runners.Versions[*v1alpha1.MachineClass](before, after) {
		concerns[Orphans] = e.Wake(runners.KeyOf(class))
	}
	switch was, is := runners.Both[*v1alpha1.Machine](before, after); {
	case was == nil && is == nil:
	case was == nil:
		concerns[Overshoot], concerns[Unmanaged] = overshootDelay, unmanagedDelay
	case is == nil:
		concerns[Orphans], concerns[Unmanaged] = e.Wake(types.NamespacedName{Namespace: was.Namespace, Name: was.Spec.Class.Name}), unmanagedDelay
	case was.Spec.ProviderID != is.Spec.ProviderID || was.Labels[v1alpha1.NodeLabelKey] != is.Labels[v1alpha1.NodeLabelKey]:
		concerns[Unmanaged] = unmanagedDelay
	}
	if mayFreeze(runners.Both[*v1alpha1.MachineSet](before, after)) || mayFreeze(runners.Both[*v1alpha1.MachineDeployment](before, after)) {
		concerns[Overshoot] = overshootDelay
	}
	if mayMark(runners.Both[*corev1.Node](before, after)) {
		concerns[Unmanaged] = unmanagedDelay
	}
	return concerns
}

// mayFreeze reports whether an object was created, or its spec, freeze label or unfreeze annotation has
// changed.
func mayFreeze[T runners.Object](before, after T) bool {
	var none T
	if before == none || after == none {
		return after != none
	}
	_, was := before.GetAnnotations()[v1alpha1.UnfreezeAnnotation]
	_, is := after.GetAnnotations()[v1alpha1.UnfreezeAnnotation]
	return was != is || before.GetGeneration() != after.GetGeneration() ||
		before.GetLabels()[v1alpha1.FreezeLabelKey] != after.GetLabels()[v1alpha1.FreezeLabelKey]
}

// mayMark reports whether a Node was created, or has changed in what its mark depends on.
func mayMark(before, after *corev1.Node) bool {
	if before == nil || after == nil {
		return after != nil
	}
	_, was := before.Annotations[v1alpha1.NotManagedByMCM]
	_, is := after.Annotations[v1alpha1.NotManagedByMCM]
	return was != is || before.Spec.ProviderID != after.Spec.ProviderID ||
		before.Labels[v1alpha1.MachineNameLabelKey] != after.Labels[v1alpha1.MachineNameLabelKey] ||
		before.Annotations[v1alpha1.MachineUIDAnnotation] != after.Annotations[v1alpha1.MachineUIDAnnotation]
}
