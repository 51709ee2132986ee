// SPDX-License-Identifier: Apache-2.0

// Package facts answers questions about one machine and its Node for the packages machine,
// machineset, deployment and safety: the properties of its phase, whether a Node is its own, and
// what the annotations and labels of the Node ask for.
package facts
