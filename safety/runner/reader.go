// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/caches"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	machinerunner "github.com/machinist-dev/machinist/machine/runner"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Informers is the Reader of shared informers. Its objects are shared with the informers and must not be
// changed. It is safe for concurrent use.
type Informers struct {
	machinist.Reader
	informers *caches.Informers
}

// NewInformers returns the informers of the given factories, and adds their indexes. Without Control, it
// reads no classes and no Secrets, which only [Orphans] need. It fails only for a stopped informer.
func NewInformers(f machinerunner.Factories) (*Informers, error) {
	if f.Machines == nil {
		return nil, errors.New("safety/runner: the Factories have no Machines")
	}
	of := []machinist.Object{&v1alpha1.Machine{}, &v1alpha1.MachineSet{}, &v1alpha1.MachineDeployment{}}
	if f.Control != nil {
		of = append(of, &v1alpha1.MachineClass{})
	}
	c, err := runners.NewInformers(f.Machines, f.NoSets, f.Target, of...)
	if f.Control != nil {
		err = errors.Join(err, c.Control(&corev1.Secret{}, f.Control.Core().V1().Secrets().Informer(), nil))
	}
	return &Informers{c, c}, err
}

// OnChange calls f with each concern that has to be reconciled after a change: see [Executor.Changed]. It
// fails only for a stopped informer.
func (i *Informers) OnChange(e *Executor, f func(concern Concern, after time.Duration)) error {
	changed := func(_ context.Context, _ machinist.Reader, before, after metav1.Object) map[Concern]time.Duration {
		return e.Changed(before, after)
	}
	return caches.OnChange(i.informers, i, changed, f)
}

const (
	// overshootDelay is how long changes are collected before the next pass over all sets.
	overshootDelay = time.Second
	// unmanagedDelay is longer, since a pass looks at all Nodes: they are marked after minutes, and nothing waits for
	// the end of a mark.
	unmanagedDelay = 30 * time.Second
)

// Changed records a change, and returns the concerns that have to be reconciled, each with the time for which
// changes are collected. The objects are those before and after the change; the one that does not exist is
// nil. It is safe for concurrent use.
func (e *Executor) Changed(before, after metav1.Object) map[Concern]time.Duration {
	concerns := map[Concern]time.Duration{}
	for _, class := range objects.Versions[*v1alpha1.MachineClass](before, after) {
		concerns[Orphans] = e.Wake(objects.KeyOf(class))
	}
	switch was, is := objects.Both[*v1alpha1.Machine](before, after); {
	case was == nil && is == nil:
	case was == nil:
		concerns[Overshoot], concerns[Unmanaged] = overshootDelay, unmanagedDelay
	case is == nil:
		concerns[Orphans], concerns[Unmanaged] = e.Wake(types.NamespacedName{Namespace: was.Namespace, Name: was.Spec.Class.Name}), unmanagedDelay
	case was.Spec.ProviderID != is.Spec.ProviderID || was.Labels[v1alpha1.NodeLabelKey] != is.Labels[v1alpha1.NodeLabelKey]:
		concerns[Unmanaged] = unmanagedDelay
	}
	if mayFreeze(objects.Both[*v1alpha1.MachineSet](before, after)) || mayFreeze(objects.Both[*v1alpha1.MachineDeployment](before, after)) {
		concerns[Overshoot] = overshootDelay
	}
	if mayMark(objects.Both[*corev1.Node](before, after)) {
		concerns[Unmanaged] = unmanagedDelay
	}
	return concerns
}

// mayFreeze reports whether an object was created, or its spec, freeze label or unfreeze annotation has
// changed.
func mayFreeze[T objects.Object](before, after T) bool {
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
