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
//	case codes.Adopt:
//		// look it up, record it
//	default:
//		failures++                          // the caller's own memory
//		wait := codes.Backoff(codes.BackoffPolicy{}, codes.FailureOf(err, failures), rand.Float64)
//		// ask again at now + wait
//	}
//
// # What to do about a code
//
// Several codes overlap, so that a code alone does not say what to do. Each
// code therefore has exactly one [Category], and a switch over the few
// categories is complete:
//
//	 0  OK                  Proceed             nothing failed; go on
//	 1  Canceled            RetryLater          not understood or not ours to repair: try again in minutes
//	 2  Unknown             RetrySoon           passes by itself: try again in seconds
//	 3  InvalidArgument     FixRequest          cannot succeed as written: tell the author, try again in minutes
//	 4  DeadlineExceeded    RetrySoon           passes by itself: try again in seconds
//	 5  NotFound            TreatAsAbsent       it does not exist: create it, or call its deletion done
//	 6  AlreadyExists       Adopt               it exists already: look it up and take it over
//	 7  PermissionDenied    FixCredentials      credentials are refused: tell their owner, try again in minutes
//	 8  ResourceExhausted   WaitForCapacity     quota or capacity is missing: wait long, or place it elsewhere
//	 9  FailedPrecondition  RetryLater          not understood or not ours to repair: try again in minutes
//	10  Aborted             RetrySoon           passes by itself: try again in seconds
//	11  OutOfRange          Investigate         the answer cannot be acted upon: list what is there before any other step
//	12  Unimplemented       TreatAsUnsupported  the provider has no such operation: go on without it
//	13  Internal            RetryLater          not understood or not ours to repair: try again in minutes
//	14  Unavailable         RetrySoon           passes by itself: try again in seconds
//	15  DataLoss            Investigate         the answer cannot be acted upon: list what is there before any other step
//	16  Unauthenticated     FixCredentials      credentials are refused: tell their owner, try again in minutes
//	17  Uninitialized       Initialize          it exists half-made: initialise it
//
// [Table] prints these rows. A code from the future, which this version cannot
// name, is RetryLater: never a reason to go on, never a hot loop.
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
