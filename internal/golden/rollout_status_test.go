// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/machinist-dev/machinist/internal/rollout"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

type rolloutStatusOut struct {
	Replicas, UpdatedReplicas, ReadyReplicas, AvailableReplicas, UnavailableReplicas int32
	ObservedGeneration                                                               int64
	Conditions                                                                       []condition
	StatusWritten                                                                    bool
	Error                                                                            *string
}

// rolloutStatus compares the status that is stored afterwards, and whether it was written.
func rolloutStatus(in world, out rolloutStatusOut) ([]string, error) {
	d, newSet, old := in.MachineDeployment.object(), in.NewMS.object(), setsOf(in.OldMSs)
	s, expires := rollout.Status(d, newSet, old, now, true)
	if !expires.IsZero() && !expires.After(now) {
		return nil, fmt.Errorf("look again at %s", expires)
	}
	stored := conditionOf(d.Status, v1alpha1.MachineDeploymentProgressing)
	if stored == nil {
		stored = &v1alpha1.MachineDeploymentCondition{}
	}
	conditions := plain(s.Conditions)
	for i, c := range s.Conditions {
		if c.Type == v1alpha1.MachineDeploymentProgressing {
			conditions[i].LastUpdateTime = keptOrNew(stored.LastUpdateTime.Time, c.LastUpdateTime.Time)
			conditions[i].LastTransitionTime = keptOrNew(stored.LastTransitionTime.Time, c.LastTransitionTime.Time)
		}
	}
	written := !equality.Semantic.DeepEqual(s, d.Status)
	got := rolloutStatusOut{
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas, s.ObservedGeneration,
		conditions, written, out.Error,
	}
	// DS-40: a number that is not compared is no reason to write.
	blind := s.DeepCopy()
	blind.PreservedFailedReplicas = d.Status.PreservedFailedReplicas
	if written && !out.StatusWritten && equality.Semantic.DeepEqual(*blind, d.Status) {
		got.StatusWritten = false
		return []string{"DS-40"}, same("status", out, got)
	}
	return nil, same("status", out, got)
}

func keptOrNew(was, is time.Time) string {
	switch {
	case is.Equal(was):
		return "kept"
	case is.Equal(now):
		return "new"
	default:
		return is.String()
	}
}
