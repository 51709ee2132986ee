// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// errNoCall says that an action is no call of a driver, or that something is
// missing that a call needs. It is wrapped in what [Call] returns.
var errNoCall = errors.New("no driver call can be made")

// Call carries out one of [LookForVM], [CreateVM], [InitializeVM] and [DeleteVM] by
// a call of the driver, and returns its answer; that the call failed is an answer
// too. The machine is the one that was decided about, and the secret holds the
// merged data of the class's secrets, in which a CreateVM fills in the placeholders.
// Nothing given is changed. Who knows the time sets [Answer.AskedAt].
//
// A driver that quotes the user data in its error would tell the bootstrap token to
// everybody who can read the machine: the token is left out of the text.
//
// The error says that no call was made: it wraps [errNoCall] or [errNoUserData].
func Call(
	ctx context.Context, d driver.Driver, do Action, m *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret,
) (Answer, error) {
	if d == nil || m == nil || class == nil || secret == nil {
		return Answer{}, fmt.Errorf("%w: driver, machine, class and secret are needed", errNoCall)
	}
	switch a := do.(type) {
	case LookForVM:
		return fromStatus(d.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: m, MachineClass: class, Secret: secret})), nil
	case CreateVM:
		data, err := renderUserData(secret.Data, m.Name, a.Token)
		if err != nil {
			return Answer{}, err
		}
		secret = secret.DeepCopy()
		secret.Data = data
		answer := fromCreate(d.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, MachineClass: class, Secret: secret}))
		answer.Err = discreet(answer.Err, a.Token)
		return answer, nil
	case InitializeVM:
		if a.LastKnownState != "" {
			m = m.DeepCopy()
			m.Status.LastKnownState = a.LastKnownState
		}
		return fromInitialize(d.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: m, MachineClass: class, Secret: secret})), nil
	case DeleteVM:
		if a.ByName {
			m = m.DeepCopy()
			m.Spec.ProviderID = ""
		}
		return fromDelete(d.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, MachineClass: class, Secret: secret})), nil
	default:
		return Answer{}, fmt.Errorf("%w: %T", errNoCall, do)
	}
}

// discreet returns an error that does not tell a token.
func discreet(err error, token BootstrapToken) error {
	if err == nil || token == (BootstrapToken{}) {
		return err
	}
	_, secret, _ := strings.Cut(token.Reveal(), ".")
	if text := err.Error(); secret != "" && strings.Contains(text, secret) {
		return discreetError{err: err, text: strings.ReplaceAll(text, secret, "…")}
	}
	return err
}

// discreetError is an error with another text.
type discreetError struct {
	err  error
	text string
}

func (e discreetError) Error() string { return e.text }

func (e discreetError) Unwrap() error { return e.err }
