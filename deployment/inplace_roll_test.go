// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"testing"
)

func TestInPlaceAutoUpdatesEveryMachineOnce(t *testing.T) {
	w := rolled(t, 1, updDeployment(5, "0", "2", false))
	w.settle(60)
	w.mustBeUpdated()
	for _, s := range w.story {
		t.Log(s)
	}
}
