// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

func requestCases() []promise {
	return []promise{
		{"WrongProvider", "Every method returns InvalidArgument for a class of another provider.", wrongProvider, needsDelete},
		{"InvalidRequest", "Every method returns InvalidArgument for a nil request, Machine, MachineClass or required Secret.", invalidRequest, needsDelete},
		{"ErrorsHaveCodes", "Every error has a code, as codes.Of reads it. Context errors have one.", errorsHaveCodes, needsDelete},
		{"SecretsStaySecret", "No error contains a value of the Secret or the user data.", secretsStaySecret, needsDelete},
		{"RequestsAreUnchanged", "A method does not change its request.", requestsAreUnchanged, needsCreate},
	}
}

// attempt is one call of an operation.
type attempt struct {
	op driver.Operation
	do func(ctx context.Context) error
}

// optional reports whether the operation may be Unimplemented.
func (a attempt) optional() bool {
	return a.op == driver.OpInitializeMachine || a.op == driver.OpGetMachineStatus || a.op == driver.OpGetVolumeIDs
}

// attempts returns one call of every operation that needs a class, with the given objects.
// CreateMachine is the last.
func attempts(e *env, m *v1alpha1.Machine, class *v1alpha1.MachineClass, secret *corev1.Secret) []attempt {
	return []attempt{
		{driver.OpGetMachineStatus, func(ctx context.Context) error {
			return failed(ask(ctx, e.Driver.GetMachineStatus, &driver.GetMachineStatusRequest{Machine: m, MachineClass: class, Secret: secret}))
		}},
		{driver.OpInitializeMachine, func(ctx context.Context) error {
			return failed(ask(ctx, e.Driver.InitializeMachine, &driver.InitializeMachineRequest{Machine: m, MachineClass: class, Secret: secret}))
		}},
		{driver.OpDeleteMachine, func(ctx context.Context) error {
			return failed(ask(ctx, e.Driver.DeleteMachine, &driver.DeleteMachineRequest{Machine: m, MachineClass: class, Secret: secret}))
		}},
		{driver.OpListMachines, func(ctx context.Context) error {
			return failed(ask(ctx, e.Driver.ListMachines, &driver.ListMachinesRequest{MachineClass: class, Secret: secret}))
		}},
		{driver.OpCreateMachine, func(ctx context.Context) error {
			return failed(e.CreateBy(ctx, e.Driver, &driver.CreateMachineRequest{Machine: m, MachineClass: class, Secret: secret}))
		}},
	}
}

// failed returns the error of a call.
func failed[R any](_ *R, err error) error { return err }

// withoutRequest returns one call of every operation with a nil request.
func withoutRequest(e *env) []attempt {
	d := e.Driver
	return []attempt{
		{driver.OpGetMachineStatus, func(ctx context.Context) error { return failed(ask(ctx, d.GetMachineStatus, nil)) }},
		{driver.OpInitializeMachine, func(ctx context.Context) error { return failed(ask(ctx, d.InitializeMachine, nil)) }},
		{driver.OpDeleteMachine, func(ctx context.Context) error { return failed(ask(ctx, d.DeleteMachine, nil)) }},
		{driver.OpListMachines, func(ctx context.Context) error { return failed(ask(ctx, d.ListMachines, nil)) }},
		{driver.OpCreateMachine, func(ctx context.Context) error { return failed(ask(ctx, d.CreateMachine, nil)) }},
		{driver.OpGetVolumeIDs, func(ctx context.Context) error { return failed(ask(ctx, d.GetVolumeIDs, nil)) }},
	}
}

// invalid checks that all attempts return InvalidArgument.
func invalid(ctx context.Context, what string, list []attempt) error {
	var errs []error
	for _, a := range list {
		err := a.do(ctx)
		code := codes.Of(err)
		if code == codes.InvalidArgument || code == codes.Unimplemented && a.optional() {
			continue
		}
		errs = append(errs, fmt.Errorf("%s with %s: the code is %s, want InvalidArgument (error: %w)", a.op, what, code, cmp.Or(err, errors.New("none"))))
	}
	return errors.Join(errs...)
}

// ofOtherProvider returns a class of another provider.
func ofOtherProvider(e *env) *v1alpha1.MachineClass {
	class := e.Class()
	class.Provider = "not-" + class.Provider
	return class
}

func wrongProvider(ctx context.Context, e *env) error {
	return invalid(ctx, "a class of another provider", attempts(e, e.Machine(), ofOtherProvider(e), e.Secret()))
}

