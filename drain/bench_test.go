// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/machinist-dev/machinist/drain"
)

func BenchmarkDecide(b *testing.B) {
	b.Run("110 pods", func(b *testing.B) {
		var pods []*corev1.Pod
		for i := range 110 {
			pods = append(pods, newPod(fmt.Sprintf("web-%03d", (i*37)%110)))
		}
		in := observed(pods...)
		b.ReportAllocs()
		for b.Loop() {
			if len(drain.Decide(in, drain.Policy{}, now).Rows) != 110 {
				b.Fatal("rows are missing")
			}
		}
	})
}
