// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// env has the driver and the machines of one check. Its calls turn a panic of the driver into
// an error. It is safe for use by multiple goroutines.
type env struct {
	// Driver under check.
	Driver driver.Driver
	// Harness of the run.
	Harness Harness

	clock  clock.Clock
	prefix string

	mu        sync.Mutex
	machines  []*v1alpha1.Machine // all machines of the check
	known     map[string][]string // provider IDs by machine name
	uncertain bool                // a create failed and may have made an unknown VM
}

// newEnv returns the env of one check.
func newEnv(h Harness) *env {
	e := &env{Driver: h.New(), Harness: h, clock: h.Clock, known: map[string][]string{}}
	if e.clock == nil {
		e.clock = clock.RealClock{}
	}
	e.prefix = "conformance-" + random(5)
	return e
}

// random returns n random lower-case letters.
func random(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + rand.IntN(26))
	}
	return string(b)
}

// Machine returns a new machine without a provider ID. The check may change it.
func (e *env) Machine() *v1alpha1.Machine {
	e.mu.Lock()
	defer e.mu.Unlock()
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.Harness.MachineClass.Namespace,
			Name:      fmt.Sprintf("%s-%d", e.prefix, len(e.machines)),
			UID:       types.UID(e.prefix + "-" + random(12)),
		},
		Spec: v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: e.Harness.MachineClass.Name}},
	}
	e.machines = append(e.machines, m.DeepCopy())
	return m
}

// Secret returns a copy of the Secret of the harness. Nil if it has none.
func (e *env) Secret() *corev1.Secret { return e.Harness.Secret.DeepCopy() }

// Class returns a copy of the class of the harness.
func (e *env) Class() *v1alpha1.MachineClass { return e.Harness.MachineClass.DeepCopy() }

// ask makes a call with a deadline. It returns an error for a panic of the driver, and for neither a
// response nor an error.
func ask[Q, R any](ctx context.Context, call func(context.Context, *Q) (*R, error), q *Q) (r *R, err error) {
	ctx, cancel := context.WithTimeout(ctx, driver.DefaultTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the driver panicked: %v", p)
		}
	}()
	return driver.Answer(call(ctx, q))
}

// Create calls CreateMachine for m.
func (e *env) Create(ctx context.Context, m *v1alpha1.Machine) (*driver.CreateMachineResponse, error) {
	return e.CreateBy(ctx, e.Driver, &driver.CreateMachineRequest{Machine: m, MachineClass: e.Class(), Secret: e.Secret()})
}

// CreateBy calls CreateMachine of a driver with a request. The VM is deleted after the check.
func (e *env) CreateBy(ctx context.Context, d driver.Driver, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	resp, err := ask(ctx, d.CreateMachine, req)
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil:
		e.uncertain = true
	case req != nil && req.Machine != nil:
		e.known[req.Machine.Name] = append(e.known[req.Machine.Name], resp.ProviderID)
	}
	return resp, err
}

// Initialize calls InitializeMachine for m.
func (e *env) Initialize(ctx context.Context, m *v1alpha1.Machine) (*driver.InitializeMachineResponse, error) {
	return ask(ctx, e.Driver.InitializeMachine, &driver.InitializeMachineRequest{Machine: m, MachineClass: e.Class(), Secret: e.Secret()})
}

// Delete calls DeleteMachine for m. NotFound is a success.
func (e *env) Delete(ctx context.Context, m *v1alpha1.Machine) error {
	_, err := ask(ctx, e.Driver.DeleteMachine, &driver.DeleteMachineRequest{Machine: m, MachineClass: e.Class(), Secret: e.Secret()})
	if codes.Of(err) == codes.NotFound {
		return nil
	}
	return err
}

// Get calls GetMachineStatus for m.
func (e *env) Get(ctx context.Context, m *v1alpha1.Machine) (*driver.GetMachineStatusResponse, error) {
	return ask(ctx, e.Driver.GetMachineStatus, &driver.GetMachineStatusRequest{Machine: m, MachineClass: e.Class(), Secret: e.Secret()})
}

// Found calls GetMachineStatus for m. Uninitialized is a success, and Unimplemented becomes
// errNotChecked.
func (e *env) Found(ctx context.Context, m *v1alpha1.Machine) (*driver.GetMachineStatusResponse, error) {
	resp, err := e.Get(ctx, m)
	switch codes.Of(err) {
	case codes.Uninitialized:
		if resp == nil {
			return nil, errors.New("GetMachineStatus returned Uninitialized without a response")
		}
		return resp, nil
	case codes.Unimplemented:
		return nil, fmt.Errorf("%w: GetMachineStatus is Unimplemented", errNotChecked)
	}
	return resp, err
}

// List calls ListMachines for a class.
func (e *env) List(ctx context.Context, class *v1alpha1.MachineClass) (map[string]string, error) {
	resp, err := ask(ctx, e.Driver.ListMachines, &driver.ListMachinesRequest{MachineClass: class, Secret: e.Secret()})
	if err != nil {
		return nil, fmt.Errorf("ListMachines: %w", err)
	}
	return resp.MachineList, nil
}

// Owned returns the sorted provider IDs of m in ListMachines.
func (e *env) Owned(ctx context.Context, m *v1alpha1.Machine) ([]string, error) {
	list, err := e.List(ctx, e.Class())
	var ids []string
	for id, name := range list {
		if name == m.Name {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

// Eventually calls f until it returns nil, the cloud has settled, or ctx ends. It returns the
// last result of f. It calls f at least once, and once more after the cloud has settled.
func (e *env) Eventually(ctx context.Context, f func() error) error {
	settle := max(0, e.Harness.Settle)
	step := min(max(settle/20, time.Millisecond), 10*time.Second)
	for end := e.clock.Now().Add(settle); ; {
		err := f()
		if err == nil || errors.Is(err, errNotChecked) || !e.clock.Now().Before(end) {
			return err
		}
		if late := e.sleep(ctx, step); late != nil {
			return errors.Join(err, late)
		}
	}
}

// Settled waits until the cloud has settled.
func (e *env) Settled(ctx context.Context) error { return e.sleep(ctx, e.Harness.Settle) }

// sleep waits on the clock of the harness.
func (e *env) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := e.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// cleanUp deletes the VMs of all machines of the check. After a failed create it deletes them
// again when the cloud has settled.
func (e *env) cleanUp(ctx context.Context) error {
	e.mu.Lock()
	machines, uncertain := e.machines, e.uncertain
	e.mu.Unlock()
	err := e.removeAll(ctx, machines)
	if uncertain && e.Harness.Settle > 0 {
		if e.Settled(ctx) == nil {
			err = e.removeAll(ctx, machines)
		}
	}
	return err
}

// removeAll deletes each machine with every known provider ID and by name.
func (e *env) removeAll(ctx context.Context, machines []*v1alpha1.Machine) error {
	var errs []error
	for _, m := range machines {
		e.mu.Lock()
		ids := slices.Clone(e.known[m.Name])
		e.mu.Unlock()
		slices.Sort(ids)
		for _, id := range append(slices.Compact(ids), "") {
			gone := m.DeepCopy()
			gone.Spec.ProviderID = id
			errs = append(errs, e.Eventually(ctx, func() error { return e.Delete(ctx, gone) }))
		}
	}
	return errors.Join(errs...)
}
