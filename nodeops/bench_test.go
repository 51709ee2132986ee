// SPDX-License-Identifier: Apache-2.0

package nodeops_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/nodeops"
)

var (
	sinkConditions []corev1.NodeCondition
	sinkTaints     []corev1.Taint
	sinkChange     nodeops.Change
	sinkMatch      nodeops.MatchResult
	sinkIndex      *nodeops.Index
)

func BenchmarkCloneAndAddCondition(b *testing.B) {
	for _, n := range []int{10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			have, add := manyConditions(n), cond("New", "True", "Reason", t1)
			b.ReportAllocs()
			for b.Loop() {
				sinkConditions = nodeops.CloneAndAddCondition(have, add)
			}
		})
	}
}

func BenchmarkSetTaint(b *testing.B) {
	have := []corev1.Taint{taint("a", "", noSchedule), taint("b", "", noSchedule), taint("c", "", noExecute)}
	b.ReportAllocs()
	for b.Loop() {
		sinkTaints, _ = nodeops.SetTaint(have, taint("d", "", noSchedule))
	}
}

func BenchmarkSyncTemplateUnchanged(b *testing.B) {
	desired := nodeops.Template{
		Labels: map[string]string{"a": "1", "b": "2", "c": "3"}, Annotations: map[string]string{"a": "1"},
		Taints: []corev1.Taint{taint("a", "", noSchedule)},
	}
	change, err := nodeops.SyncTemplate(crowdedNode(), desired)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		sinkChange, _ = nodeops.SyncTemplate(change.Node, desired)
	}
}

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
