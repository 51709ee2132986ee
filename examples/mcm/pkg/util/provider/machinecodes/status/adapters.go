// SPDX-License-Identifier: Apache-2.0

package status

import (
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

// WrapError is [status.WrapError] with the type that it has in MCM. It is nil for the code OK. Do not assign it to an
// error without a check for nil.
func WrapError(code codes.Code, msg string, cause error) *status.Status {
	s, _ := status.FromError(status.WrapError(code, msg, cause))
	return s
}
