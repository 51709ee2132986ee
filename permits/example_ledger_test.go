// SPDX-License-Identifier: Apache-2.0

package permits_test

import (
	"fmt"
	"time"

	"github.com/machinist-dev/machinist/permits"
)

// replacer replaces the machines of one pool, one at a time.
type replacer struct {
	ledger   *permits.Ledger
	replaced map[string]bool // as observed
}

// reconcile makes the next step for a machine, and returns when to make another one. Zero means
// that the machine is replaced.
func (r replacer) reconcile(machine string, now time.Time) time.Time {
	if r.replaced[machine] {
		fmt.Println(machine, "is replaced, released:", r.ledger.Release("pool-a", machine, now))
		return time.Time{}
	}
	lease, refusal := r.ledger.Acquire("pool-a", machine, now)
	if refusal != nil {
		fmt.Println(refusal)
		return refusal.RetryAt
	}
	fmt.Println("replace", lease)
	return now.Add(5 * time.Minute) // acquire again before lease.Expires to renew
}

// A controller takes a permit before it replaces a machine, and returns it when the replacement is
// observed.
func ExampleLedger() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	r := replacer{ledger: permits.NewLedger(1, 10*time.Minute), replaced: map[string]bool{}}

	r.reconcile("m-1", now)
	retry := r.reconcile("m-2", now)
	now = now.Add(2 * time.Minute)
	fmt.Println("m-2 again in", retry.Sub(now), "or when m-1 changes")
	r.replaced["m-1"] = true
	r.reconcile("m-1", now)
	r.reconcile("m-2", now)
	// Output:
	// replace "m-1" until 2026-01-01T12:10:00Z
	// no permit for "m-2" under "pool-a": 1 held, limit 1 ("m-1" until 2026-01-01T12:10:00Z); ask again at 2026-01-01T12:10:00Z
	// m-2 again in 8m0s or when m-1 changes
	// m-1 is replaced, released: true
	// replace "m-2" until 2026-01-01T12:12:00Z
}
