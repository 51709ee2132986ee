// SPDX-License-Identifier: Apache-2.0

package machineset_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machinist-dev/machinist/machine/v1alpha1"
	"github.com/machinist-dev/machinist/machineset"
)

// manyMachines come in no order, with little to tell them apart.
func manyMachines(n int) []*v1alpha1.Machine {
	machines := make([]*v1alpha1.Machine, 0, n)
	for i := range n {
		m := newMachine(fmt.Sprintf("m%05d", i*7919%n), v1alpha1.MachineRunning)
		m.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(i%100) * time.Minute))
		machines = append(machines, m)
	}
	return machines
}

func BenchmarkDecide(b *testing.B) {
	for _, c := range []struct {
		name string
		keep func(n int) int
	}{
		{"settled", func(n int) int { return n }},
		{"shrinking", func(n int) int { return n - n/10 }},
		{"growing", func(n int) int { return n + n/10 }},
	} {
		for _, n := range []int{500, 5_000, 50_000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				in := observed(int32(c.keep(n)), manyMachines(n)...) //nolint:gosec // small
				b.ReportAllocs()
				for b.Loop() {
					machineset.Decide(in, machineset.Policy{}, now)
				}
			})
		}
	}
}

func BenchmarkStatus(b *testing.B) {
	in := observed(5_000, manyMachines(5_000)...)
	b.ReportAllocs()
	for b.Loop() {
		machineset.Status(in, machineset.Failure{}, now)
	}
}