func invalidRequest(ctx context.Context, e *env) error {
	noMachine := slices.DeleteFunc(attempts(e, nil, e.Class(), e.Secret()), func(a attempt) bool {
		return a.op == driver.OpListMachines // needs none
	})
	errs := []error{
		invalid(ctx, "a nil request", withoutRequest(e)),
		invalid(ctx, "a nil Machine", noMachine),
		invalid(ctx, "a nil MachineClass", attempts(e, e.Machine(), nil, e.Secret())),
	}
	if e.Harness.Secret != nil {
		errs = append(errs, invalid(ctx, "a nil Secret", attempts(e, e.Machine(), e.Class(), nil)))
	}
	return errors.Join(errs...)
}

// wrongSecret returns the Secret of the harness with random values.
func wrongSecret(e *env) *corev1.Secret {
	secret := e.Secret()
	if secret == nil {
		return nil
	}
	for key := range secret.Data {
		secret.Data[key] = []byte("wrong-" + random(20))
	}
	return secret
}

// provoked makes calls that should fail. It returns the errors by a description of the call.
func provoked(ctx context.Context, e *env) (map[string]error, *corev1.Secret) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	wrong := wrongSecret(e)
	errs := map[string]error{}
	for what, list := range map[string][]attempt{
		"a nil request":               withoutRequest(e),
		"a class of another provider": attempts(e, e.Machine(), ofOtherProvider(e), e.Secret()),
		"a wrong Secret":              attempts(e, e.Machine(), e.Class(), wrong),
	} {
		for _, a := range list {
			errs[string(a.op)+" with "+what] = a.do(ctx)
		}
	}
	for _, a := range attempts(e, e.Machine(), e.Class(), e.Secret()) {
		errs[string(a.op)+" with a canceled context"] = a.do(ended)
	}
	_, errs["GetMachineStatus without a VM"] = e.Get(ctx, e.Machine())
	_, errs["InitializeMachine without a VM"] = e.Initialize(ctx, e.Machine())
	return errs, wrong
}

func errorsHaveCodes(ctx context.Context, e *env) error {
	errs, _ := provoked(ctx, e)
	var broken []error
	for what, err := range errs {
		typed := errors.As(err, new(codes.Coder))
		if err != nil && !typed && codes.Of(err) == codes.Unknown {
			broken = append(broken, fmt.Errorf("the error of %s has no code: %w", what, err))
		}
	}
	return errors.Join(broken...)
}

func secretsStaySecret(ctx context.Context, e *env) error {
	if e.Harness.Secret == nil {
		return fmt.Errorf("%w: the harness has no Secret", errNotChecked)
	}
	errs, wrong := provoked(ctx, e)
	words := append(secretWords(e.Harness.Secret), secretWords(wrong)...)
	for what, err := range errs {
		if err == nil {
			continue
		}
		text := err.Error() + fmt.Sprintf("%+v", err)
		for _, word := range words {
			if strings.Contains(text, word) {
				return fmt.Errorf("the error of %s contains a value of the Secret", what) // the value is not repeated
			}
		}
	}
	return nil
}

// secretWords returns the values of a Secret as text and in base64. Values under 8 bytes are
// skipped because they match by chance.
func secretWords(secret *corev1.Secret) (words []string) {
	for _, value := range secret.Data {
		if len(value) >= 8 {
			words = append(words, string(value), base64.StdEncoding.EncodeToString(value))
		}
	}
	return words
}

func requestsAreUnchanged(ctx context.Context, e *env) error {
	m, class, secret := e.Machine(), e.Class(), e.Secret()
	m.Labels = map[string]string{"node": ""}
	if secret != nil && secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	m0, class0, secret0 := m.DeepCopy(), class.DeepCopy(), secret.DeepCopy()
	list := attempts(e, m, class, secret)
	again := slices.Clone(list)
	slices.Reverse(again) // once before the VM exists, once after
	list = append(list, again...)
	for _, a := range list {
		err := a.do(ctx)
		if a.op == driver.OpCreateMachine && err != nil {
			return fmt.Errorf("CreateMachine: %w", err)
		}
		if !reflect.DeepEqual(m, m0) || !reflect.DeepEqual(class, class0) || !reflect.DeepEqual(secret, secret0) {
			return fmt.Errorf("%s changed its request", a.op)
		}
	}
	specs := []*corev1.PersistentVolumeSpec{foreign()}
	for _, v := range e.Harness.Volumes {
		specs = append(specs, v.Spec.DeepCopy())
	}
	req := driver.GetVolumeIDsRequest{PVSpecs: specs}
	before := make([]*corev1.PersistentVolumeSpec, len(specs))
	for i, s := range specs {
		before[i] = s.DeepCopy()
	}
	_, _ = ask(ctx, e.Driver.GetVolumeIDs, &req)
	if !reflect.DeepEqual(req.PVSpecs, before) {
		return errors.New("GetVolumeIDs changed its request")
	}
	return nil
}
