// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"strconv"
	"strings"
)

// A Code is the way in which a provider's operation ended. Programs act on the
// code, or on its [Category], and never on the text of an error.
//
// Numbers and names are stable and equal to those of the reference system. The
// zero Code is [OK]; numbers from 18 on are codes of the future, which are
// carried along unharmed.
type Code uint32

const (
	// OK means that the operation succeeded. It is the code of a nil error and
	// of no other: see [Of].
	OK Code = 0
	// Canceled means that the caller gave up. The provider may have done the
	// work or a part of it.
	Canceled Code = 1
	// Unknown means that nobody can say what happened: the error carries no
	// code, or the driver did not recognise the provider's answer.
	Unknown Code = 2
	// InvalidArgument means that the request is wrong whatever the state of the
	// system: a bad provider spec, a bad secret, the wrong provider.
	InvalidArgument Code = 3
	// DeadlineExceeded means that time ran out. The provider may have done the
	// work nevertheless.
	DeadlineExceeded Code = 4
	// NotFound means that the machine's VM does not exist. It must not be used
	// for anything else that is missing (an image, a network): callers create
	// a VM, or call a deletion done, on the strength of it.
	NotFound Code = 5
	// AlreadyExists means that what should be created is there already.
	AlreadyExists Code = 6
	// PermissionDenied means that the credentials are good but not allowed to
	// do this.
	PermissionDenied Code = 7
	// ResourceExhausted means that quota or capacity is missing.
	ResourceExhausted Code = 8
	// FailedPrecondition means that the system is not in a state in which the
	// operation is possible.
	FailedPrecondition Code = 9
	// Aborted means that the operation lost a race and can be started afresh.
	Aborted Code = 10
	// OutOfRange means that the answer is not unique: several VMs match one
	// machine.
	OutOfRange Code = 11
	// Unimplemented means that the driver has no such operation.
	Unimplemented Code = 12
	// Internal means that an assumption of the driver or provider is broken. It
	// is also what most drivers return by default.
	Internal Code = 13
	// Unavailable means that the provider does not answer at present.
	Unavailable Code = 14
	// DataLoss means that data was lost or damaged beyond repair.
	DataLoss Code = 15
	// Unauthenticated means that there are no valid credentials.
	Unauthenticated Code = 16
	// Uninitialized means that the VM exists but its creation was not brought
	// to an end; the operation InitializeMachine does that.
	Uninitialized Code = 17
)

// names holds the name of each code at the index of its number.
var names = [...]string{
	OK:                 "OK",
	Canceled:           "Canceled",
	Unknown:            "Unknown",
	InvalidArgument:    "InvalidArgument",
	DeadlineExceeded:   "DeadlineExceeded",
	NotFound:           "NotFound",
	AlreadyExists:      "AlreadyExists",
	PermissionDenied:   "PermissionDenied",
	ResourceExhausted:  "ResourceExhausted",
	FailedPrecondition: "FailedPrecondition",
	Aborted:            "Aborted",
	OutOfRange:         "OutOfRange",
	Unimplemented:      "Unimplemented",
	Internal:           "Internal",
	Unavailable:        "Unavailable",
	DataLoss:           "DataLoss",
	Unauthenticated:    "Unauthenticated",
	Uninitialized:      "Uninitialized",
}

const (
	futurePrefix = "Code("
	futureSuffix = ")"
)

// All returns the codes that this version can name, in the order of their
// numbers. The slice is the caller's. It is meant for tests that must not miss
// a code.
func All() []Code {
	all := make([]Code, len(names))
	for i := range all {
		all[i] = Code(i)
	}
	return all
}

// String returns the stable name of c, or "Code(n)" for a number that this
// version cannot name. [Parse] is its inverse.
func (c Code) String() string {
	if uint64(c) < uint64(len(names)) {
		return names[c]
	}
	return futurePrefix + strconv.FormatUint(uint64(c), 10) + futureSuffix
}

// Parse returns the code whose name is s. It also takes the form "Code(n)",
// with any n that fits a Code, because an older writer names a newer code like
// that. Everything else is [Unknown] and false; upper and lower case differ,
// and nothing is trimmed.
func Parse(s string) (Code, bool) {
	for i, name := range names {
		if name == s {
			return Code(i), true
		}
	}
	digits, ok := strings.CutPrefix(s, futurePrefix)
	if !ok {
		return Unknown, false
	}
	digits, ok = strings.CutSuffix(digits, futureSuffix)
	if !ok {
		return Unknown, false
	}
	return parseNumber(digits)
}

// parseNumber reads a number in the one form in which String and JSON write it:
// decimal digits without sign or leading zero.
func parseNumber(digits string) (Code, bool) {
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || (len(digits) > 1 && digits[0] == '0') {
		return Unknown, false
	}
	return Code(n), true
}
