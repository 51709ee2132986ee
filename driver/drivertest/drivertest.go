// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A Harness has the driver to check and the objects for its requests.
type Harness struct {
	// New returns a driver, like a new process does. All drivers of a harness use the same
	// cloud. It may return the same driver again.
	New func() driver.Driver
	// MachineClass is a valid class of that cloud, in a scope for tests.
	MachineClass *v1alpha1.MachineClass
	// Secret is valid for that class and has user data. Nil means that the driver needs none.
	Secret *corev1.Secret
	// Settle is how long the cloud needs until every request sees a change, including a
	// complete deletion. Zero means none. A real cloud needs minutes.
	Settle time.Duration

	// Clock is the clock on which the kit waits. Nil means the real clock.
	Clock clock.Clock
	// OtherScope is a class like MachineClass in another scope. Optional.
	OtherScope *v1alpha1.MachineClass
	// Volumes are volumes of the cloud. Optional.
	Volumes []Volume
	// FailCreate makes the next CreateMachine for a machine fail after some of its steps.
	// Optional.
	FailCreate func(machine string)
}

// A Volume is a persistent volume and its ID at the cloud.
type Volume struct {
	// Spec of the volume.
	Spec *corev1.PersistentVolumeSpec
	// ID that GetVolumeIDs must return.
	ID string
}

// promise is one promise of the contract.
type promise struct {
	// Name of the promise, in CamelCase.
	Name string
	// Text is the sentence of the contract.
	Text string
	// Check returns nil if the promise is kept, and otherwise describes the violation. Its
	// error wraps errNotChecked if the driver or the harness lacks what the check needs.
	Check func(ctx context.Context, e *env) error
	// Needs are the fundamental promises that Check builds on.
	Needs []string
}

// errNotChecked is wrapped by the error of a check that cannot run.
var errNotChecked = errors.New("not checked")

// The fundamental promises. Most checks use these calls, so that each of them would report
// the same violation again.
var (
	needsDelete = []string{"DeleteWithoutVM"}
	needsCreate = []string{"DeleteWithoutVM", "CreateReturnsIdentity"}
	needsList   = []string{"DeleteWithoutVM", "CreateReturnsIdentity", "ListIsComplete"}
	needsAll    = []string{"DeleteWithoutVM", "CreateReturnsIdentity", "ListIsComplete", "GetWithoutVM"}
)

// fundamental reports whether other promises need p.
func (p promise) fundamental() bool { return slices.Contains(needsAll, p.Name) }

// Run checks a driver. Every promise of the contract is a subtest of t.
//
// The fundamental promises are checked first: create, list, delete, and NotFound. If one is
// broken, the promises that need it are skipped. The others are parallel subtests. At the
// end the log lists the broken promises and those that were not checked, with the reason.
//
// A run on a real cloud makes about thirty VMs and takes a few times Settle. The flag
// -parallel limits the VMs at the same time, and -timeout must be long enough. If the quota
// is too small, promises fail with ResourceExhausted.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	h := newHarness(t)
	s := &report{}
	t.Cleanup(func() { t.Log(s) })
	for _, p := range promises() {
		t.Run(p.Name, func(t *testing.T) {
			if !p.fundamental() {
				t.Parallel()
			}
			switch err := s.check(t.Context(), h, p); {
			case errors.Is(err, errNotChecked):
				t.Skip(err)
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// check checks one promise and removes what the check made. It returns nil if the promise
// is kept, an error that wraps errNotChecked if the check cannot run, and otherwise an error
// with the violation and the contract.
func check(ctx context.Context, h Harness, p promise) error {
	if h.New == nil || h.MachineClass == nil {
		return errors.New("drivertest: Harness.New and Harness.MachineClass are required")
	}
	if p.Check == nil {
		return fmt.Errorf("drivertest: promise %s has no check", p.Name)
	}
	e := newEnv(h)
	err := p.Check(ctx, e)
	absent := errors.Is(err, errNotChecked)
	if err != nil && !absent {
		err = fmt.Errorf("%w\ncontract: %s", err, p.Text)
	}
	if left := e.cleanUp(context.WithoutCancel(ctx)); left != nil {
		left = fmt.Errorf("cleanup failed; delete the VMs of the machines %s-* by hand: %w", e.prefix, left)
		if absent {
			return left
		}
		return errors.Join(err, left)
	}
	return err
}

// promises returns all promises, the fundamental ones first and in the order of needsAll.
func promises() []promise {
	all := slices.Concat(createCases(), getCases(), deleteCases(), listCases(), sideCases(), initializeCases(), volumeCases(), requestCases(), contextCases())
	rank := func(p promise) int {
		if i := slices.Index(needsAll, p.Name); i >= 0 {
			return i
		}
		return len(needsAll)
	}
	slices.SortStableFunc(all, func(a, b promise) int { return rank(a) - rank(b) })
	return all
}
