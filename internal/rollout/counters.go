// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// OnlyCounters reports whether two statuses differ at most in numbers of machines, and in the times and the
// message of progress. No decision waits for these, so a caller may write such a status later.
func OnlyCounters(a, b v1alpha1.MachineDeploymentStatus) bool {
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
