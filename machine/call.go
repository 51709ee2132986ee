// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/nodeops"
)

// Call calls the driver and returns the result of the call, which may have an error. m is the
// observed machine, and secret has the merged data of the secrets of the class; a creation replaces
// its placeholders in a copy. A caller with a clock sets [CallResult.AskedAt].
//
// A nil response without an error is no answer, of any operation: see [driver.Answer]. The call has
// failed with the code Internal, and is repeated.
//
// The bootstrap token is removed from the text of the error, because the text is stored in the
// machine.
//
// The error of Call means that the driver was not called: the operation is another one, or an
// argument or the user data is missing.
func Call(
	ctx context.Context, d driver.Driver, do CallDriver, m *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret,
) (CallResult, error) {
	if d == nil || m == nil || class == nil || secret == nil {
		return CallResult{}, errors.New("driver call: driver, machine, class or secret is nil")
	}
	result := CallResult{Operation: do.Operation}
	switch do.Operation {
	case driver.OpGetMachineStatus:
		r, byName, err := askForVM(ctx, d, driver.GetMachineStatusRequest{Machine: m, MachineClass: class, Secret: secret})
		result.ProviderID, result.NodeName, result.Addresses, result.ByName, result.Err = r.ProviderID, r.NodeName, r.Addresses, byName, err
	case driver.OpCreateMachine:
		userData, ok := secret.Data[UserDataKey]
		if !ok {
			return CallResult{}, fmt.Errorf("machine %q: %w", m.Name, errNoUserData)
		}
		secret = secret.DeepCopy()
		secret.Data[UserDataKey] = renderUserData(userData, m.Name, do.Token)
		r, err := answer(d.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, MachineClass: class, Secret: secret}))
		result.ProviderID, result.NodeName, result.Addresses, result.LastKnownState = r.ProviderID, r.NodeName, r.Addresses, r.LastKnownState
		result.ByName, result.Err = m.Spec.ProviderID == "", redacted(err, do.Token)
	case driver.OpInitializeMachine:
		if do.LastKnownState != "" {
			m = m.DeepCopy()
			m.Status.LastKnownState = do.LastKnownState
		}
		r, err := answer(d.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: m, MachineClass: class, Secret: secret}))
		result.ProviderID, result.NodeName, result.Addresses, result.Err = r.ProviderID, r.NodeName, r.Addresses, err
	case driver.OpDeleteMachine:
		if do.ByName {
			m = withoutID(m)
		}
		r, err := answer(d.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, MachineClass: class, Secret: secret}))
		result.LastKnownState, result.Err = r.LastKnownState, err
	default:
		return CallResult{}, fmt.Errorf("driver call: operation %q has no action", do.Operation)
	}
	return result, nil
}

// askForVM looks for the VM of a machine by its name alone, because a user may have written the
// recorded provider ID. It reports whether the response is that for the name. A VM that has another
// name is found by the ID. Some drivers find a VM by its name only in ListMachines.
func askForVM(ctx context.Context, d driver.Driver, req driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, bool, error) {
	recorded := req
	req.Machine = withoutID(req.Machine)
	r, err := answer(d.GetMachineStatus(ctx, &req))
	id, unnamed := recorded.Machine.Spec.ProviderID, []codes.Code{codes.NotFound, codes.Unimplemented, codes.OutOfRange}
	if id == "" || !slices.Contains(unnamed, codes.Of(err)) {
		return r, true, err
	}
	list, listErr := answer(d.ListMachines(ctx, &driver.ListMachinesRequest{MachineClass: req.MachineClass, Secret: req.Secret}))
	if listErr != nil && codes.Of(listErr) != codes.Unimplemented {
		return r, true, listErr
	}
	if named := listedID(list, req.Machine.Name, id); named != "" {
		return &driver.GetMachineStatusResponse{ProviderID: named}, true, nil
	}
	r, err = answer(d.GetMachineStatus(ctx, &recorded))
	return r, false, err
}

// listedID returns the provider ID that is listed for the name of a machine: the recorded one, or
// the only one. It is empty if there is none.
func listedID(list *driver.ListMachinesResponse, name, recorded string) string {
	var ids []string
	for id, listed := range list.MachineList {
		switch {
		case listed != name:
		case nodeops.SameInstance(id, recorded):
			return id
		default:
			ids = append(ids, id)
		}
	}
	if len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// withoutID returns a copy of a machine without its provider ID.
func withoutID(m *v1alpha1.Machine) *v1alpha1.Machine {
	m = m.DeepCopy()
	m.Spec.ProviderID = ""
	return m
}

// answer returns the answer of a driver: see [driver.Answer]. The response is empty instead of nil.
func answer[T any](response *T, err error) (*T, error) {
	response, err = driver.Answer(response, err)
	return cmp.Or(response, new(T)), err
}

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
