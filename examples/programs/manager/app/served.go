// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/examples/controllers"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ErrNotServed means that the API server of the control cluster answers, but does not serve the
// machine objects: their definitions are not installed.
var ErrNotServed = errors.New("the control cluster does not serve " + v1alpha1.SchemeGroupVersion.String() +
	": install its definitions, with `manager install` or `manager manifests | kubectl apply -f -`")

// lookAgain is the time between two requests for the served kinds.
const lookAgain = time.Second

// served returns the kinds of machine objects that the API server serves. The request itself has no context before
// client-go v0.36; it ends after 32 s.
func (m *manager) served(ctx context.Context) (*metav1.APIResourceList, error) {
	done := make(chan struct{})
	var found *metav1.APIResourceList
	var failed error
	go func() {
		defer close(done)
		found, failed = m.clients.machines.Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
	}()
	select {
	case <-done:
		return found, failed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// waitServed waits until the API server serves the machine objects. It waits without a limit for an
// API server that does not work. If the server answers that the kinds do not exist, or that this
// manager may not read them, it waits for m.patience.
func (m *manager) waitServed(ctx context.Context) error {
	var since time.Time // of the first answer that was none of use
	said := ""
	for {
		list, err := m.served(ctx)
		answered := err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !away(err)
		if err == nil || apierrors.IsNotFound(err) {
			part, lacks := m.runs(list)
			if err = lacks; err == nil {
				m.part = part
				return nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !answered:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= m.patience:
			return err
		}
		if text := err.Error(); text != said { // once for each thing that is wrong
			m.log.Warn("waits for the API server", "err", text)
			said = text
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(lookAgain, m.patience)):
		}
	}
}

// away reports whether an error only means that the API server does not work now.
func away(err error) bool {
	return apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}

// The kinds of the machine objects, in the plural.
var (
	machineKinds = []string{"machines", "machineclasses"}
	setKinds     = []string{"machinesets", "machinedeployments"}
)

// runs returns the controllers that run on an API server with the listed kinds, which may be nil,
// or an error if a kind is missing. A machine-controller works without sets and deployments. One of
// the two without the other is an error.
func (m *manager) runs(list *metav1.APIResourceList) (controllers.Part, error) {
	part := m.s.Part()
	if part == controllers.Machines && missing(list, machineKinds) == nil && !servesAny(list, setKinds) {
		m.log.Info("the API server serves neither sets nor deployments: only machines are reconciled")
		return controllers.MachinesAlone, nil
	}
	return part, missing(list, slices.Concat(machineKinds, setKinds))
}

// missing returns an error if a kind is not in the list, which may be nil.
func missing(list *metav1.APIResourceList, kinds []string) error {
	if list == nil {
		return ErrNotServed
	}
	for _, name := range kinds {
		if !servesAny(list, []string{name}) {
			return fmt.Errorf("no %s: %w", name, ErrNotServed)
		}
	}
	return nil
}

// servesAny reports whether one of the kinds is in the list, which may be nil.
func servesAny(list *metav1.APIResourceList, kinds []string) bool {
	return list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return slices.Contains(kinds, r.Name) })
}

// ErrSetsServed means that the definitions of sets and deployments were installed while a manager
// ran without them.
var ErrSetsServed = errors.New("the control cluster serves sets and deployments now: start again, to limit replacements by deployment")

// servedPeriod is the time between two checks for sets and deployments.
const servedPeriod = 10 * time.Second

// watchServed calls fail with [ErrSetsServed] when the API server serves sets or deployments, until
// the context ends. It does nothing for a program that runs with them.
func (m *manager) watchServed(ctx context.Context, fail func(error)) {
	for m.part == controllers.MachinesAlone {
		list, err := m.served(ctx)
		if err == nil && servesAny(list, setKinds) {
			fail(ErrSetsServed)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(servedPeriod):
		}
	}
}
