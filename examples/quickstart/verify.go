// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/audit"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// figures are what the histories show.
type figures struct {
	audit.Figures

	writes int // writes to the control cluster
}

// verify lays the histories of the control cluster and of the cloud side by side
// and says which bound was broken. Nothing fails by itself in this world but what
// the scenario harms, and the demo deletes nothing but whole deployments.
func (w *world) verify() (figures, error) {
	history := w.control.History()
	vms := slices.DeleteFunc(w.cloud.History(), func(e drivertest.Event) bool { return e.VM.Machine == orphan })
	f, err := audit.Check(audit.FromHistory(history), vms, w.cloud.Snapshot(), audit.Options{
		Steady: true, Excused: func(m *v1alpha1.Machine) bool {
			order, err := resourceversion.CompareResourceVersion(m.ResourceVersion, w.harmed[m.UID])
			return err == nil && order >= 0
		},
	})
	return figures{Figures: f, writes: len(history)}, err
}
