// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// AvailableSince returns since when a machine is available ([machine.PhaseTraits]), and
// false if it is not. That is since when its Node is ready, as the conditions of
// the machine say, or else since when it has its phase. If neither is known, the
// zero time is returned: long ago.
func AvailableSince(m *v1alpha1.Machine) (time.Time, bool) {
	if !available(m) {
		return time.Time{}, false
	}
	for _, c := range m.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time, true
		}
	}
	return m.Status.CurrentStatus.LastUpdateTime.Time, true
}

// AvailableFor reports whether a machine has been available for at least as long
// as settle at the instant now. If settle is not above 0, being available is
// enough.
func AvailableFor(m *v1alpha1.Machine, settle time.Duration, now time.Time) bool {
	if settle <= 0 {
		return available(m)
	}
	since, ok := AvailableSince(m)
	return ok && !since.Add(settle).After(now)
}

// NextAvailable returns which of the machines will be the next to have been
// available for as long as settle, and when; nil if none is on the way there.
// Nothing but time brings that about, so whoever waits for it has to look again
// then. Machines that are leaving, and nil ones, are skipped. Of two at the same
// time, that with the smaller name counts.
func NextAvailable(machines []*v1alpha1.Machine, settle time.Duration, now time.Time) (*v1alpha1.Machine, time.Time) {
	var next *v1alpha1.Machine
	var at time.Time
	for _, m := range machines {
		since, ok := AvailableSince(m)
		if !ok || Leaving(m) || AvailableFor(m, settle, now) {
			continue
		}
		due := since.Add(settle)
		if next == nil || due.Before(at) || due.Equal(at) && compareNames(m, next) < 0 {
			next, at = m, due
		}
	}
	return next, at
}

// settleTime is how long a machine of the set has to be available before it
// counts as such.
func settleTime(set *v1alpha1.MachineSet) time.Duration {
	if set == nil {
		return 0
	}
	return time.Duration(max(0, set.Spec.MinReadySeconds)) * time.Second
}
