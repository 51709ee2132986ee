// SPDX-License-Identifier: Apache-2.0

// Package machinesalone tests programs that need a control plane of their own: a machine-controller
// in a cluster that serves only the kinds Machine and MachineClass, and the programs in the
// comments of packages that reconcile one concern of all namespaces.
package machinesalone
