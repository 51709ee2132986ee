// SPDX-License-Identifier: Apache-2.0

// Package deploymenttest plays a MachineDeployment in virtual time.
package deploymenttest
