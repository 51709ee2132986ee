// SPDX-License-Identifier: Apache-2.0

// Package status makes the errors with which a driver answers, and reads them
// back.
//
// A [Status] is an ordinary Go error with a code, a message for people, and
// perhaps a cause:
//
//	func (d *Driver) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
//		err := d.cloud.Terminate(ctx, req.Machine.Name)
//		if d.cloud.IsMissing(err) {
//			return nil, status.WrapError(codes.NotFound, "no such instance", err)
//		}
//		…
//	}
//
// It may be wrapped with %w and joined with others. Who only wants the code asks
// codes.Of; who wants the message and the cause asks [FromError] or [errors.As].
//
// # Text
//
// The text of a Status is
//
//	machine codes error: code = [NotFound] message = [no such instance]
//
// and is stable, because other programs store and compare it. It carries neither
// the cause nor, once it stands inside a longer text, a reliable end. Codes are
// therefore taken from the type of an error. Only for an error that has lost its
// type does FromError read the text, in exactly this form.
//
// # What it does not do
//
// It does not say what a code means for the caller (codes.Category does), and it
// does not classify the errors of any cloud.
package status
