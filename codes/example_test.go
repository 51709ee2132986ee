// SPDX-License-Identifier: Apache-2.0

package codes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

// An error keeps its code when it is wrapped. A switch over the categories decides what is
// done next.
func Example() {
	err := fmt.Errorf("machine m-1: %w", status.Error(codes.ResourceExhausted, "no m5.large in eu-1a"))

	switch codes.Of(err).Category() {
	case codes.Proceed:
		fmt.Println("record the machine")
	case codes.WaitForCapacity:
		failure := codes.FailureOf(err, 1)
		fmt.Println("try another zone, or this one in", codes.Backoff(codes.BackoffPolicy{}, failure, nil))
	default:
		fmt.Println("wait")
	}
	// Output: try another zone, or this one in 10m0s
}

func ExampleOf() {
	notFound := status.Error(codes.NotFound, "no such instance")

	fmt.Println(codes.Of(nil))
	fmt.Println(codes.Of(fmt.Errorf("deleting: %w", notFound)))
	fmt.Println(codes.Of(fmt.Errorf("deleting: %w", context.DeadlineExceeded)))
	fmt.Println(codes.Of(errors.Join(context.Canceled, notFound)))
	fmt.Println(codes.Of(errors.New(notFound.Error()))) // the text does not count
	// Output:
	// OK
	// NotFound
	// DeadlineExceeded
	// NotFound
	// Unknown
}

// Waits grow with the number of failures. A provider may request a longer one.
func ExampleBackoff() {
	var policy codes.BackoffPolicy // the default
	err := status.Error(codes.Unavailable, "try later")

	for failures := 1; failures <= 4; failures++ {
		fmt.Println(codes.Backoff(policy, codes.FailureOf(err, failures), nil))
	}
	err = codes.WithRetryAfter(err, 90*time.Second)
	fmt.Println(codes.Backoff(policy, codes.FailureOf(err, 1), nil))
	// Output:
	// 5s
	// 10s
	// 20s
	// 40s
	// 1m30s
}

// The table of the default policy.
func ExampleBackoffPolicy_Table() {
	fmt.Print(codes.BackoffPolicy{}.Table())
	// Output:
	// RetryLater         3m0s   6m0s  10m0s  10m0s  10m0s  10m0s  10m0s  10m0s
	// RetrySoon            5s    10s    20s    40s  1m20s  2m40s   3m0s   3m0s
	// WaitForCapacity   10m0s  10m0s  10m0s  10m0s  10m0s  10m0s  10m0s  10m0s
}

func ExampleWithRetryAfter() {
	err := codes.WithRetryAfter(status.Error(codes.Unavailable, "rate exceeded"), 30*time.Second)
	fmt.Println(err)
	fmt.Println(codes.Of(err), codes.RetryAfterOf(err))
	// Output:
	// machine codes error: code = [Unavailable] message = [rate exceeded]
	// Unavailable 30s
}
