// SPDX-License-Identifier: Apache-2.0

package drain

// The types of the fields of State.
type (
	PodState    = podState
	VolumeState = volumeState
	ReachedRung = reachedRung
	Response    = response
)
