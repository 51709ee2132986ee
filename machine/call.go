// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// Call carries out a [LookForVM], [CreateVM], [InitializeVM] or [DeleteVM] with the driver and
// returns its result, which may have an error. m is the observed machine, and secret has the merged
// data of the secrets of the class; CreateVM replaces its placeholders in a copy. A caller with a
// clock sets [CallResult.AskedAt].
//
// The bootstrap token is removed from the text of the error, because the text is stored in the
// machine.
//
// The error of Call means that the driver was not called: the action is another one, or an argument
// or the user data is missing.
func Call(
	ctx context.Context, d driver.Driver, do Action, m *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret,
) (CallResult, error) {
	if d == nil || m == nil || class == nil || secret == nil {
		return CallResult{}, errors.New("driver call: driver, machine, class or secret is nil")
	}
	switch a := do.(type) {
	case LookForVM:
		r, err := d.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: m, MachineClass: class, Secret: secret})
		r = orEmpty(r)
		return CallResult{Operation: driver.OpGetMachineStatus, ProviderID: r.ProviderID, NodeName: r.NodeName, Addresses: r.Addresses, Err: err}, nil
	case CreateVM:
		userData, ok := secret.Data[UserDataKey]
		if !ok {
			return CallResult{}, fmt.Errorf("machine %q: %w", m.Name, errNoUserData)
		}
		secret = secret.DeepCopy()
		secret.Data[UserDataKey] = renderUserData(userData, m.Name, a.Token)
		r, err := d.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, MachineClass: class, Secret: secret})
		r = orEmpty(r)
		return CallResult{
			Operation: driver.OpCreateMachine, ProviderID: r.ProviderID, NodeName: r.NodeName, Addresses: r.Addresses,
			LastKnownState: r.LastKnownState, Err: redacted(err, a.Token),
		}, nil
	case InitializeVM:
		if a.LastKnownState != "" {
			m = m.DeepCopy()
			m.Status.LastKnownState = a.LastKnownState
		}
		r, err := d.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: m, MachineClass: class, Secret: secret})
		r = orEmpty(r)
		return CallResult{Operation: driver.OpInitializeMachine, ProviderID: r.ProviderID, NodeName: r.NodeName, Addresses: r.Addresses, Err: err}, nil
	case DeleteVM:
		if a.ByName {
			m = m.DeepCopy()
			m.Spec.ProviderID = ""
		}
		r, err := d.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, MachineClass: class, Secret: secret})
		return CallResult{Operation: driver.OpDeleteMachine, LastKnownState: orEmpty(r).LastKnownState, Err: err}, nil
	default:
		return CallResult{}, fmt.Errorf("action %T is not a driver call", do)
	}
}

// orEmpty returns a response, or an empty one for nil.
func orEmpty[T any](response *T) *T { return cmp.Or(response, new(T)) }

// redacted returns an error whose text does not have the token.
func redacted(err error, token BootstrapToken) error {
	if err == nil || token.IsZero() || !strings.Contains(err.Error(), *token.text) {
		return err
	}
	return redactedError{err, strings.ReplaceAll(err.Error(), *token.text, "…")}
}

// redactedError is an error with another text.
type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }

func (e redactedError) Unwrap() error { return e.error }
