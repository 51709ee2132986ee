// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/nodeops"
)

// State is what a drain remembers from one step to the next: a plain value that
// the caller keeps, in memory or as JSON. Losing it costs time, never safety. The
// zero State is a drain that has not begun. A [Step] never changes the state that
// it is given.
type State struct {
	// NodeUID is that of the Node which is drained. One that took its name later is
	// another, and the drained one is gone.
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// Started is the time of the first step that could plan.
	Started time.Time `json:"started,omitzero"`
	// FencedAt is when the fence was first seen to stand.
	FencedAt time.Time `json:"fencedAt,omitzero"`
	// Fence is the one that stood last.
	Fence nodeops.Fence `json:"fence,omitzero"`
	// FencedVersion is the resource version of the Node with it. An older Node does not show
	// whether the fence was taken away since.
	FencedVersion string `json:"fencedVersion,omitempty"`
	// UnreachableSince is when the Node was first seen unreachable or off.
	UnreachableSince time.Time `json:"unreachableSince,omitzero"`
	// Reached are the rungs that were acted on, of the ladder and of that of
	// unreachable Nodes.
	Reached            []Reached `json:"reached,omitempty"`
	UnreachableReached []Reached `json:"unreachableReached,omitempty"`
	// Wave is the one that holds the later ones, WaveSince since when. WaveLate says
	// that it began though pods of earlier ones were left, since their time was over.
	Wave      int32     `json:"wave,omitempty"`
	WaveSince time.Time `json:"waveSince,omitzero"`
	WaveLate  bool      `json:"waveLate,omitempty"`
	// Gone is how many pods have gone that were waited for.
	Gone int `json:"gone,omitempty"`
	// Pods is what is remembered of each, by UID.
	Pods map[types.UID]PodState `json:"pods,omitempty"`
	// Answers is what the API server last said about those that were asked to go, by
	// UID.
	Answers map[types.UID]Answer `json:"answers,omitempty"`
	// Volumes is what is remembered of each, by name.
	Volumes map[string]VolumeState `json:"volumes,omitempty"`
}

// PodState is what a drain remembers of one pod.
type PodState struct {
	// Reason is why it was waited for in the last step, Since since when.
	Reason machinist.Reason `json:"reason,omitempty"`
	Since  time.Time        `json:"since,omitzero"`
	// Waited says that it was waited for in the last step.
	Waited bool `json:"waited,omitempty"`
	// Volumes are the names of the persistent volumes that it uses.
	Volumes []string `json:"volumes,omitempty"`
}

// VolumeState is what a drain remembers of one volume of a pod that goes.
type VolumeState struct {
	// Reason is why it was waited for in the last step, Since since when.
	Reason machinist.Reason `json:"reason,omitempty"`
	Since  time.Time        `json:"since,omitzero"`
	// Pod is the one that went, or is to go, and uses it. Moves says that it will be
	// made again, and will use it elsewhere.
	Pod   types.UID `json:"pod,omitempty"`
	Moves bool      `json:"moves,omitempty"`
	// FreeAt is when nothing on the Node was left that uses it.
	FreeAt time.Time `json:"freeAt,omitzero"`
	// DetachedAt is when it was first seen detached from the Node.
	DetachedAt time.Time `json:"detachedAt,omitzero"`
	// Done says that it is not waited for any more.
	Done bool `json:"done,omitempty"`
}

// VolumesUnderWay returns the PersistentVolumes that the drain still waits for, in order.
func (s State) VolumesUnderWay() []string {
	var volumes []string
	for name, volume := range s.Volumes {
		if !volume.Done && !isUnique(name) {
			volumes = append(volumes, name)
		}
	}
	for _, pod := range s.Pods {
		volumes = append(volumes, pod.Volumes...)
	}
	slices.Sort(volumes)
	return slices.Compact(volumes)
}
