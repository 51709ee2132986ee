// SPDX-License-Identifier: Apache-2.0

// Package simulation has the command simulate, which plays the rollout of a MachineDeployment in virtual
// time:
//
//	kubectl machines simulate -f deployment.yaml
//	kubectl machines simulate workers --live
//
// The flags become a model of package deploymenttest, in which package deployment decides. Each
// time at which something changes becomes a [Frame]. The frames are printed as a table, as a
// picture, or as a [Document] in JSON.
package simulation
