// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"maps"
	"strconv"
	"strings"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// lastAppliedConfig is kept by kubectl for itself.
const lastAppliedConfig = "kubectl.kubernetes.io/last-applied-configuration"

// ownPrefix is that of the keys which are this system's alone: they say something
// about the object that carries them, and about no other.
const ownPrefix = "machinist.dev/"

// ownAnnotation says whether an annotation belongs to one object alone and is
// neither handed down from a deployment to its sets nor back.
func ownAnnotation(key string) bool {
	if strings.HasPrefix(key, ownPrefix) {
		return true
	}
	switch key {
	case lastAppliedConfig,
		v1alpha1.RevisionAnnotation,
		v1alpha1.RevisionHistoryAnnotation,
		v1alpha1.DesiredReplicasAnnotation,
		v1alpha1.MaxReplicasAnnotation,
		v1alpha1.PreferNoScheduleKey,
		v1alpha1.UnfreezeAnnotation,
		v1alpha1.TriggerDeletionByMCM:
		return true
	}
	return false
}

// NewSetAnnotations returns the annotations that the new set of a deployment
// should carry, and whether they are to be written. The input is not modified.
//
// Annotations of the deployment are added, except those which belong to one
// object alone. An empty value is not added to a set that lacks the annotation. None is removed, as in the reference system: an annotation that
// the deployment does not have may have been put on the set by somebody else, and
// nothing tells. The revision is raised, never lowered, and a revision that is
// given up is appended to the history, which forgets the oldest when it grows
// beyond 2000 characters. A set that does not exist yet also gets the two replica
// annotations. If the present revision of the set or the new one is not a number
// nothing is to be written.
func NewSetAnnotations(d *v1alpha1.MachineDeployment, s *v1alpha1.MachineSet, revision string, exists bool) (map[string]string, bool) {
	out := map[string]string{}
	if s != nil {
		maps.Copy(out, s.Annotations)
	}
	if d == nil {
		return out, false
	}
	changed := false
	for k, v := range d.Annotations {
		if !ownAnnotation(k) && out[k] != v {
			out[k], changed = v, true
		}
	}
	present, had := out[v1alpha1.RevisionAnnotation]
	from, ok := parseRevision(present)
	to, err := strconv.ParseInt(revision, 10, 64)
	if !ok || err != nil {
		return out, false
	}
	if from < to {
		out[v1alpha1.RevisionAnnotation], changed = revision, true
		if had {
			out[v1alpha1.RevisionHistoryAnnotation] = appendRevision(out[v1alpha1.RevisionHistoryAnnotation], present)
		}
	}
	if !exists && !sizedForPresent(out, d) {
		maps.Copy(out, replicaAnnotations(d))
		changed = true
	}
	return out, changed
}

// maxHistory is how many characters of former revisions are kept.
const maxHistory = 2000

// appendRevision adds a revision to a history, and drops the oldest ones if it
// grows too long.
func appendRevision(history, revision string) string {
	if history == "" || history[0] == ',' {
		return revision
	}
	history += "," + revision
	for len(history) > maxHistory {
		_, rest, more := strings.Cut(history, ",")
		if !more {
			return revision
		}
		history = rest
	}
	return history
}

// sizedForPresent says whether the annotations name the present replicas.
func sizedForPresent(a map[string]string, d *v1alpha1.MachineDeployment) bool {
	for k, v := range replicaAnnotations(d) {
		if a[k] != v {
			return false
		}
	}
	return true
}

func replicaAnnotations(d *v1alpha1.MachineDeployment) map[string]string {
	return map[string]string{
		v1alpha1.DesiredReplicasAnnotation: strconv.FormatInt(int64(d.Spec.Replicas), 10),
		v1alpha1.MaxReplicasAnnotation:     strconv.FormatInt(int64(d.Spec.Replicas)+int64(MaxSurge(d)), 10),
	}
}

// intAnnotation reads a number of machines from an annotation.
func intAnnotation(s *v1alpha1.MachineSet, key string) (int32, bool) {
	text, ok := s.Annotations[key]
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil
}
