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

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ErrNotServed says that the API server of the control cluster answers, but does
// not serve the machine objects: their definitions are not installed.
var ErrNotServed = errors.New("the control cluster does not serve " + v1alpha1.SchemeGroupVersion.String() +
	": install its definitions, with `manager install` or `manager manifests | kubectl apply -f -`")

// lookAgain is how often the API server is asked.
const lookAgain = time.Second

// waitServed waits until the API server serves the machine objects. It has all
// the time to come up; but an answer that they are not there, or that this
// manager may not ask, is believed when the patience is over.
func (m *manager) waitServed(ctx context.Context) error {
	asked := m.clients.machines.Discovery()
	var since time.Time // of the first answer that was none of use
	said := ""
	for {
		list, err := asked.ServerResourcesForGroupVersionWithContext(ctx, v1alpha1.SchemeGroupVersion.String())
		answered := err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !away(err)
		if err == nil || apierrors.IsNotFound(err) {
			if err = missing(list); err == nil {
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

// away says that an answer only tells that the API server cannot work now.
func away(err error) bool {
	return apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}

// missing returns an error if not all kinds are in the list, which may be nil.
func missing(list *metav1.APIResourceList) error {
	if list == nil {
		return ErrNotServed
	}
	for _, name := range []string{"machines", "machinesets", "machinedeployments", "machineclasses"} {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name }) {
			return fmt.Errorf("no %s: %w", name, ErrNotServed)
		}
	}
	return nil
}
