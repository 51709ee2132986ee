// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/machinist-dev/machinist/drain"
	drainrunner "github.com/machinist-dev/machinist/drain/runner"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
)

// Informers is the [Reader] of shared informers. Its objects are shared with the informers and must not
// be changed. It is safe for concurrent use.
type Informers struct {
	runners.Cache
	*drainrunner.Informers // nil if the machines join no cluster
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
	c, err := runners.NewCache(f.Machines, !f.NoSets, f.Target)
	c.Classes, c.Secrets = f.Machines.Machine().V1alpha1().MachineClasses().Informer(), f.Control.Core().V1().Secrets().Informer()
	if !f.NoSets {
		c.Deployments = f.Machines.Machine().V1alpha1().MachineDeployments().Informer()
	}
	if f.Tokens != nil {
		c.Tokens = f.Tokens.Core().V1().Secrets().Informer()
	}
	i := &Informers{Cache: c}
	err = errors.Join(err, c.IndexMachines())
	if f.Target != nil {
		var drainErr error
		i.Informers, drainErr = drainrunner.NewInformers(f.Target, drain.SourceBudgets, drain.SourceClaims, drain.SourceAttachments)
		err = errors.Join(err, drainErr)
	}
	return i, err
}

// Node returns a Node.
func (i *Informers) Node(ctx context.Context, name string) (*corev1.Node, error) {
	return i.Cache.Node(ctx, name)
}

// OnChange calls f with each machine that has to be decided again: see [Affected] and [AffectedByDrain].
// It fails only for a stopped informer.
func (i *Informers) OnChange(f func(machine types.NamespacedName, after time.Duration)) error {
	ctx := context.Background()
	affected := func(before, after metav1.Object) map[types.NamespacedName]time.Duration {
		return Affected(ctx, i, before, after)
	}
	err := runners.OnChange(affected, f, i.Machines, i.Classes, i.Secrets, i.Nodes, i.Tokens)
	if i.Informers == nil {
		return err
	}
	return errors.Join(err, i.Informers.OnChange(func(node string) {
		for _, key := range AffectedByDrain(ctx, i, node) {
			f(key, 0)
		}
	}))
}
