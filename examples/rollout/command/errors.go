// SPDX-License-Identifier: Apache-2.0

package command

// notUpError says that the deployment could not be brought up before its roll-out.
type notUpError struct{ why string }

func (e *notUpError) Error() string {
	return "the deployment does not come up, so there is nothing to roll out: " + e.why
}
