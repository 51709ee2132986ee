// SPDX-License-Identifier: Apache-2.0

package codes

import "strconv"

// A Category is what the caller should do about a [Code]. A switch over it with a default
// branch of RetryLater is complete, also for codes of later versions.
//
// The zero Category is [RetryLater], the cautious one.
type Category uint8

const (
	// RetryLater means: the failure is not understood, or is not the caller's to
	// repair. Change nothing, try again in minutes. It is also the category of
	// every code that this version cannot name.
	RetryLater Category = iota
	// Proceed means: nothing failed, go on.
	Proceed
	// RetrySoon means: it passes by itself. Try again in seconds; look before
	// repeating an effect, as it may have happened.
	RetrySoon
	// WaitForCapacity means: quota or capacity is missing. Wait long, or ask
	// for another place or size.
	WaitForCapacity
	// FixRequest means: it cannot succeed as written. Tell the author of the
	// machine class; try again in minutes, or at once when it changes.
	FixRequest
	// FixCredentials means: the credentials are missing, wrong or too weak.
	// Tell their owner; try again in minutes, or at once when they change.
	FixCredentials
	// TreatAsAbsent means: the VM, or the operation of the provider, does not
	// exist. Create it, call its deletion done, or go on without the operation.
	TreatAsAbsent
	// Investigate means: what is there is not what was expected. Look before any
	// other step: adopt the VM, initialise it, or leave it alone.
	Investigate
)

// categories holds the name of each category.
var categories = [...]string{
	RetryLater: "RetryLater", Proceed: "Proceed", RetrySoon: "RetrySoon", WaitForCapacity: "WaitForCapacity",
	FixRequest: "FixRequest", FixCredentials: "FixCredentials", TreatAsAbsent: "TreatAsAbsent", Investigate: "Investigate",
}

// Category returns the one category of c. The four codes that the reference
// system retries after seconds (Unknown, DeadlineExceeded, Aborted,
// Unavailable) are [RetrySoon] and no others are; a code this version cannot
// name is [RetryLater].
func (c Code) Category() Category {
	switch c {
	case OK:
		return Proceed
	case Unknown, DeadlineExceeded, Aborted, Unavailable:
		return RetrySoon
	case ResourceExhausted:
		return WaitForCapacity
	case InvalidArgument:
		return FixRequest
	case PermissionDenied, Unauthenticated:
		return FixCredentials
	case NotFound, Unimplemented:
		return TreatAsAbsent
	case AlreadyExists, Uninitialized, OutOfRange, DataLoss:
		return Investigate
	case Canceled, FailedPrecondition, Internal:
		return RetryLater
	default:
		return RetryLater
	}
}

// String returns the name of c, or "Category(n)" outside the set.
func (c Category) String() string {
	if int(c) < len(categories) {
		return categories[c]
	}
	return "Category(" + strconv.Itoa(int(c)) + ")"
}
