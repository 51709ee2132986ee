// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/machinist-dev/machinist/drain"
	"github.com/machinist-dev/machinist/examples/rigs/audit"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// figures are the figures of the audit and of the demo.
type figures struct {
	audit.Figures

	replaced int // the machines that failed
	drains   int
	writes   int // the number of writes to the control cluster
	left     int // the VMs at the end
}

// atATime is how many machines may be replaced at a time: the default of the policy.
const atATime = 1

// verify checks the histories of the control cluster and of the cloud. Only machines that the
// story harms fail, and each of them was replaced after the one before.
func (w *world) verify() (figures, error) {
	history, left := w.control.History(), w.cloud.Snapshot()
	f, err := audit.Check(audit.FromHistory(history), w.cloud.History(), left, audit.Options{
		Steady: true, Excused: func(m *v1alpha1.Machine) bool {
			order, err := resourceversion.CompareResourceVersion(m.ResourceVersion, w.harmed[m.UID])
			return err == nil && order >= 0
		},
	})
	all := figures{Figures: f, writes: len(history), drains: int(w.drains.Load()), left: len(left.VMs)}
	failed := map[string]bool{} // and not deleted
	for _, write := range history {
		m, _ := write.After.(*v1alpha1.Machine)
		before, _ := write.Before.(*v1alpha1.Machine)
		switch {
		case m == nil && before != nil:
			delete(failed, write.Name)
		case m != nil && m.Status.CurrentStatus.Phase == v1alpha1.MachineFailed && !failed[write.Name]:
			if failed[write.Name] = true; len(failed) > atATime {
				err = errors.Join(err, fmt.Errorf("machine %s failed although another one was not replaced yet", write.Name))
			}
			all.replaced++
		}
	}
	return all, err
}

// drainCount counts the drains that have ended with all pods evicted or deleted.
type drainCount struct{ w *world }

// Observe counts the end of a drain.
func (d drainCount) Observe(p drain.Progress) {
	if p.Type == drain.ProgressEnded {
		d.w.drains.Add(1)
	}
}

// Forget does nothing: the drain was stopped.
func (drainCount) Forget(string) {}

// count returns the number of objects in a list.
func count(list runtime.Object, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return meta.LenList(list), nil
}
