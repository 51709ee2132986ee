// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// A FaultKind says how a call goes wrong.
type FaultKind uint8

// The kinds of fault.
const (
	// Refuse returns the error and does nothing.
	Refuse FaultKind = iota
	// Hang does nothing and returns when the context of the call ends. If the
	// context cannot end, the call fails at once with Internal and says so: the
	// caller has no deadline.
	Hang
	// LoseResponse does everything and then returns the error.
	LoseResponse
	// Partial does some of the steps and then returns the error. The steps of
	// CreateMachine are one for each side resource and one for the VM; those of
	// DeleteMachine one for the VM and one for each side resource. On other
	// operations it is the same as Refuse.
	Partial
)

// String returns the name of the kind, such as "Refuse".
func (k FaultKind) String() string {
	names := []string{"Refuse", "Hang", "LoseResponse", "Partial"}
	if int(k) >= len(names) {
		return fmt.Sprintf("FaultKind(%d)", uint8(k))
	}
	return names[k]
}

// A Fault is a rule by which calls go wrong. The zero Fault refuses every call
// with Unavailable. If several rules fit a call, the one injected first acts.
type Fault struct {
	// Operation that goes wrong. Empty means every one.
	Operation driver.Operation
	// Machine by whose name calls go wrong. Empty means every one, and calls that
	// are about no machine.
	Machine string
	// Times is how often the rule acts. Zero means without end.
	Times int
	// Probability, if between 0 and 1, is that with which the rule acts on a call
	// that fits. Other values mean always. Chance depends on the seed, the
	// operation, the machine and how many calls of that kind there were: not on
	// the order of calls of different machines.
	Probability float64

	// Kind says how the call goes wrong.
	Kind FaultKind
	// Steps is how many steps a fault of kind Partial does. Zero means all but the
	// last.
	Steps int
	// Code of the error. OK means Unavailable.
	Code codes.Code
	// Message of the error. Empty means "simulated fault".
	Message string
	// LastKnownState, if not empty, is in the response next to the error.
	LastKnownState string
}

// String renders the rule on one line. Its form may change.
func (f Fault) String() string {
	return fmt.Sprintf("%s %s of machine %s with %s", f.Kind,
		cmp.Or(string(f.Operation), "every call"), cmp.Or(f.Machine, "any"), codes.Of(f.error()))
}

// error returns the error of the fault.
func (f Fault) error() error {
	return status.Error(cmp.Or(f.Code, codes.Unavailable), cmp.Or(f.Message, "simulated fault"))
}

// fault is a rule in force.
type fault struct {
	Fault
	index int            // among all that were ever injected
	acted int            // calls that went wrong
	draws map[string]int // chances drawn, per operation and machine
}

// Inject puts a rule in force. The result takes it out of force again.
func (c *Cloud) Inject(f Fault) (remove func()) {
	c.lock()
	defer c.unlock()
	c.injected++
	rule := &fault{Fault: f, index: c.injected, draws: map[string]int{}}
	c.faults = append(c.faults, rule)
	return func() {
		c.lock()
		defer c.unlock()
		c.faults = slices.DeleteFunc(c.faults, func(g *fault) bool { return g == rule })
	}
}

// ClearFaults takes all rules out of force.
func (c *Cloud) ClearFaults() {
	c.lock()
	defer c.unlock()
	c.faults = nil
}

// strike returns the fault that acts on a call, or nil.
func (c *Cloud) strike(op driver.Operation, machine string) *Fault {
	for _, f := range c.faults {
		if f.Operation != "" && f.Operation != op || f.Machine != "" && f.Machine != machine {
			continue
		}
		if f.Times > 0 && f.acted >= f.Times || !f.chance(c.options.Seed, op, machine) {
			continue
		}
		f.acted++
		out := f.Fault
		return &out
	}
	return nil
}

// chance decides whether the rule acts, if it has a probability.
func (f *fault) chance(seed uint64, op driver.Operation, machine string) bool {
	if f.Probability <= 0 || f.Probability >= 1 {
		return true
	}
	kind := string(op) + "/" + machine
	f.draws[kind]++
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%d/%d/%s", f.index, f.draws[kind], kind)
	return rand.New(rand.NewPCG(seed, hash.Sum64())).Float64() < f.Probability
}

// hang waits for the end of ctx.
func hang(ctx context.Context) error {
	if ctx.Done() == nil {
		return status.Error(codes.Internal, "the call would hang for ever: its context has no end")
	}
	<-ctx.Done()
	return contextError(ctx)
}

// contextError returns the end of ctx as an error with a code, and nil before
// its end.
func contextError(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	return status.WrapError(codes.Of(err), "the call was given up: "+err.Error(), err)
}
