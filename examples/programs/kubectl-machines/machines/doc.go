// SPDX-License-Identifier: Apache-2.0

// Package machines has the commands about MachineDeployments and single machines:
//
//	kubectl machines rollout status workers --timeout 30m
//	kubectl machines rollout undo workers --to-revision 2
//	kubectl machines replace workers-5d94c-abcde --timeout 1h
//	kubectl machines retry machinedeployment/workers
//	kubectl machines preserve workers-5d94c-abcde when-failed
//
// Package deployment decides why a rollout waits, which revisions there are, what an undo restores and
// the steps of a replacement.
package machines
