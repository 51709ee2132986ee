// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"time"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// available says whether a machine counts as available, and stays: it is not
// leaving, its update in place has not begun, and it has been available for as long
// as its set asks.
func (c *pass) available(a *account, m *v1alpha1.Machine) bool {
	return !machineset.Leaving(m) && machineset.AvailableFor(m, a.settling(), c.now) && !c.updating[m]
}

// settling is for how long machines have to be available before they count. For a
// new set that is what it asks or what its deployment asks, whatever is more: the
// set is told so in this pass, and may not have been yet when it is looked at again.
func (a *account) settling() time.Duration {
	return time.Duration(a.minReady) * time.Second
}

// nextAvailable returns when the next machine will have been available for long
// enough; zero if none is about to.
func nextAvailable(a *account, now time.Time) time.Time {
	if a.settling() <= 0 {
		return time.Time{}
	}
	_, at := machineset.NextAvailable(a.machines, a.settling(), now)
	return at
}
