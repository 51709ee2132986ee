// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
)

// A driver returns a code and keeps the error of the cloud as cause.
func Example() {
	errMissing := errors.New("InvalidInstanceID.NotFound")
	err := fmt.Errorf("machine m-1: %w", status.WrapError(codes.NotFound, "no such instance", errMissing))

	fmt.Println(err)
	fmt.Println(codes.Of(err), errors.Is(err, errMissing))
	// Output:
	// machine m-1: machine codes error: code = [NotFound] message = [no such instance]
	// NotFound true
}

func ExampleError() {
	fmt.Println(status.Error(codes.InvalidArgument, "unknown zone [eu-9]"))
	fmt.Println(status.Error(codes.OK, "all is well"))
	// Output:
	// machine codes error: code = [InvalidArgument] message = [unknown zone [eu-9]]
	// <nil>
}

func ExampleFromError() {
	typed := fmt.Errorf("[eu-1] %w [request 4711]", status.Error(codes.ResourceExhausted, "quota"))
	text := errors.New("machine m-1: machine codes error: code = [NotFound] message = [gone]")
	foreign := errors.New("user input [NotFound] said [boom]")

	for _, err := range []error{typed, text, foreign} {
		s, ok := status.FromError(err)
		fmt.Println(s.Code(), ok, s.Message())
	}
	// Output:
	// ResourceExhausted true quota
	// NotFound true gone
	// Unknown false user input [NotFound] said [boom]
}

func ExampleStatus_MarshalJSON() {
	s, _ := status.FromError(status.WrapError(codes.Unavailable, "try later", errors.New("503")))
	data, err := json.Marshal(s)
	fmt.Println(string(data), err)

	var back status.Status
	err = json.Unmarshal(data, &back)
	fmt.Println(back.Code(), back.Message(), back.Cause(), err)
	// Output:
	// {"code":"Unavailable","number":14,"message":"try later","cause":"503"} <nil>
	// Unavailable try later 503 <nil>
}
