// SPDX-License-Identifier: Apache-2.0

// Package runner takes permits that hold between processes: a [Lock] stores a ledger of package
// permits in one Lease object. [Lock.Run] waits for a permit and renews it while a program works, and
// [Lock.Release] returns it. This is the core of a daemon that reboots one Node of a group at a time:
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"time"
//
//		"k8s.io/client-go/kubernetes/fake"
//
//		"github.com/machinist-dev/machinist/permits"
//		"github.com/machinist-dev/machinist/permits/runner"
//	)
//
//	func main() {
//		ctx, client := context.Background(), fake.NewClientset() // use kubernetes.NewForConfig
//		lock := &runner.Lock{
//			Leases: client.CoordinationV1().Leases("kube-system"), Name: "reboot", Holder: "node-1",
//			Policy:  permits.Policy{Limit: 1, TTL: 20 * time.Second}, // use more than a reboot takes
//			Waiting: func(err error) { fmt.Println(err) },            // which Nodes have the permits, until when
//		}
//		err := lock.Run(ctx, func(ctx context.Context) error {
//			fmt.Println("drain and reboot") // until ctx ends
//			return nil
//		})
//		fmt.Println(err)
//		fmt.Println(lock.Release(ctx)) // in the process after the reboot
//	}
//
// After a crash or a reboot, a process with the same Holder has its permit back at once. If there is
// none, others get the permit at the end of the lease. The first permit of a new object is granted
// after the TTL: a new object looks like one that was deleted while permits were held.
//
// # Clocks
//
// The end of a lease is written in the object. No two processes have one permit as long as no two
// clocks differ by more than [permits.Policy].MaxSkew, and programs stop when their context ends. A
// process whose clock is behind the last write by more than that gets no permit. A process that was
// paused notices the end of its lease when it continues.
//
// Leader election of client-go has a holder wait from its own first look at a lease instead. That
// needs no bound, but a process that has just started would wait for the TTL after each crash, and
// the object could not say when a permit ends.
//
// # Objects that were edited or restored
//
// An edited ledger is [permits.ErrUnreadable]. An object that was deleted, or restored under another
// UID, grants no permit until all permits from before have ended. So does one that is older than what
// a process has read, such as that of a restored etcd. A process that has read nothing since cannot
// know that: delete the object after such a restoration.
package runner
