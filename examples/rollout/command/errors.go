// SPDX-License-Identifier: Apache-2.0

package command

// notUpError is the error of a deployment that does not become complete before its rollout.
type notUpError struct{ why string }

func (e *notUpError) Error() string {
	return "the deployment does not become complete before its rollout: " + e.why
}
