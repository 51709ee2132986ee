// SPDX-License-Identifier: Apache-2.0

// Package permits decides who may be disrupted now.
//
// A permit is a [Lease]: it has a key (what is being protected: a pool, a zone,
// a service), a holder (who is being disrupted: a machine, a node) and an end. A
// [Ledger] hands leases out, at most a fixed number per key at any time. In a
// reconcile loop:
//
//	lease, refusal := ledger.Acquire(pool, machine, now)
//	if refusal != nil {
//		report(refusal.String())           // who has the permits, and until when
//		requeueAt(refusal.RetryAt)         // zero: wait for a release
//		return
//	}
//	disrupt(machine, lease)                // repeat the loop; asking again renews
//	…
//	ledger.Release(pool, machine, now)     // once the disruption is *seen* to be over
//
// Because the holder is named, asking twice is the same as asking once, and a
// release can only ever end the holder's own lease, however late or often it
// comes. Because a lease ends by itself, a holder that died blocks nobody for
// ever. Because a refusal is data, nobody has to block a worker to wait.
//
// # What a lease is for
//
// A component that counts what is disrupted in its cache, and then disrupts one
// more, counts too low while the cache is behind its own writes. A lease stands
// for exactly that disruption which cannot be seen yet. So it is released by the
// observation that shows the end of the disruption, not by the end of a call.
//
// A Ledger lives in memory and may be lost at any time. A new one learns what it
// has to know from the world: call [Ledger.Adopt] once for every disruption that
// is seen to be in progress, before anything is acquired. Adopting counts what is
// there even if it is more than the limit. [Ledger.Leases] is the content as a
// plain, serialisable value, to show or to keep.
//
// # The blocking form
//
// [PermitGiver] is the interface of the reference system over the same book-keeping,
// for programs which already wait for permits. Its permits have no holder, so it
// cannot tell whose permit a release ends; new code is better served by a Ledger.
//
// # What this package does not do
//
// It does not elect leaders or talk to anybody: a Ledger counts inside one
// process. It does not decide how large a limit is, and it limits how many are
// disrupted at the same time, which is not a rate. Both have a place beside the
// Ledger, not inside it:
//
//   - A budget (a number or a percentage of an observed population, less those who
//     are unavailable anyway) is a pure function from a population to a limit. Its
//     result goes into [Ledger.AcquireWithin], which takes the limit with each call.
//   - A rate ("two per hour") or a spacing is a pure step over a log of past grants,
//     which the caller keeps. It is asked before Acquire. A grant belongs in the log
//     once, under its holder and Since; renewing changes neither.
//   - Several keys at once (pool and zone) are acquired one after the other, in a
//     fixed order; if one of them refuses, those that are new are released again.
package permits
