// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

// Answer returns the response and the error of a call of a driver. It returns an error with the code
// Internal if both are nil: such a call says neither that it succeeded nor what it found. An empty
// response is an answer.
func Answer[R any](response *R, err error) (*R, error) {
	if response == nil && err == nil {
		err = status.Error(codes.Internal, "the driver returned neither a response nor an error")
	}
	return response, err
}
