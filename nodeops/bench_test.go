// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

var (
	sinkConditions []corev1.NodeCondition
	sinkMatch      nodeops.MatchResult
	sinkIndex      *nodeops.Index
)

func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		candidates := make([]nodeops.Candidate, n)
		for i := range candidates {
			candidates[i] = nodeops.Candidate{Name: fmt.Sprint("m", i), NodeName: fmt.Sprint("n", i), ProviderID: fmt.Sprint("aws:///eu-west-1a/i-", i)}
		}
		node := named(candidates[n/2].NodeName, candidates[n/2].ProviderID)
		b.Run(fmt.Sprintf("newindex/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sinkIndex = nodeops.NewIndex(candidates)
			}
		})
		b.Run(fmt.Sprintf("index/%d", n), func(b *testing.B) {
			index := nodeops.NewIndex(candidates)
			b.ReportAllocs()
			for b.Loop() {
				sinkMatch = index.Match(node)
			}
		})
	}
}
