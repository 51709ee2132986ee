// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist/permits"
)

// After a restart, a new ledger adopts the disruptions in progress.
func ExampleLedger_Adopt() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ledger := permits.NewLedger(1, 10*time.Minute)
	for _, machine := range []string{"m-3", "m-7"} { // in progress, more than the limit
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

// The limit is a tenth of the machines in the pool.
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

// Nodes are rebooted in the nights after Mondays and Fridays.
func ExampleWindow() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	nights := permits.Window{
		Days: []time.Weekday{time.Monday, time.Friday}, Start: 22 * time.Hour, Length: 6 * time.Hour, Location: berlin,
	}
	friday := time.Date(2026, 3, 27, 23, 0, 0, 0, berlin)
	fmt.Println(nights.Opens(friday))
	fmt.Println(nights.Opens(friday.Add(6 * time.Hour)))
	// Output:
	// 2026-03-27 23:00:00 +0100 CET
	// 2026-03-30 22:00:00 +0200 CEST
}
