// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// asked is a driver that remembers what it was asked, and fails.
type asked struct {
	driver.Driver
	operation driver.Operation
	machine   *v1alpha1.Machine
	class     *v1alpha1.MachineClass
	secret    *corev1.Secret
}

func (a *asked) note(o driver.Operation, m *v1alpha1.Machine, c *v1alpha1.MachineClass, s *corev1.Secret) error {
	a.operation, a.machine, a.class, a.secret = o, m, c, s
	return status.Error(codes.Aborted, "later")
}

func (a *asked) GetMachineStatus(_ context.Context, r *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return &driver.GetMachineStatusResponse{NodeName: "n"}, a.note(driver.OpGetMachineStatus, r.Machine, r.MachineClass, r.Secret)
}

func (a *asked) CreateMachine(_ context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return &driver.CreateMachineResponse{NodeName: "n"}, a.note(driver.OpCreateMachine, r.Machine, r.MachineClass, r.Secret)
}

func (a *asked) InitializeMachine(_ context.Context, r *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return &driver.InitializeMachineResponse{NodeName: "n"}, a.note(driver.OpInitializeMachine, r.Machine, r.MachineClass, r.Secret)
}

func (a *asked) DeleteMachine(_ context.Context, r *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return &driver.DeleteMachineResponse{LastKnownState: "half"}, a.note(driver.OpDeleteMachine, r.Machine, r.MachineClass, r.Secret)
}

func TestACallAsksTheDriverWhatWasDecided(t *testing.T) {
	t.Parallel()
	m, c := newMachine("m"), class()
	m.Status.LastKnownState = "old"
	secret := &corev1.Secret{Data: map[string][]byte{machine.UserDataKey: []byte("I am <<MACHINE_NAME>>"), "key": []byte("k")}}
	before, beforeSecret := m.DeepCopy(), secret.DeepCopy()
	for do, want := range map[machine.Action]driver.Operation{
		machine.LookForVM{}: driver.OpGetMachineStatus, machine.CreateVM{}: driver.OpCreateMachine,
		machine.InitializeVM{LastKnownState: "new"}: driver.OpInitializeMachine, machine.InitializeVM{}: driver.OpInitializeMachine,
		machine.DeleteVM{}: driver.OpDeleteMachine,
	} {
		d := &asked{}
		answer, err := machine.Call(t.Context(), d, do, m, c, secret)
		require.NoError(t, err, "that it failed is an answer")
		require.Equal(t, want, d.operation)
		require.Equal(t, want, answer.Operation)
		require.Equal(t, codes.Aborted, codes.Of(answer.Err))
		require.Same(t, c, d.class)
		require.Equal(t, []byte("k"), d.secret.Data["key"])
		userData, state := "I am <<MACHINE_NAME>>", "old"
		switch a := do.(type) {
		case machine.CreateVM:
			userData = "I am m"
		case machine.InitializeVM:
			if a.LastKnownState != "" {
				state = a.LastKnownState
			}
		}
		require.Equal(t, userData, string(d.secret.Data[machine.UserDataKey]))
		require.Equal(t, state, d.machine.Status.LastKnownState)
		require.Empty(t, cmp.Diff(before, m))
		require.Empty(t, cmp.Diff(beforeSecret, secret))
	}
}

// quoting is a driver that tells in its error what it was given.
type quoting struct{ driver.Driver }

func (quoting) CreateMachine(_ context.Context, r *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return nil, status.Error(codes.ResourceExhausted, "no room for "+string(r.Secret.Data[machine.UserDataKey]))
}

func TestADriverThatQuotesUserDataDoesNotTellTheToken(t *testing.T) {
	t.Parallel()
	m := newMachine("m")
	made, err := machine.NewBootstrapToken(m, now.Add(time.Hour), nil, rand.Reader)
	require.NoError(t, err)
	token, err := machine.TokenOf(made)
	require.NoError(t, err)
	secret := &corev1.Secret{Data: map[string][]byte{machine.UserDataKey: []byte("join with <<BOOTSTRAP_TOKEN>>, or <<BOOTSTRAP_TOKEN>>")}}
	answer, err := machine.Call(t.Context(), quoting{}, machine.CreateVM{Token: token}, m, class(), secret)
	require.NoError(t, err)
	id, hidden, _ := strings.Cut(token.Reveal(), ".")
	require.NotContains(t, answer.Err.Error(), hidden)
	require.Contains(t, answer.Err.Error(), "no room for join with "+id+".…, or")
	require.Equal(t, codes.ResourceExhausted, codes.Of(answer.Err), "and says the same")
	view := machine.VMView{}.After(answer, now, 0)
	require.NotContains(t, view.Failure.Message, hidden)
	require.Equal(t, codes.ResourceExhausted, view.Failure.Code)
}

func TestACallThatCannotBeMadeSaysWhy(t *testing.T) {
	t.Parallel()
	m, c, s := newMachine("m"), class(), &corev1.Secret{}
	_, err := machine.Call(t.Context(), &asked{}, machine.CreateVM{}, m, c, s)
	require.ErrorIs(t, err, machine.ErrNoUserData)
	for name, call := range map[string]struct {
		d      driver.Driver
		do     machine.Action
		m      *v1alpha1.Machine
		class  *v1alpha1.MachineClass
		secret *corev1.Secret
	}{
		"no driver":       {nil, machine.DeleteVM{}, m, c, s},
		"no machine":      {&asked{}, machine.DeleteVM{}, nil, c, s},
		"no class":        {&asked{}, machine.DeleteVM{}, m, nil, s},
		"no secret":       {&asked{}, machine.DeleteVM{}, m, c, nil},
		"no call":         {&asked{}, machine.UpdateStatus{}, m, c, s},
		"nothing to call": {&asked{}, nil, m, c, s},
	} {
		_, err := machine.Call(t.Context(), call.d, call.do, call.m, call.class, call.secret)
		require.ErrorIs(t, err, machine.ErrNoCall, name)
	}
}
