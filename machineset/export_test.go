// SPDX-License-Identifier: Apache-2.0

package machineset

// Reasons that only the tests compare.
const (
	ReasonTooMany          = reasonTooMany
	ReasonMarked           = reasonMarked
	ReasonFailed           = reasonFailed
	ReasonPreservationOver = reasonPreservationOver
	ReasonLimited          = reasonLimited
	ReasonNotSeen          = reasonNotSeen
	ReasonNodeReadyAgain   = reasonNodeReadyAgain
	ReasonSettling         = reasonSettling
	ReasonSettled          = reasonSettled
)

// Validate is what Decide and Claim ask first.
var Validate = validate
