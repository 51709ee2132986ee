// SPDX-License-Identifier: Apache-2.0

// Package drain decides how a Node is emptied of its pods: which of them are asked
// to go now, and how, which are left alone, what the rest waits for, and what happens
// if the waiting takes too long.
//
// [Step] is a function: from what is remembered of the drain, what is observed, a
// policy and the time to a [Decision], with one row for each pod. It waits for nothing: a
// wait is a row that says what it is for, since when, and what comes next. [Decide] is
// the first step, and so the dry run. Package drain/runner carries decisions out, for a
// controller with a queue or for a tool that waits for the end.
//
// # What the policy says
//
// The zero [Policy] is the safe one: the Node is cordoned, pods keep their own grace,
// budgets are respected for ever, and pods that nobody would bring back, or that
// would lose local data, stay and say so, as kubectl drain does. [Rule] treats pods
// differently, as code or as data. A [Ladder] says when and how a drain escalates;
// the empty one never does. [VolumePolicy] says what is waited for after the pods.
//
// # What is observed
//
// Only the Node and its pods are necessary. Every other source of an [Observation] is
// optional, and what it would have said is then listed as not evaluated, which is not
// the same as nothing. Lists are plain slices; package drain/runner fills them, from informers or from the API server.
//
// # What is remembered
//
// [State] is a small value that the caller keeps, in memory or as JSON: since when
// things wait, what the API server answered, which rungs were reached. Losing it costs
// time, never safety.
//
// # What it is careful about
//
// A pod is a namespace, a name and a UID. Every request carries the UID, so that a
// successor of the same name is never meant. An accepted eviction is not a pod that has
// gone: a drain is [Drained] only when every pod that was to go has gone and the Node
// is cordoned. A deadline, a refusal or the end of a context never looks like that.
// The cordon has owners, see [nodeops.Cordon].
//
// The package does not decide whether a Node may be drained now, as package permits
// does, nor what becomes of its machine.
package drain
