// SPDX-License-Identifier: Apache-2.0

package safety

// Answered is tested by itself.
var Answered = answered

// Reasons that only the tests compare.
const (
	NoMachine          = noMachine
	SecondVM           = secondVM
	Leftover           = leftover
	WaitingForGrace    = waitingForGrace
	DeletionProposed   = deletionProposed
	ReportOnly         = reportOnly
	RateLimited        = rateLimited
	Unidentified       = unidentified
	InDoubt            = inDoubt
	NodeWithoutVM      = nodeWithoutVM
	Unsupported        = unsupported
	ListingUnusable    = listingUnusable
	MachinesUnusable   = machinesUnusable
	Suspicious         = suspicious
	Overshooting       = overshooting
	ReplacementsSlowed = replacementsSlowed
)
