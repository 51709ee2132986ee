// SPDX-License-Identifier: Apache-2.0

package codes

import "strconv"

// A Category is what the caller should do about a [Code]. The set is closed: a
// switch over it that has a default branch of RetryLater is complete, also for
// codes of the future.
//
// The zero Category is [RetryLater], the cautious one.
type Category uint8

const (
	// RetryLater means: the failure is not understood, or is not ours to
	// repair. Change nothing, try again in minutes. It is also the category of
	// every code this version cannot name.
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
	// TreatAsAbsent means: the thing does not exist. Create it, or call its
	// deletion done.
	TreatAsAbsent
	// TreatAsUnsupported means: the provider has no such operation. Go on
	// without it where it is optional.
	TreatAsUnsupported
	// Adopt means: the thing is there already. Look it up and take it over.
	Adopt
	// Initialize means: the thing exists half-made. Initialise it.
	Initialize
	// Investigate means: the answer is ambiguous or damaged. List what is there
	// before any other step; create and delete nothing on the strength of it.
	Investigate
)

// categories holds the name of each category, and the sentence that [Table]
// prints for it.
var categories = [...]struct{ name, advice string }{
	RetryLater:         {"RetryLater", "not understood or not ours to repair: try again in minutes"},
	Proceed:            {"Proceed", "nothing failed; go on"},
	RetrySoon:          {"RetrySoon", "passes by itself: try again in seconds"},
	WaitForCapacity:    {"WaitForCapacity", "quota or capacity is missing: wait long, or place it elsewhere"},
	FixRequest:         {"FixRequest", "cannot succeed as written: tell the author, try again in minutes"},
	FixCredentials:     {"FixCredentials", "credentials are refused: tell their owner, try again in minutes"},
	TreatAsAbsent:      {"TreatAsAbsent", "it does not exist: create it, or call its deletion done"},
	TreatAsUnsupported: {"TreatAsUnsupported", "the provider has no such operation: go on without it"},
	Adopt:              {"Adopt", "it exists already: look it up and take it over"},
	Initialize:         {"Initialize", "it exists half-made: initialise it"},
	Investigate:        {"Investigate", "the answer cannot be acted upon: list what is there before any other step"},
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
	case NotFound:
		return TreatAsAbsent
	case Unimplemented:
		return TreatAsUnsupported
	case AlreadyExists:
		return Adopt
	case Uninitialized:
		return Initialize
	case OutOfRange, DataLoss:
		return Investigate
	case Canceled, FailedPrecondition, Internal:
		return RetryLater
	default:
		return RetryLater
	}
}

// Categories returns all categories, the zero one first. The slice is the
// caller's. It is meant for tests that must not miss a category.
func Categories() []Category {
	all := make([]Category, len(categories))
	for i := range all {
		all[i] = Category(i)
	}
	return all
}

// String returns the stable name of c, or "Category(n)" outside the set.
func (c Category) String() string {
	if int(c) < len(categories) {
		return categories[c].name
	}
	return "Category(" + strconv.Itoa(int(c)) + ")"
}

// MarshalText implements [encoding.TextMarshaler], and with it the JSON form,
// with the name of c. It never fails.
func (c Category) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. A name outside the set
// becomes [RetryLater] without an error. The only error is a nil receiver.
func (c *Category) UnmarshalText(text []byte) error {
	if c == nil {
		return errNilReceiver
	}
	*c = RetryLater
	for i, known := range categories {
		if known.name == string(text) {
			*c = Category(i)
		}
	}
	return nil
}
