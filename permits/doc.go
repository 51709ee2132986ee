// SPDX-License-Identifier: Apache-2.0

// Package permits limits how many machines or Nodes are disrupted at the same time. A
// [Ledger] grants at most a fixed number of [Lease] values per key: see [NewLedger],
// [Ledger.Acquire] and [Ledger.Release].
//
//	package main
//
//	import (
//		"fmt"
//		"time"
//
//		"github.com/machinist-dev/machinist/permits"
//	)
//
//	func main() {
//		ledger := permits.NewLedger(1, 10*time.Minute)
//		now := time.Now()
//		lease, refusal := ledger.Acquire("pool-a", "machine-1", now)
//		if refusal != nil {
//			fmt.Println(refusal) // says who holds the permits; try again at refusal.RetryAt
//			return
//		}
//		fmt.Println("replace", lease.Holder)       // acquire again before lease.Expires to renew
//		ledger.Release("pool-a", "machine-1", now) // when the replacement is observed
//	}
//
// A key is what is protected: a pool, a zone, a service. A holder is what is disrupted: a
// machine, a Node. A holder that acquires twice renews its lease and uses one permit. A
// release ends the lease of its own holder only, so it may be repeated. A lease expires, so
// that a holder which crashed blocks its permit for a limited time.
//
// # When to release
//
// A controller that counts disruptions in its cache counts too few while the cache does not
// show its last writes. A lease stands for such a disruption. Release it when the end of the
// disruption is observed, not when a call returns.
//
// # After a restart
//
// A Ledger is in memory and may be lost at any time. Call [Ledger.Adopt] once for every
// disruption in progress before anything is acquired. Adopted leases count even if they are
// more than the limit. [Ledger.Leases] returns the content as plain values.
//
// # Limits that change
//
// [Ledger.AcquireWithin] takes the limit as an argument, for a percentage of a pool. To
// acquire several keys, acquire them in a fixed order, and release the new ones if one is
// refused. A Ledger limits how many are disrupted at the same time. It does not limit a rate.
//
// # Several processes
//
// A Ledger counts within one process. [Stored] is a ledger in an object that several processes
// write, with a [Policy] that also has a [Window] of time. Package permits/runner keeps it in a Lease
// of the API server.
package permits
