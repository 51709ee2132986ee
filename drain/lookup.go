// SPDX-License-Identifier: Apache-2.0

package drain

import corev1 "k8s.io/api/core/v1"

// lookup is what a round looks up more than once.
type lookup struct {
	// pods are those of the rows, in the same order.
	pods []*corev1.Pod
}

func newLookup(*Observation) lookup { return lookup{} }
