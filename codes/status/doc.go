// SPDX-License-Identifier: Apache-2.0

// Package status makes the errors that drivers return, and reads them: [Error] and [WrapError]
// return an error with a code, and [FromError] returns the [Status] in an error.
//
//	package main
//
//	import (
//		"errors"
//		"fmt"
//
//		"github.com/machinist-dev/machinist/codes"
//		"github.com/machinist-dev/machinist/codes/status"
//	)
//
//	func main() {
//		err := status.WrapError(codes.NotFound, "there is no instance vm-1", errors.New("404"))
//		fmt.Println(err)           // machine codes error: code = [NotFound] message = [there is no instance vm-1]
//		fmt.Println(codes.Of(err)) // NotFound
//		s, ok := status.FromError(fmt.Errorf("delete: %w", err))
//		fmt.Println(s.Message(), s.Cause(), ok)
//	}
//
// A Status is an ordinary error: it can be wrapped with %w, joined, and found with [errors.As].
// Its text is stable, because other programs store and compare it. The text does not have the
// cause. [FromError] reads a text only if the error has no code, and only if the whole text has
// this form.
package status
