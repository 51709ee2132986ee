// SPDX-License-Identifier: Apache-2.0

// Package nodetools tests the programs of examples/samples/nodetools, each with the rights of its ClusterRole, on a
// control plane whose Nodes are kubelets.
package nodetools
