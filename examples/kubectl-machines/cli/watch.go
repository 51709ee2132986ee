// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/internal/explain"
)

// Step receives an observation of a deployment. It returns whether the command is done, and otherwise when
// to observe again if no object changes before. Zero means never.
type Step func(in deployment.Observation) (done bool, again time.Time, err error)

// Watch observes a deployment and calls step for each change, until it is done, it fails, or the context
// ends. It fails at once if objects cannot be read.
func (e *Env) Watch(ctx context.Context, c Clients, name string, step Step) error {
	v, err := explain.LiveRollouts(ctx, c.Clients, c.Namespace)
	if err != nil {
		return err
	}
	defer v.Close()
	return v.Follow(ctx, e.Clock, 0, func() (bool, time.Time, error) {
		in, err := v.Deployment(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name})
		switch {
		case err != nil:
			return false, time.Time{}, err
		case in.Deployment == nil:
			return false, time.Time{}, Refuse("machinedeployment %s does not exist any more", name)
		}
		return step(in)
	})
}
