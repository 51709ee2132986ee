// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/recorded"
)

// Sighting is what the provider has said about the VM of a machine.
type Sighting uint8

// The sightings. Not having looked differs from having found nothing.
const (
	// NotLooked means that nobody has asked, or that an answer since has put the
	// older one in doubt.
	NotLooked Sighting = iota
	// Absent means that the provider knows no VM of the machine.
	Absent
	// Uninitialized means that the VM exists and has not been initialised.
	Uninitialized
	// Present means that the VM exists and is complete.
	Present
	// Deleted means that the provider has confirmed the deletion.
	Deleted
)

var sightingNames = [...]string{"NotLooked", "Absent", "Uninitialized", "Present", "Deleted"}

// String returns the name of s.
func (s Sighting) String() string {
	if int(s) < len(sightingNames) {
		return sightingNames[s]
	}
	return fmt.Sprintf("Sighting(%d)", uint8(s))
}

// VMView is what the provider has answered about the VM of one machine: a plain
// value which the caller keeps between two decisions, by the UID of the machine.
// Losing it costs a driver call, never safety.
type VMView struct {
	// Sighting sums up the answers.
	Sighting Sighting
	// ProviderID and NodeName are what answers have named last. A VM once named is
	// never made a second time.
	ProviderID, NodeName string
	// Addresses that answers have named.
	Addresses []corev1.NodeAddress
	// LastKnownState is the driver's opaque text, if it gave one.
	LastKnownState string
	// Blind says that the provider cannot tell whether there is a VM, so that Absent
	// proves nothing.
	Blind bool
	// Initialized says that InitializeMachine has succeeded, or that the provider
	// has no such step.
	Initialized bool
	// Asked is the operation that was called last.
	Asked driver.Operation
	// SeenAt is when that was asked: how old what is known may be.
	SeenAt time.Time
	// Failure is how the last call failed; the zero value means that it did not.
	Failure CallFailure
	// CreateFailures and DeleteFailures count the failures of CreateMachine and
	// DeleteMachine in a row, whatever was asked in between.
	CreateFailures, DeleteFailures int
}

// CallFailure is how a driver call failed.
type CallFailure struct {
	// Operation that failed.
	Operation driver.Operation
	// Code of the error. [codes.OK] means that there is no failure.
	Code codes.Code
	// Message is the text of the error, for people.
	Message string
	// At is when the call ended.
	At time.Time
	// Attempts counts the failures of the operation in a row.
	Attempts int
	// RetryAfter is the wait that the provider asked for, if it did.
	RetryAfter time.Duration
	// Chance, from 0 up to 1, spreads the retries of many machines.
	Chance float64
}

// Answer is what a driver call returned.
type Answer struct {
	// Operation that was called.
	Operation driver.Operation
	// AskedAt is when the call was made: what it says was so then, and may have
	// changed when the answer came. Zero is when the answer came.
	AskedAt time.Time
	// ProviderID, NodeName, Addresses and LastKnownState of the response, which
	// may stand next to an error.
	ProviderID, NodeName string
	Addresses            []corev1.NodeAddress
	LastKnownState       string
	// Err is the error of the call.
	Err error
}

// After returns the view after an answer that came at now. chance is a number
// from 0 up to 1 that spreads retries.
//
// The codes mean what the contract of package driver says: NotFound is an
// answer where it is asked whether the VM exists or that it go; Unimplemented is
// one where the operation is optional; Uninitialized is one from
// GetMachineStatus. AlreadyExists from CreateMachine puts the earlier answer in
// doubt. Everything else is a failure; after one of CreateMachine or
// GetMachineStatus the VM has to be looked for again.
func (v VMView) After(a Answer, now time.Time, chance float64) VMView {
	code := codes.Of(a.Err)
	next := v
	next.SeenAt, next.Asked = now, a.Operation
	if !a.AskedAt.IsZero() && a.AskedAt.Before(now) {
		next.SeenAt = a.AskedAt
	}
	next.Addresses = mergeAddresses(v.Addresses, a.Addresses)
	if a.LastKnownState != "" {
		next.LastKnownState = a.LastKnownState
	}
	sighting, answered := v.sighting(a, code)
	if !answered {
		next.Failure = v.failure(a, code, now, chance)
		switch a.Operation {
		case driver.OpCreateMachine:
			next.CreateFailures++
			next.Failure.Attempts, next.Sighting = next.CreateFailures, NotLooked
		case driver.OpDeleteMachine:
			next.DeleteFailures++
			next.Failure.Attempts = next.DeleteFailures
		case driver.OpGetMachineStatus:
			next.Sighting = NotLooked
		}
		return next
	}
	next.Sighting, next.Failure = sighting, CallFailure{}
	switch a.Operation {
	case driver.OpGetMachineStatus:
		next.Blind = code == codes.Unimplemented
	case driver.OpCreateMachine:
		next.Initialized = false
	case driver.OpInitializeMachine:
		next.Initialized = true
	case driver.OpDeleteMachine:
		next.DeleteFailures = 0
	}
	if sighting != Absent {
		next.CreateFailures = 0
	}
	if a.ProviderID != "" {
		next.ProviderID = a.ProviderID
	}
	if a.NodeName != "" {
		next.NodeName = a.NodeName
	}
	return next
}

