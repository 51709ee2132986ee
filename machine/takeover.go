// SPDX-License-Identifier: Apache-2.0

package machine

// takenOver is what the reference system had done of a deletion when it stopped.
type takenOver struct{ drained, vmDeleted bool }
