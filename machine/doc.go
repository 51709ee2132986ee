// SPDX-License-Identifier: Apache-2.0

// Package machine decides the next step in the life of one machine: how it
// comes to its VM, joins, is watched, and goes.
//
// [Decide] is a function from what is observed to the one next effect. It has no
// memory. What has to survive a crash stands in the Machine object, and is
// written before anything depends on it; what the provider has answered is a
// [VMView], a plain value that the caller keeps and may lose. The loop around it
// observes, decides and acts, until there is nothing to do:
//
//	for {
//		d := machine.Decide(in, policy, clock.Now())
//		switch a := d.Action.(type) {
//		case nil:
//			return d.NextCheck // ask again then, or when something changes
//		case machine.UpdateMachine:
//			in.Machine, err = machines.Update(ctx, a.Machine, metav1.UpdateOptions{})
//		case machine.UpdateStatus:
//			in.Machine, err = machines.UpdateStatus(ctx, a.Machine, metav1.UpdateOptions{})
//		case machine.CreateVM:
//			r, e := cloud.CreateMachine(ctx, request)
//			in.VM = in.VM.After(machine.FromCreate(r, e), clock.Now(), rand.Float64())
//		… // one case for each Action; default: an error
//		}
//		in.Node = … // of the name that the machine's label says now
//	}
//
// The life of a machine, and what each step waits for:
//
//	guard     the finalizer is added; only then may anything be made
//	intend    "a VM is wanted" is written to status.lastOperation
//	look      the VM is looked for: it may be there from before a crash
//	token     a bootstrap token is made, if the user data has a place for one
//	create    there is no VM: it is asked for
//	record    its identity is written to spec.providerID, once and for ever
//	initialise, where the provider has such a step
//	Pending   the VM exists; the Node has to join within the creation timeout
//	Running   the Node is healthy; or else
//	Unknown   it is not, and has the health timeout to recover; or else
//	Failed    the owner replaces the machine. Of one deployment so many are failed
//	          for bad health at a time as there are permits; see [TakePermit],
//	          with which a controller can also hold machines that all fail at once
//
//	Terminating: the Node is marked and drained, its volumes are detached, the VM
//	is deleted, then the Node, and the finalizer is removed. What is not there is
//	not waited for; but that there is no VM is believed only after the provider
//	had time to show it. A class that is gone is waited for, since no VM can be
//	deleted without it; with the label force-deletion the machine goes all the
//	same, and says that its VM may be left.
//
// Beside all that, a machine can be preserved so that somebody may look at it (see
// [PreserveValue] and [WillPreserve]), and its Node be updated in place (see
// [UpdateCondition]).
//
// Each timeout counts from a time that is written down, and never moves:
//
//	creation       the creation timestamp of the machine
//	health         status.currentStatus.lastUpdateTime, when the phase became Unknown
//	drain          the deletion timestamp; see [DrainNode] for the other drains
//	update         status.currentStatus.lastUpdateTime, of phase InPlaceUpdating
//	preservation   status.currentStatus.preserveExpiryTime is its end
//
// # What wakes it up
//
// [Changed] says which changes matter, so that a caller need not decide at every
// heartbeat; [Drains], whether what happens on its Node does.
//
// # Beside the life
//
// [DecideClass] and [DecideSecret] guard what machines need as long as they need
// it. [Validate] says what keeps a VM from being made for a Machine; a condition of the
// machine says it too, with all that is ignored. [Events] says what of a machine's
// history people should read.
//
// The package does not drain: [DrainNode] says by which policy a Node is drained, and
// package drain decides about its pods. It does not choose which machines exist; that is the
// business of packages machineset and deployment.
package machine
