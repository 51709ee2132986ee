// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/recorded"
)

// Presence is what the provider has said about the VM of a machine.
type Presence uint8

// The presences. Not having looked differs from having found nothing.
const (
	// NotLooked means that nobody has asked, or that an answer since has put the
	// older one in doubt.
	NotLooked Presence = iota
	// Absent means that the provider knows no VM of the machine.
	Absent
	// Uninitialized means that the VM exists and has not been initialised.
	Uninitialized
	// Present means that the VM exists and is complete.
	Present
	// Deleted means that the provider has confirmed the deletion.
	Deleted
)

// VMView is what the provider has answered about the VM of one machine: a plain
// value which the caller keeps between two decisions, by the UID of the machine.
// Losing it costs a driver call, never safety.
type VMView struct {
	// Presence sums up the answers.
	Presence Presence
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

// CallResult is what a driver call returned.
type CallResult struct {
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

// presences is what an answer says about the VM, by its operation and code. Every
// other code is a failure.
var presences = map[driver.Operation]map[codes.Code]Presence{
	driver.OpGetMachineStatus: {
		codes.OK: Present, codes.NotFound: Absent, codes.Unimplemented: Absent, codes.Uninitialized: Uninitialized,
	},
	driver.OpCreateMachine:     {codes.OK: Uninitialized},
	driver.OpInitializeMachine: {codes.OK: Present, codes.Unimplemented: Present},
	driver.OpDeleteMachine:     {codes.OK: Deleted, codes.NotFound: Absent},
}

// After returns the view after an answer that came at now. chance is a number
// from 0 up to 1 that spreads retries. The answer to another operation changes nothing.
//
// The codes mean what the contract of package driver says: NotFound is an
// answer where it is asked whether the VM exists or that it go; Unimplemented is
// one where the operation is optional; Uninitialized is one from
// GetMachineStatus. AlreadyExists from CreateMachine puts the earlier answer in
// doubt. Everything else is a failure; after one of CreateMachine or
// GetMachineStatus the VM has to be looked for again.
func (v VMView) After(a CallResult, now time.Time, chance float64) VMView {
	said, known := presences[a.Operation]
	if !known {
		return v
	}
	next, code := v, codes.Of(a.Err)
	next.SeenAt, next.Asked = now, a.Operation
	if !a.AskedAt.IsZero() && a.AskedAt.Before(now) {
		next.SeenAt = a.AskedAt
	}
	next.Addresses = mergeAddresses(v.Addresses, a.Addresses)
	next.LastKnownState = cmp.Or(a.LastKnownState, v.LastKnownState)
	presence, answered := said[code]
	if !answered {
		return next.failed(a, code, now, chance)
	}
	next.Failure = CallFailure{}
	switch a.Operation {
	case driver.OpGetMachineStatus:
		next.Blind = code == codes.Unimplemented
	case driver.OpCreateMachine:
		next.Initialized = false
	case driver.OpInitializeMachine:
		next.Initialized = true
		if code == codes.Unimplemented && v.Presence == Absent { // says nothing of the VM
			presence = Absent
		}
	case driver.OpDeleteMachine:
		next.DeleteFailures = 0
	}
	if next.Presence = presence; presence != Absent {
		next.CreateFailures = 0
	}
	next.ProviderID, next.NodeName = cmp.Or(a.ProviderID, v.ProviderID), cmp.Or(a.NodeName, v.NodeName)
	return next
}

// failed returns the view after an answer that is a failure.
func (v VMView) failed(a CallResult, code codes.Code, now time.Time, chance float64) VMView {
	f := CallFailure{
		Operation: a.Operation, Code: code, Message: a.Err.Error(), At: now, Attempts: 1, Chance: chance, RetryAfter: codes.RetryAfterOf(a.Err),
	}
	if v.Failure.Code != codes.OK && v.Failure.Operation == a.Operation {
		f.Attempts += v.Failure.Attempts
	}
	switch a.Operation {
	case driver.OpCreateMachine:
		v.CreateFailures++
		f.Attempts, v.Presence = v.CreateFailures, NotLooked
	case driver.OpDeleteMachine:
		v.DeleteFailures++
		f.Attempts = v.DeleteFailures
	case driver.OpGetMachineStatus:
		v.Presence = NotLooked
	}
	v.Failure = f
	return v
}

// until returns when the failed operation may be tried again. The first waits are
// those of the reference system after a failed creation; see [codes.BackoffPolicy].
// A failure in the future was recorded before the clock was set back: it counts no more.
func (f CallFailure) until(p codes.BackoffPolicy, now time.Time) time.Time {
	if !recorded.Known(f.At, now) {
		return time.Time{}
	}
	category := f.Code.Category()
	// An initialisation is repeated soon because its VM costs, and a creation because a
	// look at the VM may be enough.
	if f.Operation == driver.OpInitializeMachine ||
		f.Operation == driver.OpCreateMachine && (f.Code == codes.AlreadyExists || f.Code == codes.Uninitialized) {
		category = codes.RetrySoon
	}
	failure := codes.Failure{Category: category, Attempts: f.Attempts, RetryAfter: f.RetryAfter}
	return f.At.Add(codes.Backoff(p, failure, func() float64 { return f.Chance }))
}

// mergeAddresses returns both lists without duplicates, by type and address.
func mergeAddresses(a, b []corev1.NodeAddress) []corev1.NodeAddress {
	merged := slices.Concat(a, b)
	slices.SortFunc(merged, func(a, b corev1.NodeAddress) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Address, b.Address))
	})
	return slices.Compact(merged)
}
