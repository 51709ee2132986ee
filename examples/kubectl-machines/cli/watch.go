// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/machinist-dev/machinist/deployment"
	"github.com/machinist-dev/machinist/deployment/runner"
	"github.com/machinist-dev/machinist/machine/client/informers/externalversions"
)

// Step receives an observation of a deployment. It returns whether the command is done, and otherwise when
// to observe again if no object changes before. Zero means never.
type Step func(in deployment.Observation) (done bool, again time.Time, err error)

// Watch observes a deployment and calls step for each change, until it is done, it fails, or the context
// ends. It fails at once if objects cannot be read.
func (e *Env) Watch(ctx context.Context, c Clients, name string, step Step) error {
	ctx, cancel := context.WithCancelCause(ctx)
	machines := externalversions.NewSharedInformerFactoryWithOptions(c.Machines, 0, externalversions.WithNamespace(c.Namespace))
	var target informers.SharedInformerFactory
	api := machines.Machine().V1alpha1()
	all := []cache.SharedIndexInformer{api.MachineDeployments().Informer(), api.MachineSets().Informer(), api.Machines().Informer()}
	if c.Target != nil {
		target = informers.NewSharedInformerFactory(c.Target, 0)
		all = append(all, target.Core().V1().Nodes().Informer())
		defer target.Shutdown()
	}
	defer machines.Shutdown()
	defer cancel(nil)
	key, changed := types.NamespacedName{Namespace: c.Namespace, Name: name}, make(chan struct{}, 1)
	reader, err := runner.NewInformers(machines, target)
	if err == nil {
		err = reader.OnChange(func(d types.NamespacedName, _ time.Duration) { //nolint:contextcheck // it reads a cache
			if d == key {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
		})
	}
	if err == nil {
		err = start(ctx, cancel, all)
	}
	if err != nil {
		return err
	}
	for {
		in, err := runner.Observe(ctx, reader, key)
		switch {
		case err != nil:
			return err
		case in.Deployment == nil:
			return Refuse("machinedeployment %s does not exist any more", name)
		}
		in.Proven = true // the lists are new
		done, again, err := step(in)
		if err == nil && !done {
			err = e.wait(ctx, changed, again)
		}
		if err != nil || done {
			return err
		}
	}
}

// start starts informers and waits until all have read their objects. An error before that, and missing
// rights at any time, end the context.
func start(ctx context.Context, cancel context.CancelCauseFunc, all []cache.SharedIndexInformer) error {
	var synced atomic.Bool
	var have []cache.InformerSynced
	for _, informer := range all {
		err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
			if !synced.Load() || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				cancel(err)
			}
		})
		if err != nil {
			return err
		}
		have = append(have, informer.HasSynced)
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), have...) {
		return context.Cause(ctx)
	}
	synced.Store(true)
	return nil
}

// wait waits for a change or a time.
func (e *Env) wait(ctx context.Context, changed <-chan struct{}, again time.Time) error {
	var due <-chan time.Time
	if !again.IsZero() {
		timer := e.Clock.NewTimer(max(time.Second, again.Sub(e.Clock.Now())))
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-changed:
	case <-due:
	}
	return nil
}
