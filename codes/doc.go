// SPDX-License-Identifier: Apache-2.0

// Package codes says how a machine provider failed, what the caller should do
// about it, and how long to wait before trying again.
//
// A driver returns a [Code] inside an ordinary Go error (package
// codes/status makes such errors; any error with a method Code() codes.Code
// will do). A caller asks three questions:
//
//	err := drv.CreateMachine(ctx, req)      // the effect
//	switch codes.Of(err).Category() {       // what does that mean for us?
//	case codes.Proceed:
//		// record the machine
//	case codes.Investigate:
//		// look what is there before any other step
//	default:
//		failures++                          // the caller's own memory
//		wait := codes.Backoff(codes.BackoffPolicy{}, codes.FailureOf(err, failures), rand.Float64)
//		// ask again at now + wait
//	}
//
// # What to do about a code
//
// Several codes overlap, so that a code alone does not say what to do. Each
// code therefore has exactly one [Category]:
//
//	 0  OK                  Proceed
//	 1  Canceled            RetryLater
//	 2  Unknown             RetrySoon
//	 3  InvalidArgument     FixRequest
//	 4  DeadlineExceeded    RetrySoon
//	 5  NotFound            TreatAsAbsent
//	 6  AlreadyExists       Investigate
//	 7  PermissionDenied    FixCredentials
//	 8  ResourceExhausted   WaitForCapacity
//	 9  FailedPrecondition  RetryLater
//	10  Aborted             RetrySoon
//	11  OutOfRange          Investigate
//	12  Unimplemented       TreatAsAbsent
//	13  Internal            RetryLater
//	14  Unavailable         RetrySoon
//	15  DataLoss            Investigate
//	16  Unauthenticated     FixCredentials
//	17  Uninitialized       Investigate
//
// A code that this version cannot name is RetryLater: never a reason to go on, never a hot loop.
//
// A category is advice for the operation that was asked. Where the advice makes
// no sense for it (a creation that answers NotFound), the caller waits: every
// category but Proceed has a waiting time.
//
// # What it does not do
//
// The package calls nobody, reads no clock, draws no random numbers and keeps
// no state; the count of failures is the caller's. It never looks at the text
// of an error: for errors that crossed a process boundary as a string there is
// status.FromError.
package codes
