// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// ByCreation returns the sets that are not nil, oldest first.
func ByCreation(sets []*v1alpha1.MachineSet) []*v1alpha1.MachineSet {
	out := make([]*v1alpha1.MachineSet, 0, len(sets))
	for _, s := range sets {
		if s != nil {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, Older)
	return out
}

// Older compares two sets by creation time, name and UID.
func Older(a, b *v1alpha1.MachineSet) int {
	return cmp.Or(
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
	)
}

// Active returns the sets with replicas, in the same order.
func Active(sets []*v1alpha1.MachineSet) []*v1alpha1.MachineSet {
	var out []*v1alpha1.MachineSet
	for _, s := range sets {
		if s != nil && s.Spec.Replicas > 0 {
			out = append(out, s)
		}
	}
	return out
}

// lastAppliedConfig is an annotation of kubectl.
const lastAppliedConfig = "kubectl.kubernetes.io/last-applied-configuration"

// ownPrefix is the prefix of annotations of this module. They belong to one object.
const ownPrefix = "machinist.dev/"

// OwnAnnotation reports whether an annotation belongs to one object, so that it is copied neither
// from a deployment to its sets nor back.
func OwnAnnotation(key string) bool {
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

// NewSetAnnotations returns the annotations of the new set of a deployment, and whether they differ
// from the present ones. It does not modify its arguments.
//
// The annotations of the deployment are added, except those that belong to one object. An empty
// value does not add an annotation. None is removed, as in MCM, because another client may have set
// it. The revision never decreases. A former revision is appended to the history, which loses its
// oldest entries above 2000 characters. A set that does not exist yet gets the annotations with the
// replicas.
//
// If the present or the new revision is not a number, the result is false.
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
		if !OwnAnnotation(k) && out[k] != v {
			out[k], changed = v, true
		}
	}
	present, had := out[v1alpha1.RevisionAnnotation]
	from, ok := ParseRevision(present)
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
	if !exists && !SizedForPresent(out, d) {
		maps.Copy(out, ReplicaAnnotations(d))
		changed = true
	}
	return out, changed
}

// maxHistory is the maximum length of the history of revisions, in characters.
const maxHistory = 2000

// appendRevision appends a revision to a history, and removes the oldest ones if it becomes too
// long.
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

// SizedForPresent reports whether the annotations of a set have the present replicas and maximum of
// the deployment.
func SizedForPresent(a map[string]string, d *v1alpha1.MachineDeployment) bool {
	for k, v := range ReplicaAnnotations(d) {
		if a[k] != v {
			return false
		}
	}
	return true
}

// ReplicaAnnotations returns the annotations of a set with the replicas and the maximum of its deployment.
func ReplicaAnnotations(d *v1alpha1.MachineDeployment) map[string]string {
	b, _ := LimitsOf(d) // bounds that cannot be read allow no machine more
	return map[string]string{
		v1alpha1.DesiredReplicasAnnotation: strconv.FormatInt(int64(d.Spec.Replicas), 10),
		v1alpha1.MaxReplicasAnnotation:     strconv.FormatInt(b.Most(), 10),
	}
}

// IntAnnotation returns the number in an annotation, and whether there is one.
func IntAnnotation(s *v1alpha1.MachineSet, key string) (int32, bool) {
	text, ok := s.Annotations[key]
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil
}

// ParseRevision returns the number of a revision, and whether it is one. An empty text is 0.
func ParseRevision(text string) (int64, bool) {
	if text == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// TopRevisions returns the two highest revisions of the sets, or 0.
func TopRevisions(sets []*v1alpha1.MachineSet) (highest, second int64) {
	for _, s := range sets {
		if s == nil {
			continue
		}
		n, ok := ParseRevision(s.Annotations[v1alpha1.RevisionAnnotation])
		switch {
		case !ok:
		case n >= highest:
			highest, second = n, highest
		case n > second:
			second = n
		}
	}
	return highest, second
}

// NextRevision returns the highest revision of the old sets plus 1.
func NextRevision(old []*v1alpha1.MachineSet) string {
	highest, _ := TopRevisions(old)
	if highest < math.MaxInt64 {
		highest++
	}
	return strconv.FormatInt(highest, 10)
}
