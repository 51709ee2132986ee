// SPDX-License-Identifier: Apache-2.0

package members

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CollectFor returns how long changes of machines are collected before the next pass over their set, or
// changes of sets before the next pass over their deployment, so that machines that change together
// are counted together. A pass counts all machines, those of the spec or of the status: the delay is
// a millisecond for each of the first hundred, and from 200 machines on half a millisecond for
// each of them. So passes take the same share of the time for any larger number.
func CollectFor(spec, status int32) time.Duration {
	each := time.Duration(max(spec, status, 0)) * time.Millisecond
	return max(min(each, 100*time.Millisecond), each/2)
}

// OnlyStatus reports whether nothing but the status differs between two versions of an object, whose
// spec and deletion change its generation. The passes of the object itself write its status.
func OnlyStatus(a, b metav1.Object) bool {
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() &&
		maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations()) &&
		slices.Equal(a.GetFinalizers(), b.GetFinalizers()) && equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences())
}

// Batches splits n creations into batches of 1, 2, 4, 8, … requests. The requests of one batch may
// run in parallel. Begin a batch only if all requests before it succeeded: a set whose machines
// cannot be created learns it from one request. It returns nil for n < 1.
func Batches(n int) []int {
	var batches []int
	for size := 1; n > 0; size *= 2 {
		batches = append(batches, min(size, n))
		n -= min(size, n)
	}
	return batches
}