// answer is the code that an operation returned.
type answer struct {
	operation driver.Operation
	code      codes.Code
}

// sightings are what answers say about the VM. Every other answer is a failure.
var sightings = map[answer]Sighting{
	{driver.OpGetMachineStatus, codes.OK}:             Present,
	{driver.OpGetMachineStatus, codes.NotFound}:       Absent,
	{driver.OpGetMachineStatus, codes.Unimplemented}:  Absent,
	{driver.OpGetMachineStatus, codes.Uninitialized}:  Uninitialized,
	{driver.OpCreateMachine, codes.OK}:                Uninitialized,
	{driver.OpInitializeMachine, codes.OK}:            Present,
	{driver.OpInitializeMachine, codes.Unimplemented}: Present,
	{driver.OpDeleteMachine, codes.OK}:                Deleted,
	{driver.OpDeleteMachine, codes.NotFound}:          Absent,
}

// sighting returns what an answer says about the VM, or false if the call
// failed.
func (v VMView) sighting(a Answer, code codes.Code) (Sighting, bool) {
	if a.Operation == driver.OpInitializeMachine && code == codes.Unimplemented && v.Sighting == Absent {
		return Absent, true // it says nothing of the VM
	}
	s, answered := sightings[answer{a.Operation, code}]
	return s, answered
}

func (v VMView) failure(a Answer, code codes.Code, now time.Time, chance float64) CallFailure {
	f := CallFailure{
		Operation: a.Operation, Code: code, At: now, Attempts: 1, Chance: chance,
		RetryAfter: codes.RetryAfterOf(a.Err),
	}
	if a.Err != nil {
		f.Message = a.Err.Error()
	} else { // an answer to an operation that this package never calls
		f.Code, f.Message = codes.Internal, fmt.Sprintf("unexpected answer to %v", a.Operation)
	}
	if v.Failure.Code != codes.OK && v.Failure.Operation == a.Operation {
		f.Attempts = v.Failure.Attempts + 1
	}
	return f
}

// until returns when the failed operation may be tried again. The first waits are
// those of the reference system after a failed creation; see [codes.BackoffPolicy].
// A failure in the future was recorded before the clock was set back: it counts no more.
func (f CallFailure) until(p codes.BackoffPolicy, now time.Time) time.Time {
	if !recorded.Known(f.At, now) {
		return time.Time{}
	}
	wait := codes.Backoff(p, codes.Failure{Category: f.category(), Attempts: f.Attempts, RetryAfter: f.RetryAfter},
		func() float64 { return f.Chance })
	return f.At.Add(wait)
}

// category returns what to do about the failure: what its code says, but where
// more than the code is known.
func (f CallFailure) category() codes.Category {
	switch {
	case f.Operation == driver.OpInitializeMachine: // the VM is there, and costs
		return codes.RetrySoon
	case f.Operation == driver.OpCreateMachine && (f.Code == codes.AlreadyExists || f.Code == codes.Uninitialized): // to look is worth it at once
		return codes.RetrySoon
	default:
		return f.Code.Category()
	}
}

// mergeAddresses returns both lists without duplicates, in a fixed order.
func mergeAddresses(a, b []corev1.NodeAddress) []corev1.NodeAddress {
	merged := slices.Concat(a, b)
	slices.SortFunc(merged, compareAddresses)
	return slices.Compact(merged)
}
