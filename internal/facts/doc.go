// SPDX-License-Identifier: Apache-2.0

// Package facts answers questions about one machine and its Node for the packages machine,
// machineset, deployment and safety: the properties of its phase, whether a Node is its own and
// healthy, what labels and annotations ask for, what another controller has done, whether a change
// matters, and which Events it has.
package facts
