// SPDX-License-Identifier: Apache-2.0

// Package machinesalone tests a machine-controller in a cluster that serves only the kinds
// Machine and MachineClass. It has a control plane of its own, as the definitions of the other
// kinds are installed in all others.
package machinesalone
