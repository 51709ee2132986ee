// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
)

// Informers is the [Reader] of shared informers. Its objects are shared with the informers and must not
// be changed. It is safe for concurrent use.
type Informers struct{ runners.Cache }

// NewInformers returns the informers for deployments, sets and machines, and for Nodes from target, and
// adds their indexes. A nil target means that there is no target cluster. The caller starts the
// factories, and may share them. It fails only for a stopped informer.
func NewInformers(machines externalversions.SharedInformerFactory, target informers.SharedInformerFactory) (*Informers, error) {
	if machines == nil {
		return nil, errors.New("deployment/runner: no factory of informers")
	}
	c, err := runners.NewCache(machines, true, target)
	c.Deployments = machines.Machine().V1alpha1().MachineDeployments().Informer()
	return &Informers{c}, err
}

// OnChange calls f with each deployment that has to be decided again, and the time for which changes are
// collected: see [Affected]. It fails only for a stopped informer.
func (i *Informers) OnChange(f func(deployment types.NamespacedName, after time.Duration)) error {
	affected := func(before, after metav1.Object) map[types.NamespacedName]time.Duration {
		return Affected(context.Background(), i, before, after)
	}
	return runners.OnChange(affected, f, i.Deployments, i.Sets, i.Machines, i.Nodes)
}
