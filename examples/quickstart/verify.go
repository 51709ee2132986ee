// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/audit"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// figures are the figures of the audit and of the demo.
type figures struct {
	audit.Figures

	writes int // the number of writes to the control cluster
}

// verify checks the histories of the control cluster and of the cloud. Only machines that the
// scenario harms fail, and the demo deletes only whole deployments.
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
