// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/caches"
	"github.com/machinist-dev/machinist/internal/runners"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Informers is the Reader of shared informers. Its objects are shared with the informers and must not be
// changed. It is safe for concurrent use.
type Informers struct {
	machinist.Reader
	informers *caches.Informers
}

// NewInformers returns the informers for deployments, sets and machines, and for Nodes from target, and
// adds their indexes. A nil target means that there is no target cluster. The caller starts the
// factories, and may share them. It fails only for a stopped informer.
func NewInformers(machines externalversions.SharedInformerFactory, target informers.SharedInformerFactory) (*Informers, error) {
	if machines == nil {
		return nil, errors.New("deployment/runner: no factory of informers")
	}
	c, err := runners.NewInformers(machines, false, target, &v1alpha1.MachineDeployment{}, &v1alpha1.MachineSet{}, &v1alpha1.Machine{})
	return &Informers{c, c}, err
}

// OnChange calls f with each deployment that has to be decided again, and the time for which changes are
// collected: see [Affected]. It fails only for a stopped informer.
func (i *Informers) OnChange(f func(deployment types.NamespacedName, after time.Duration)) error {
	return caches.OnChange(i.informers, i, Affected, f)
}
