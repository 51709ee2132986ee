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

// A FaultKind is the way in which a call fails.
type FaultKind uint8

// The kinds of fault.
const (
	// Refuse returns the error and does nothing.
	Refuse FaultKind = iota
	// Hang does nothing and returns when the context of the call ends. If the context has no
	// end, the call fails with Internal at once.
	Hang
	// LoseResponse does the operation and then returns the error.
	LoseResponse
	// Partial does some steps and then returns the error. CreateMachine has one step for each
	// side resource and then one for the VM. DeleteMachine has one step for the VM and then
	// one for each side resource. For other operations Partial is the same as Refuse.
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

// A Fault is a rule for calls that fail. The zero Fault refuses every call with Unavailable. If
// several faults match a call, the first one acts.
type Fault struct {
	// Operation that fails. Empty means every operation.
	Operation driver.Operation
	// Machine is the name of the machine whose calls fail. Empty means every call, including
	// those without a machine.
	Machine string
	// Times is how often the fault acts. Zero means always.
	Times int
	// Probability, between 0 and 1, is the probability that the fault acts on a matching call.
	// Other values mean always. The result depends on the seed, the operation, the machine and
	// the number of such calls, and not on calls of other machines.
	Probability float64

	// Kind is the way in which the call fails.
	Kind FaultKind
	// Steps is the number of steps of a Partial fault. Zero means all except the last.
	Steps int
	// Code of the error. OK means Unavailable.
	Code codes.Code
	// Message of the error. Empty means "simulated fault".
	Message string
	// LastKnownState of the response with the error. Empty means no response.
	LastKnownState string
}

// String returns the fault in one line. Its form may change.
func (f Fault) String() string {
	return fmt.Sprintf("%s %s of machine %s with %s", f.Kind,
		cmp.Or(string(f.Operation), "every call"), cmp.Or(f.Machine, "any"), codes.Of(f.error()))
}

// error returns the error of the fault.
func (f Fault) error() error {
	return status.Error(cmp.Or(f.Code, codes.Unavailable), cmp.Or(f.Message, "simulated fault"))
}

// fault is an injected fault.
type fault struct {
	Fault
	index int            // among all that were ever injected
	acted int            // calls that went wrong
	draws map[string]int // chances drawn, per operation and machine
}

// Inject adds a fault. The result removes it.
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

// ClearFaults removes all faults.
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

// chance reports whether the fault acts by its probability.
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
		return status.Error(codes.Internal, "the call would hang forever because its context has no end")
	}
	<-ctx.Done()
	return contextError(ctx)
}

// contextError returns the error of an ended context with a code, and nil before its end.
func contextError(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	return status.WrapError(codes.Of(err), "the call was canceled: "+err.Error(), err)
}
