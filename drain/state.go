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

// State is what a drain remembers between steps. The caller keeps it, in memory or as JSON. A lost
// State costs time, never safety. The zero State is a drain that has not begun. [Step] does not
// change its argument.
type State struct {
	// NodeUID is the UID of the drained Node. If the Node has another UID, the drained Node is gone.
	NodeUID types.UID `json:"nodeUID,omitempty"`
	// Started is the time of the first step that decided.
	Started time.Time `json:"started,omitzero"`
	// CordonedAt is when the cordon was first observed.
	CordonedAt time.Time `json:"cordonedAt,omitzero"`
	// Cordon is the cordon that was observed last.
	Cordon nodeops.Cordon `json:"cordon,omitzero"`
	// CordonedVersion is the resource version of the Node with the cordon. An older Node does not
	// show whether it was uncordoned since.
	CordonedVersion string `json:"cordonedVersion,omitempty"`
	// UnreachableSince is when the Node was first observed as unreachable.
	UnreachableSince time.Time `json:"unreachableSince,omitzero"`
	// Reached and UnreachableReached are the rungs of both ladders that were acted on.
	Reached            []reachedRung `json:"reached,omitempty"`
	UnreachableReached []reachedRung `json:"unreachableReached,omitempty"`
	// Gone is how many pods are gone.
	Gone int `json:"gone,omitempty"`
	// Pods has one entry for each pod, by UID.
	Pods map[types.UID]podState `json:"pods,omitempty"`
	// Responses are the last responses for pods, by UID.
	Responses map[types.UID]response `json:"responses,omitempty"`
	// Volumes has one entry for each volume, by name.
	Volumes map[string]volumeState `json:"volumes,omitempty"`
}

// podState is what a drain remembers about one pod.
type podState struct {
	// Reason is why the last step waited for the pod. Since is when this reason began.
	Reason machinist.Reason `json:"reason,omitempty"`
	Since  time.Time        `json:"since,omitzero"`
	// Waited means that the last step waited for the pod.
	Waited bool `json:"waited,omitempty"`
}

// volumeState is what a drain remembers about one volume of an evicted pod.
type volumeState struct {
	// Reason is why the last step waited for the volume. Since is when this reason began.
	Reason machinist.Reason `json:"reason,omitempty"`
	Since  time.Time        `json:"since,omitzero"`
	// Pod is the evicted pod that uses the volume. Moves means that a controller recreates the pod,
	// so that another Node will use the volume.
	Pod   types.UID `json:"pod,omitempty"`
	Moves bool      `json:"moves,omitempty"`
	// FreeAt is when no pod on the Node used the volume anymore.
	FreeAt time.Time `json:"freeAt,omitzero"`
	// DetachedAt is when the volume was first observed as detached.
	DetachedAt time.Time `json:"detachedAt,omitzero"`
	// Done means that the drain does not wait for the volume anymore.
	Done bool `json:"done,omitempty"`
}

// response is the last response of the API server for one pod.
type response struct {
	// Request is the last request: [Evict], [Delete] or [ForceDelete].
	Request Action `json:"asked,omitempty"`
	// Reason is that of [Result.Response].
	Reason machinist.Reason `json:"reason,omitempty"`
	// Message is the text of the API server.
	Message string `json:"message,omitempty"`
	// Until is when the request may be repeated. A stronger request need not wait.
	Until time.Time `json:"until,omitzero"`
	// Tries is how often in a row the request was refused.
	Tries int `json:"tries,omitempty"`
	// Budgets identifies the PodDisruptionBudgets of the pod and their versions at the time of the
	// request. After a change of them, an eviction that they refused may be repeated at once.
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

// clone returns a copy with its own maps and slices.
func (s State) clone() State {
	s.Pods, s.Responses, s.Volumes = maps.Clone(s.Pods), maps.Clone(s.Responses), maps.Clone(s.Volumes)
	s.Reached, s.UnreachableReached = slices.Clone(s.Reached), slices.Clone(s.UnreachableReached)
	return s
}

// waits returns the state after the decision about the pods of the rows, and sets Row.Since. A
// repeated request continues the wait after its last response.
func (s State) waits(rows []Row, now time.Time) State {
	if s.Pods == nil {
		s.Pods = make(map[types.UID]podState, len(rows))
	}
	seen := make(map[types.UID]struct{}, len(rows))
	for i := range rows {
		row := &rows[i]
		id := row.id()
		if id == "" {
			continue
		}
		pod := s.Pods[id]
		repeats := s.Responses[id].repeatedBy(row.Action) && pod.Reason != ""
		if pod.Reason != row.Reason && !repeats || !recorded.Known(pod.Since, now) {
			pod.Reason, pod.Since = row.Reason, now
		}
		if pod.Waited && row.gone() {
			s.Gone++
		}
		pod.Waited, row.Since = row.Action != Ignore, pod.Since
		s.Pods[id], seen[id] = pod, struct{}{}
	}
	maps.DeleteFunc(s.Responses, func(uid types.UID, _ response) bool {
		_, left := seen[uid]
		return !left
	})
	maps.DeleteFunc(s.Pods, func(uid types.UID, pod podState) bool {
		_, left := seen[uid]
		if !left && pod.Waited {
			s.Gone++
		}
		return !left
	})
	return s
}
