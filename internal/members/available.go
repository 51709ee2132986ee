// SPDX-License-Identifier: Apache-2.0

package members

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// AvailableSince returns since when a machine is available, by its phase, and false if it is not. It
// is available since its Node is ready, by the conditions of the machine, or else since it has its
// phase. If neither is recorded, it returns the zero time.
func AvailableSince(m *v1alpha1.Machine) (time.Time, bool) {
	if !Available(m) {
		return time.Time{}, false
	}
	for _, c := range m.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time, true
		}
	}
	return m.Status.CurrentStatus.LastUpdateTime.Time, true
}

// AvailableFor reports whether a machine has been available for at least settle at now. If settle
// is not positive, it reports whether the machine is available.
func AvailableFor(m *v1alpha1.Machine, settle time.Duration, now time.Time) bool {
	if settle <= 0 {
		return Available(m)
	}
	since, ok := AvailableSince(m)
	return ok && !since.Add(settle).After(now)
}

// NextAvailable returns the machine that will be the next one to have been available for settle,
// and when. It returns nil if there is none. No object changes at that time, so the caller has to
// decide again then. Machines that are leaving and nil machines are skipped.
func NextAvailable(machines []*v1alpha1.Machine, settle time.Duration, now time.Time) (*v1alpha1.Machine, time.Time) {
	var next *v1alpha1.Machine
	var at time.Time
	for _, m := range machines {
		since, ok := AvailableSince(m)
		if !ok || Leaving(m) || AvailableFor(m, settle, now) {
			continue
		}
		due := since.Add(settle)
		if next == nil || due.Before(at) || due.Equal(at) && CompareNames(m, next) < 0 {
			next, at = m, due
		}
	}
	return next, at
}

// SettleTime returns for how long a machine of the set has to be available before it counts.
func SettleTime(set *v1alpha1.MachineSet) time.Duration {
	if set == nil {
		return 0
	}
	return time.Duration(max(0, set.Spec.MinReadySeconds)) * time.Second
}
