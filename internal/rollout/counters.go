// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

const (
	// counterInterval is how long a status waits after the last one if nothing but counters and the time of
	// the last progress is new. Each machine of a rollout changes them, and no decision waits for them.
	counterInterval = time.Second
	// messageDelay is how long a new message of progress waits for another reason to write the status. What
	// a rollout waits for may end soon.
	messageDelay = 2 * time.Second
)

// Recorded is what is remembered of the status that was written last. The zero value remembers nothing.
type Recorded struct {
	at      time.Time // when it was written
	differs time.Time // since when only the message of progress is to be written
}

// Due returns when the next status has to be written, and what to remember until then. Zero means now. It is
// never late if the status is not all there is to write: alone is false.
func (r Recorded) Due(stored, next v1alpha1.MachineDeploymentStatus, alone bool, now time.Time) (time.Time, Recorded) {
	switch {
	case !alone:
		return time.Time{}, Recorded{at: r.at}
	case OnlyMessage(stored, next):
		if r.differs.IsZero() {
			r.differs = now
		}
		return r.differs.Add(messageDelay), r
	case onlyCounters(stored, next):
		return r.at.Add(counterInterval), Recorded{at: r.at}
	default:
		return time.Time{}, Recorded{at: r.at}
	}
}

// Written returns what to remember of a status that was written now.
func (Recorded) Written(now time.Time) Recorded { return Recorded{at: now} }

// onlyCounters reports whether two statuses differ at most in numbers of machines, and in the times and the
// message of progress.
func onlyCounters(a, b v1alpha1.MachineDeploymentStatus) bool {
	b.Replicas, b.UpdatedReplicas, b.ReadyReplicas, b.AvailableReplicas, b.UnavailableReplicas =
		a.Replicas, a.UpdatedReplicas, a.ReadyReplicas, a.AvailableReplicas, a.UnavailableReplicas
	return equality.Semantic.DeepEqual(withoutProgress(a), withoutProgress(b))
}

// OnlyMessage reports whether two statuses differ, and only in the message of progress.
func OnlyMessage(a, b v1alpha1.MachineDeploymentStatus) bool {
	if equality.Semantic.DeepEqual(a, b) {
		return false
	}
	a.Conditions, b.Conditions = WithMessage(a.Conditions, ""), WithMessage(b.Conditions, "")
	return equality.Semantic.DeepEqual(a, b)
}

// withoutProgress returns a copy of a status without the times and the message of progress.
func withoutProgress(s v1alpha1.MachineDeploymentStatus) *v1alpha1.MachineDeploymentStatus {
	out := s.DeepCopy()
	out.Conditions = WithMessage(out.Conditions, "")
	for i := range out.Conditions {
		out.Conditions[i].LastUpdateTime = metav1.Time{}
	}
	return out
}
