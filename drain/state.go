// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/internal/recorded"
	"github.com/machinist-dev/machinist/nodeops"
)

// State is what a drain remembers from one step to the next: a plain value that
// the caller keeps, in memory or as JSON. Losing it costs time, never safety. The
// zero State is a drain that has not begun. A [Step] never changes the state that
// it is given.
type State struct {
	// NodeUID is that of the Node which is drained. A Node that took its name later is
	// another one, and the drained one is gone.
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// Started is the time of the first step that could decide.
	Started time.Time `json:"started,omitzero"`
	// CordonedAt is when the cordon was first seen to stand.
	CordonedAt time.Time `json:"cordonedAt,omitzero"`
	// Cordon is the one that stood last.
	Cordon nodeops.Cordon `json:"cordon,omitzero"`
	// CordonedVersion is the resource version of the Node with it. An older Node does not show
	// whether the cordon was taken away since.
	CordonedVersion string `json:"cordonedVersion,omitempty"`
	// UnreachableSince is when the Node was first seen unreachable.
	UnreachableSince time.Time `json:"unreachableSince,omitzero"`
	// Reached are the rungs that were acted on, of the ladder and of that of
	// unreachable Nodes.
	Reached            []Reached `json:"reached,omitempty"`
	UnreachableReached []Reached `json:"unreachableReached,omitempty"`
	// Gone is how many pods have gone that were waited for.
	Gone int `json:"gone,omitempty"`
	// Pods is what is remembered of each, by UID.
	Pods map[types.UID]PodState `json:"pods,omitempty"`
	// Responses is what the API server last said about those that were asked to go, by
	// UID.
	Responses map[types.UID]Response `json:"responses,omitempty"`
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
}

// VolumeState is what a drain remembers of one volume of a pod that goes.
type VolumeState struct {
	// Reason is why it was waited for in the last step, Since since when.
	Reason machinist.Reason `json:"reason,omitempty"`
	Since  time.Time        `json:"since,omitzero"`
	// Pod is the one that went, or is to go, and uses it. Moves says that a controller will
	// create the pod again, so that the volume will be used on another Node.
	Pod   types.UID `json:"pod,omitempty"`
	Moves bool      `json:"moves,omitempty"`
	// FreeAt is when nothing on the Node was left that uses it.
	FreeAt time.Time `json:"freeAt,omitzero"`
	// DetachedAt is when it was first seen detached from the Node.
	DetachedAt time.Time `json:"detachedAt,omitzero"`
	// Done says that it is not waited for any more.
	Done bool `json:"done,omitempty"`
}

// Response is what the API server last said about one pod.
type Response struct {
	// Asked is the request: [Evict], [Delete] or [ForceDelete].
	Asked Action `json:"asked,omitempty"`
	// Reason is what it came to: [ReasonTerminating] if the request was accepted.
	Reason machinist.Reason `json:"reason,omitempty"`
	// Message is what the API server said, in words for people.
	Message string `json:"message,omitempty"`
	// Until is when the request may be repeated. A stronger one need not wait.
	Until time.Time `json:"until,omitzero"`
	// Tries is how often in a row the request was refused.
	Tries int `json:"tries,omitempty"`
	// Budgets identifies the budgets of the pod, and their versions, when it was
	// asked: if they refused and change, the request may be repeated at once.
	Budgets string `json:"budgets,omitempty"`
}

// VolumesUnderWay returns the PersistentVolumes that the drain still waits for, in order.
func (s State) VolumesUnderWay() []string {
	var volumes []string
	for name, volume := range s.Volumes {
		if !volume.Done && !strings.Contains(name, "/") {
			volumes = append(volumes, name)
		}
	}
	slices.Sort(volumes)
	return volumes
}

// Cordoned returns the state of a drain whose cordon was set just now. The Node is the one that
// the API server returned; nil changes nothing.
func (s State) Cordoned(node *corev1.Node, p Policy, now time.Time) State {
	if node == nil {
		return s
	}
	s.Cordon, s.CordonedVersion = p.baseCordon(), node.ResourceVersion
	if !recorded.Known(s.CordonedAt, now) {
		s.CordonedAt = now
	}
	return s
}

// clone returns a copy whose maps and slices belong to it.
func (s State) clone() State {
	s.Pods, s.Responses, s.Volumes = maps.Clone(s.Pods), maps.Clone(s.Responses), maps.Clone(s.Volumes)
	s.Reached, s.UnreachableReached = slices.Clone(s.Reached), slices.Clone(s.UnreachableReached)
	return s
}

// waits returns the state after the decision about the pods of these rows. It fills since
// when each row has its reason.
func (s State) waits(rows []Row, now time.Time) State {
	if s.Pods == nil {
		s.Pods = make(map[types.UID]PodState, len(rows))
	}
	seen := make(map[types.UID]struct{}, len(rows))
	for i := range rows {
		row := &rows[i]
		if row.UID == "" {
			continue
		}
		pod := s.Pods[row.UID]
		if pod.Reason != row.Reason || !recorded.Known(pod.Since, now) {
			pod.Reason, pod.Since = row.Reason, now
		}
		if pod.Waited && row.gone() {
			s.Gone++
		}
		pod.Waited, row.Since = row.Action != Ignore, pod.Since
		s.Pods[row.UID], seen[row.UID] = pod, struct{}{}
	}
	maps.DeleteFunc(s.Responses, func(uid types.UID, _ Response) bool {
		_, left := seen[uid]
		return !left
	})
	maps.DeleteFunc(s.Pods, func(uid types.UID, pod PodState) bool {
		_, left := seen[uid]
		if !left && pod.Waited {
			s.Gone++
		}
		return !left
	})
	return s
}
