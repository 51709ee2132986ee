// SPDX-License-Identifier: Apache-2.0

// Package codes classifies the errors of machine providers: [Of] returns the [Code] of an error,
// [Code.Category] what the caller should do about it, and [Backoff] how long to wait before the
// next attempt.
//
//	package main
//
//	import (
//		"fmt"
//		"math/rand/v2"
//
//		"github.com/machinist-dev/machinist/codes"
//		"github.com/machinist-dev/machinist/codes/status"
//	)
//
//	func main() {
//		err := status.Error(codes.ResourceExhausted, "no capacity in zone a") // of a driver
//		switch category := codes.Of(err).Category(); category {
//		case codes.Proceed:
//			fmt.Println("done")
//		case codes.TreatAsAbsent:
//			fmt.Println("there is no VM")
//		default:
//			wait := codes.Backoff(codes.BackoffPolicy{}, codes.FailureOf(err, 1), rand.Float64)
//			fmt.Println(category, "try again in", wait)
//		}
//	}
//
// A driver returns a code inside an ordinary error. Package codes/status makes such errors; any
// error with a method Code() codes.Code has one. The code is found through errors that wrap it.
// The text of an error is never read.
//
// # Categories
//
// Each code has one [Category]:
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
// Other codes are RetryLater. Every category but Proceed has a waiting time, for operations
// where its advice does not apply. The caller counts the failures.
package codes
