// SPDX-License-Identifier: Apache-2.0

// Package cloud puts a process boundary between a driver and those who call it,
// so that a simulated cloud lives on when the controller on it is killed, as a
// real cloud does.
//
// On one side a [driver.Driver], as a rule a drivertest.Cloud, becomes a web
// server; on the other side the server becomes a [driver.Driver] again:
//
//	server := httptest.NewServer(cloud.Handler(drivertest.NewCloud(options))) // here
//
//	d, err := cloud.Dial(url)                                                 // there
//	…
//	response, err := d.GetMachineStatus(ctx, request)
//	switch codes.Of(err) { … }                                                // as if it were here
//
// # What crosses
//
// Everything that a driver is asked and everything that it may say: requests
// with the content of their Secrets and the bytes of the provider
// specification; responses, next to an error too; errors with their texts,
// codes, statuses with message and cause, waiting times, and whether they are
// context errors, in the order in which codes.Of, codes.RetryAfterOf,
// status.FromError and [errors.As] look for them. A request or response that is
// nil arrives as nil.
//
// When a caller gives up, the context of the driver ends, and the call waits a
// moment for its last word, so that nothing takes effect behind the back of later
// calls; a deadline is sent along. What cannot be known is
// Unavailable: that the server is away, or that its answer did not arrive. What
// is not an answer of a [Handler], such as the 404 of another web server, is
// Internal and never taken for an answer.
//
// Not everything has a form in JSON. Fractions of seconds in the times of
// objects are lost. An error type of the driver's own arrives as its text and
// what was said above. A text that is not UTF-8 survives in an error; in a
// request it is InvalidArgument, and in a response Internal.
//
// # The form
//
//	POST /v1/GetMachineStatus
//	{"Machine": {…}, "MachineClass": {…}, "Secret": {…}}
//
// The body is the JSON of the request, of the field names in package driver. An
// answer with status 200 is the JSON of the response. Any other has
// {"code": …, "error": {"text": …}}, and the response that was next to the
// error. ListSideResources and DeleteSideResource are served like methods of the driver.
//
// # What this package does not do
//
// It encrypts nothing and asks nobody who they are: it is for the loopback
// interface, and [Dial] takes no other. It repeats no call. It keeps no log, and nothing that came in a request is in an error of
// its own. A driver's own texts it passes on as they are.
package cloud
