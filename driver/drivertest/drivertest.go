// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// A Harness gives the kit a driver to check, and what it takes to use it.
type Harness struct {
	// New returns a driver, as a new process would make one. All drivers of a
	// harness share one cloud. Returning the same one again is allowed.
	New func() driver.Driver
	// MachineClass is a valid class for that cloud, in a scope to play in.
	MachineClass *v1alpha1.MachineClass
	// Secret is valid for that class, with user data as for any machine. Nil
	// means that the driver needs none.
	Secret *corev1.Secret
	// Settle is how long the cloud may take until everybody sees what was done,
	// deletions to their end included. Zero means at once; for a real cloud it is
	// minutes.
	Settle time.Duration

	// Clock is what the kit waits on. Nil means the real clock.
	Clock clock.Clock
	// OtherScope, if set, is a class like MachineClass in another scope.
	OtherScope *v1alpha1.MachineClass
	// Volumes, if any, are volumes of the cloud.
	Volumes []Volume
	// FailCreate, if set, makes the next CreateMachine for a machine fail when
	// some of its steps are done.
	FailCreate func(machine string)
}

// A Volume is a persistent volume with the ID that the cloud knows it by.
type Volume struct {
	// Spec of the volume.
	Spec *corev1.PersistentVolumeSpec
	// ID that GetVolumeIDs has to answer.
	ID string
}

// promise is one promise of the contract.
type promise struct {
	// Name of the promise, in CamelCase.
	Name string
	// Text is the sentence of the contract.
	Text string
	// Check returns an error that says how the promise was broken; one that wraps
	// errNotOffered if the promise is about something that driver or harness do
	// not offer; nil if it was kept.
	Check func(ctx context.Context, e *env) error
}

// errNotOffered is wrapped by the error of a check if there is nothing to
// check, because the driver may leave it out and does, or because the harness
// lacks what it takes.
var errNotOffered = errors.New("not offered")

// Run checks a driver: every case is a parallel subtest of t. It ends with a
// line in the log that says how many promises were checked and which were not.
//
// Against a real cloud a run makes about thirty VMs, as many at a time as -parallel
// allows, and takes a few times Settle: mind -timeout. Without -parallel and with
// a small quota, cases fail with ResourceExhausted.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	h := newHarness(t)
	var mu sync.Mutex
	var absent []string
	all := promises()
	t.Cleanup(func() { t.Log(closingLine(len(all), absent)) })
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			err := check(t.Context(), h, c)
			switch {
			case errors.Is(err, errNotOffered):
				mu.Lock()
				absent = append(absent, fmt.Sprintf("%s (%v)", c.Name, err))
				mu.Unlock()
				t.Skip(err)
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// closingLine sums up a run.
func closingLine(all int, absent []string) string {
	if len(absent) == 0 {
		return fmt.Sprintf("all %d promises of the driver contract were checked", all)
	}
	slices.Sort(absent)
	return fmt.Sprintf("%d of %d promises of the driver contract were checked; the others: %s",
		all-len(absent), all, strings.Join(absent, "; "))
}

// check runs one case and returns nil if the promise was kept, an error that
// wraps errNotOffered if there was nothing to check, and otherwise an error
// that says how the promise was broken and what it was. It removes what the case
// made, whatever the outcome; if that fails, this is an error, too.
func check(ctx context.Context, h Harness, c promise) error {
	if h.New == nil || h.MachineClass == nil {
		return errors.New("drivertest: a harness needs New and MachineClass")
	}
	if c.Check == nil {
		return fmt.Errorf("drivertest: case %s checks nothing", c.Name)
	}
	e := newEnv(h)
	err := c.Check(ctx, e)
	absent := errors.Is(err, errNotOffered)
	if err != nil && !absent {
		err = fmt.Errorf("%w\nthe contract says: %s", err, c.Text)
	}
	if left := e.cleanUp(context.WithoutCancel(ctx)); left != nil {
		left = fmt.Errorf("the clean-up failed, look for machines named %s-*: %w", e.prefix, left)
		if absent {
			return left
		}
		return errors.Join(err, left)
	}
	return err
}

// promises returns the cases in the order in which [Run] starts them. The caller
// owns the slice.
func promises() []promise {
	return slices.Concat(createCases(), getCases(), deleteCases(), listCases(), sideCases(), initializeCases(), volumeCases(), requestCases(), contextCases())
}
