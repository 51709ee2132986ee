// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/drain"
	draininformers "github.com/machinist-dev/machinist/drain/runner/informers"
	"github.com/machinist-dev/machinist/internal/caches"
	"github.com/machinist-dev/machinist/internal/objects"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Informers is the Reader of shared informers. Its objects are shared with the informers and must not be
// changed. It is safe for concurrent use.
type Informers struct {
	machinist.Reader
	informers *caches.Informers
	drains    *draininformers.Informers // nil if the machines join no cluster
}

// Factories are the factories of informers of [NewInformers]. The caller starts them, and may share them.
type Factories struct {
	// Machines has the machine objects. Required.
	Machines externalversions.SharedInformerFactory
	// NoSets means that the cluster serves no MachineSets and MachineDeployments.
	NoSets bool
	// Control has the Secrets of classes. Required.
	Control informers.SharedInformerFactory
	// Target has the Nodes, and what a drain reads. Nil if the machines join no cluster.
	Target informers.SharedInformerFactory
	// Tokens has the Secrets of the namespace kube-system of the target cluster with the label
	// [v1alpha1.TokenOwnerLabel]. Nil if the machines join no cluster.
	Tokens informers.SharedInformerFactory
}

// NewInformers returns the informers for machines, and adds their indexes. It fails only for a stopped
// informer.
func NewInformers(f Factories) (*Informers, error) {
	if f.Machines == nil || f.Control == nil {
		return nil, errors.New("machine/runner: the Factories have no Control or no Machines")
	}
	class, set, d := &v1alpha1.MachineClass{}, &v1alpha1.MachineSet{}, &v1alpha1.MachineDeployment{}
	c, err := runners.NewInformers(f.Machines, f.NoSets, f.Target, &v1alpha1.Machine{}, class, set, d)
	i, all := &Informers{Reader: c, informers: c}, Indexes()
	var tokens cache.SharedIndexInformer
	if f.Tokens != nil {
		tokens = f.Tokens.Core().V1().Secrets().Informer()
	}
	err = errors.Join(err, c.Control(&corev1.Secret{}, f.Control.Core().V1().Secrets().Informer(), all), c.Target(&corev1.Secret{}, tokens, machine.ErrNoTarget, all))
	if f.Target == nil {
		return i, err
	}
	var drainErr error
	i.drains, drainErr = draininformers.New(f.Target, drain.SourceBudgets, drain.SourceClaims, drain.SourceAttachments)
	c.Else = i.drains
	return i, errors.Join(err, drainErr)
}

// OnChange calls f with each machine that has to be decided again: see [Affected]. It fails only for a
// stopped informer.
func (i *Informers) OnChange(f func(machine types.NamespacedName, after time.Duration)) error {
	ctx := context.Background()
	return errors.Join(caches.OnChange(i.informers, i, Affected, f), i.drains.OnChange(func(node string) {
		for _, m := range drained(ctx, i, node) {
			f(objects.KeyOf(m), 0)
		}
	}))
}
