// SPDX-License-Identifier: Apache-2.0

// Package explain says what machines wait for: [View.Tree] is the tree of deployments, sets, machines,
// Nodes and pods, and [View.Explain] is what the controller decides about one object. Both need only the
// rights to read, or a dump of the objects:
//
//	view, err := explain.Dump(ctx, "dump.yaml", "", time.Time{}) // kubectl get machines,nodes,pods,… -A -o yaml >dump.yaml
//	report, err := view.Explain(ctx, "machine/workers-7d9f-x2k4p")
//	fmt.Println(report)
//
// The objects are read by the Observe functions of the runners, and decided by the packages of the SDK.
// So the text is that of the controller's log. What a controller only has in memory is not known: it is
// said where it matters, and never guessed.
package explain
