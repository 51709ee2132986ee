// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist/permits"
)

// A reconcile loop asks, does what it may, and comes back when it was told to.
func ExampleLedger() {
	ledger := permits.NewLedger(1, 10*time.Minute)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	replaced := map[string]bool{} // what the world shows

	reconcile := func(machine string) (requeueAt time.Time) {
		if replaced[machine] {
			fmt.Println(machine, "is back:", ledger.Release("pool-a", machine, now))
			return time.Time{}
		}
		lease, refusal := ledger.Acquire("pool-a", machine, now)
		if refusal != nil {
			fmt.Println(refusal)
			return refusal.RetryAt
		}
		fmt.Println("replace", lease)
		return now.Add(5 * time.Minute) // look again, and renew, well before the end
	}

	reconcile("m-1")
	retry := reconcile("m-2")
	now = now.Add(2 * time.Minute)
	fmt.Println("m-2 again in", retry.Sub(now), "or when m-1 changes")
	replaced["m-1"] = true
	reconcile("m-1")
	reconcile("m-2")
	// Output:
	// replace "m-1" until 2026-01-01T12:10:00Z
	// no permit for "m-2" under "pool-a": 1 held, limit 1 ("m-1" until 2026-01-01T12:10:00Z); ask again at 2026-01-01T12:10:00Z
	// m-2 again in 8m0s or when m-1 changes
	// m-1 is back: Released
	// replace "m-2" until 2026-01-01T12:12:00Z
}

// After a restart the ledger is empty, but the world is not.
func ExampleLedger_Adopt() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ledger := permits.NewLedger(1, 10*time.Minute)
	for _, machine := range []string{"m-3", "m-7"} { // seen in progress, more than allowed
		ledger.Adopt(permits.Lease{Key: "pool-a", Holder: machine}, now)
	}

	_, refusal := ledger.Acquire("pool-a", "m-1", now)
	fmt.Println(len(refusal.Holders), "in progress:", refusal.Reason)

	ledger.Release("pool-a", "m-3", now)
	_, refusal = ledger.Acquire("pool-a", "m-1", now)
	fmt.Println(len(refusal.Holders), "in progress:", refusal.Reason)

	ledger.Release("pool-a", "m-7", now)
	_, refusal = ledger.Acquire("pool-a", "m-1", now)
	fmt.Println(refusal)
	// Output:
	// 2 in progress: LimitReached
	// 1 in progress: LimitReached
	// granted
}

// A limit can follow from what is observed: here, a tenth of the pool.
func ExampleLedger_AcquireWithin() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ledger := permits.NewLedger(1, 10*time.Minute)
	for _, machine := range []string{"m-1", "m-2", "m-3"} {
		machinesInPool := 20
		_, refusal := ledger.AcquireWithin(machinesInPool/10, "pool-a", machine, now)
		fmt.Println(machine, refusal)
	}
	// Output:
	// m-1 granted
	// m-2 granted
	// m-3 no permit for "m-3" under "pool-a": 2 held, limit 2 ("m-1" until 2026-01-01T12:10:00Z, "m-2" until 2026-01-01T12:10:00Z); ask again at 2026-01-01T12:10:00Z
}

// Code written against the reference system goes on as it is.
func ExampleNewPermitGiver() {
	giver := permits.NewPermitGiver(time.Hour, 10*time.Minute)
	defer giver.Close()

	failOneMachine := func(deployment string) bool {
		giver.RegisterPermits(deployment, 1)
		if !giver.TryPermit(deployment, time.Second) {
			return false
		}
		defer giver.ReleasePermit(deployment)
		fmt.Println("alone in", deployment, "- anybody else?", giver.TryPermit(deployment, 0))
		return true
	}
	fmt.Println(failOneMachine("pool-a"), failOneMachine("pool-a"))
	// Output:
	// alone in pool-a - anybody else? false
	// alone in pool-a - anybody else? false
	// true true
}
