// SPDX-License-Identifier: Apache-2.0

package codes

import "strconv"

// A Category is what the caller should do about a [Code]. Give a switch over it a default
// branch for RetryLater, which is also the zero Category.
type Category uint8

const (
	// RetryLater means that the cause is unknown or outside the caller. Try again in minutes.
	// It is also the category of every unknown code.
	RetryLater Category = iota
	// Proceed means that the operation succeeded.
	Proceed
	// RetrySoon means that the cause is temporary. Try again in seconds. The operation may
	// have succeeded, so read the state before repeating it.
	RetrySoon
	// WaitForCapacity means that quota or capacity is missing. Wait, or request another zone
	// or size.
	WaitForCapacity
	// FixRequest means that the request is invalid. Report it to the author of the
	// MachineClass. Try again in minutes, or when the class changes.
	FixRequest
	// FixCredentials means that the credentials are missing, wrong or too weak. Report it to
	// their owner. Try again in minutes, or when they change.
	FixCredentials
	// TreatAsAbsent means that the VM or the operation does not exist. Create the VM, finish
	// its deletion, or continue without the operation.
	TreatAsAbsent
	// Investigate means that the state is not the expected one. Read it before the next step:
	// adopt the VM, initialize it, or do nothing.
	Investigate
)

// categories has the name of each category.
var categories = [...]string{
	RetryLater: "RetryLater", Proceed: "Proceed", RetrySoon: "RetrySoon", WaitForCapacity: "WaitForCapacity",
	FixRequest: "FixRequest", FixCredentials: "FixCredentials", TreatAsAbsent: "TreatAsAbsent", Investigate: "Investigate",
}

// Category returns the category of c. The codes that MCM retries after seconds are
// [RetrySoon]: Unknown, DeadlineExceeded, Aborted and Unavailable. An unknown code is
// [RetryLater].
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
