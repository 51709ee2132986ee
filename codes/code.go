// SPDX-License-Identifier: Apache-2.0

package codes

import (
	"strconv"
	"strings"
)

// A Code is the result of an operation of a provider. Programs act on the code or its
// [Category], and never on the text of an error.
//
// Numbers and names are stable and equal to those of MCM. The zero Code is [OK]. Numbers from
// 18 on are unknown codes; they are kept.
type Code uint32

const (
	// OK means that the operation succeeded. Only a nil error has it, see [Of].
	OK Code = 0
	// Canceled means that the caller canceled the operation. The provider may have done a
	// part of it or all.
	Canceled Code = 1
	// Unknown means that the error has no code, or that the driver does not know the response
	// of the provider.
	Unknown Code = 2
	// InvalidArgument means that the request is invalid: a bad provider specification, a bad
	// Secret, or the wrong provider.
	InvalidArgument Code = 3
	// DeadlineExceeded means that the deadline has passed. The provider may have done the
	// operation.
	DeadlineExceeded Code = 4
	// NotFound means that the VM of the machine does not exist. Do not use it for a missing
	// image or network: callers create a VM or finish a deletion because of it.
	NotFound Code = 5
	// AlreadyExists means that the object to create exists.
	AlreadyExists Code = 6
	// PermissionDenied means that the credentials are valid but lack a permission.
	PermissionDenied Code = 7
	// ResourceExhausted means that quota or capacity is missing.
	ResourceExhausted Code = 8
	// FailedPrecondition means that the state of the system does not allow the operation.
	FailedPrecondition Code = 9
	// Aborted means that the operation conflicted with another one. It can be repeated.
	Aborted Code = 10
	// OutOfRange means that several VMs match one machine.
	OutOfRange Code = 11
	// Unimplemented means that the driver has no such operation.
	Unimplemented Code = 12
	// Internal means that an assumption of the driver or provider is wrong. Many drivers
	// return it by default.
	Internal Code = 13
	// Unavailable means that the provider does not respond now.
	Unavailable Code = 14
	// DataLoss means that data was lost or damaged.
	DataLoss Code = 15
	// Unauthenticated means that there are no valid credentials.
	Unauthenticated Code = 16
	// Uninitialized means that the VM exists, but InitializeMachine has not completed it.
	Uninitialized Code = 17
)

// names has the name of each code.
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

// All returns the known codes in the order of their numbers, for tests of every code. The
// caller owns the slice.
func All() []Code {
	all := make([]Code, len(names))
	for i := range all {
		all[i] = Code(i)
	}
	return all
}

// String returns the stable name of c, or "Code(n)" for an unknown number. [Parse] is its
// inverse.
func (c Code) String() string {
	if uint64(c) < uint64(len(names)) {
		return names[c]
	}
	return futurePrefix + strconv.FormatUint(uint64(c), 10) + futureSuffix
}

// Parse returns the code with the name s. It accepts "Code(n)" too, the name of an unknown
// code. For any other text it returns [Unknown] and false. It is case-sensitive.
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

// parseNumber parses decimal digits without sign or leading zero.
func parseNumber(digits string) (Code, bool) {
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || (len(digits) > 1 && digits[0] == '0') {
		return Unknown, false
	}
	return Code(n), true
}
