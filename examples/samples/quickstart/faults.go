// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/drain/draintest"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
)

// breakThings injects random failures of the provider and the API servers.
func (w *world) breakThings() {
	for _, f := range []drivertest.Fault{
		{Probability: 0.05, Kind: drivertest.Refuse, Code: codes.Unavailable},
		{Operation: driver.OpCreateMachine, Probability: 0.05, Kind: drivertest.Refuse, Code: codes.Internal},
		{Operation: driver.OpCreateMachine, Probability: 0.1, Kind: drivertest.LoseResponse, Code: codes.Unavailable},
		{Operation: driver.OpCreateMachine, Probability: 0.1, Kind: drivertest.Partial, Code: codes.Aborted},
		{Operation: driver.OpDeleteMachine, Probability: 0.1, Kind: drivertest.LoseResponse, Code: codes.Unavailable},
		{Operation: driver.OpDeleteMachine, Probability: 0.1, Kind: drivertest.Partial, Code: codes.Aborted},
		{Operation: driver.OpGetMachineStatus, Probability: 0.05, Kind: drivertest.Hang},
	} {
		w.cloud.Inject(f)
	}
	w.control.Inject(apiFaults()...)
	w.target.Inject(apiFaults()...)
}

// apiFaults returns the faults of requests. Lease renewals have none, because a Node whose Lease is
// not renewed becomes Unknown.
func apiFaults() []draintest.Fault {
	faults := []draintest.Fault{
		{Kind: draintest.Conflict, Verb: "update", Probability: 0.05},
		{Kind: draintest.TimeoutAfterEffect, Verb: "create", Probability: 0.03},
		{Kind: draintest.TimeoutAfterEffect, Verb: "update", Probability: 0.03},
		{Kind: draintest.InternalError, Verb: "create", Probability: 0.03},
		{Kind: draintest.InternalError, Verb: "delete", Probability: 0.03},
		{Kind: draintest.TooManyRequests, Verb: "update", Probability: 0.02, RetryAfter: time.Second},
		{Kind: draintest.Unavailable, Verb: "get", Probability: 0.02},
	}
	notLease := func(c draintest.Call) bool { return c.Resource.Resource != "leases" }
	for i := range faults {
		faults[i].Match = notLease
	}
	var dropped time.Time
	return append(faults, draintest.Fault{Kind: draintest.DropWatches, Verb: "update", Match: func(c draintest.Call) bool {
		if !notLease(c) || c.Time.Sub(dropped) < watchTime {
			return false
		}
		dropped = c.Time
		return true
	}})
}

// watchTime is how long watches stay open. On the default clock it is the second of real time after
// which client-go opens a closed watch without a pause.
const watchTime = time.Minute
