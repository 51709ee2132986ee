// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/examples/internal/explain"
)

// Watch observes a deployment and calls step for each change, until it is done, it fails, or the context
// ends. Otherwise step returns when to observe again if no object changes before; zero means never. It fails
// at once if objects cannot be read.
func (e *Env) Watch(ctx context.Context, c Clients, name string, step func(in deployment.Observation) (done bool, again time.Time, err error)) error {
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
