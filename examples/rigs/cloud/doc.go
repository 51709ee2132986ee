// SPDX-License-Identifier: Apache-2.0

// Package cloud serves a driver over HTTP: [Handler] is the server and [Dial] the client, which
// is a driver again. A simulated cloud in a process of its own survives the restart of the
// controller that uses it, like a real cloud.
//
//	package main
//
//	import (
//		"fmt"
//		"net/http/httptest"
//
//		"github.com/machinist-dev/machinist/driver/drivertest"
//		"github.com/machinist-dev/machinist/examples/rigs/cloud"
//	)
//
//	func main() {
//		server := httptest.NewServer(cloud.Handler(drivertest.NewCloud(drivertest.CloudOptions{})))
//		defer server.Close()
//		driver, err := cloud.Dial(server.URL) // in another process
//		fmt.Println(driver != nil, err)
//	}
//
// # What is transferred
//
// Requests are transferred with the content of their Secrets and the bytes of the provider
// specification. Responses are transferred also with an error. Errors keep their text, codes,
// statuses, waits and context errors, as codes.Of, codes.RetryAfterOf, status.FromError and
// [errors.As] find them. Nil stays nil.
//
// When the caller cancels a call, the context of the driver ends, and the client waits a moment
// for the response. Thus a canceled call has no effect after later calls. The deadline of the
// caller is transferred. The error is Unavailable if the server is down or the response is
// lost. It is Internal if another server answers.
//
// Some values have no JSON form. Times of objects lose fractions of seconds. An error type of
// the driver arrives as its text and codes. Text that is not UTF-8 is kept in an error. In a
// request it is InvalidArgument, and in a response Internal.
//
// # Form
//
//	POST /v1/GetMachineStatus
//	{"Machine": {}, "MachineClass": {}, "Secret": {}}
//
// The body is the JSON of the request, with the field names of package driver. The body of
// status 200 is the JSON of the response. Any other status has
// {"code": "NotFound", "error": {"text": "no such VM"}}, and the response if there is one.
//
// # Limits
//
// There is no encryption and no authentication: [Dial] accepts loopback addresses only. No call
// is repeated. Errors of this package have no content of requests. Errors of the driver are
// passed on without changes.
package cloud
